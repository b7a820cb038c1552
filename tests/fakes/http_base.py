"""A loopback HTTP server with canned replies and a plan of faults; every fake cloud is made of it.

    with FakeServer({"GET /v1/things": lambda request: {"items": [...]}}, faults={"*": "throttle_then_ok"}) as fake:
        ... fake.url ... fake.requests ...

A route's key is `METHOD pattern` or `pattern` (globs), matched against the path, or against the X-Amz-Target
header where there is one. A handler gets a `Request` and returns a dict or list (JSON), str or bytes, or a `Reply`.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

FAULTS = (
    "throttle_then_ok",
    "throttle_forever",
    "http_500_once",
    "http_500_forever",
    "slow",
    "truncated_body",
    "malformed_json",
    "changed_schema",
    "expired_credentials",
    "access_denied",
    "empty_page",
    "duplicate_rows",
    "odd_rows",
    "connection_reset",
)
# Faults after which a sound client still has the whole answer.
HARMLESS = frozenset({"throttle_then_ok", "http_500_once", "duplicate_rows", "odd_rows"})
# What a refresh calls a fault.
KINDS = {
    "throttle_forever": "rate_limited",
    "http_500_forever": "unreachable",
    "slow": "unreachable",
    "truncated_body": "unreachable",
    "connection_reset": "unreachable",
    "malformed_json": "schema_changed",
    "changed_schema": "schema_changed",
    "expired_credentials": "credentials_missing",
    "access_denied": "permission_denied",
}
_ONCE = frozenset({"throttle_then_ok", "http_500_once"})
# For tests of time limits: how late a slow reply is (never waited for: a server that stops sends it), and a limit that
# every other reply keeps, however busy the machine is.
LATE_S = 60.0
LIMIT_S = 1.0


@dataclass(frozen=True)
class Request:
    """What the server was asked.

    `target` is what routes are matched against: the X-Amz-Target or x-acs-action header, else the field `Action`, else
    the path.
    """

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Mapping[str, str]
    body: bytes
    target: str
    base_url: str

    def param(self, name: str, default: str = "") -> str:
        """First value of a query (or form) parameter."""
        return (self.query.get(name) or [default])[0]

    def json(self) -> Any:
        """The body as JSON; {} where it is empty."""
        return json.loads(self.body) if self.body else {}


@dataclass(frozen=True)
class Reply:
    """What the server says; `body` may be bytes, str, or anything JSON can hold."""

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"

    def data(self) -> bytes:
        """The body's bytes."""
        if isinstance(self.body, bytes):
            return self.body
        if isinstance(self.body, str):
            return self.body.encode()
        return json.dumps(self.body).encode()


Handler = Callable[[Request], Any]
ErrorReply = Callable[[str, Request], Reply | None]
Change = Callable[[bytes], bytes]


def default_error(kind: str, request: Request) -> Reply | None:
    """Plain HTTP errors; a cloud with its own bodies passes `error_reply`."""
    if kind.startswith("throttle"):
        return Reply({"error": {"code": 429, "message": "slow down"}}, 429, {"Retry-After": "0"})
    if kind.startswith("http_500"):
        return Reply({"error": {"code": 500, "message": "internal"}}, 500)
    if kind == "expired_credentials":
        return Reply({"error": {"code": 401, "message": "expired"}}, 401)
    if kind == "access_denied":
        return Reply({"error": {"code": 403, "message": "denied"}}, 403)
    return None


def rename_keys(value: Any) -> Any:
    """Rename every key of nested JSON: a format no version understands."""
    if isinstance(value, dict):
        return {f"{key}V2": rename_keys(inner) for key, inner in value.items()}
    return [rename_keys(inner) for inner in value] if isinstance(value, list) else value


def _json_change(change: Callable[[Any], Any]) -> Change:
    def apply(data: bytes) -> bytes:
        try:
            return json.dumps(change(json.loads(data))).encode()
        except ValueError:
            return data

    return apply


def _lists(value: Any, change: Callable[[list[Any]], list[Any]]) -> Any:
    """Change every outermost list of nested objects; lists inside a list's items stay."""
    if isinstance(value, list):
        return change(value)
    if isinstance(value, dict):
        return {key: _lists(inner, change) for key, inner in value.items()}
    return value


def _with_odd_rows(items: list[Any]) -> list[Any]:
    """Put rows around a list's own that have no field, the first half of the first row's, or a name alone."""
    first = items[0] if items else None
    if not isinstance(first, dict) or not first:
        return items
    half = dict(list(first.items())[: max(1, len(first) // 2)])
    named = {
        name: value if "ame" in name and isinstance(value, str) else None for name, value in first.items()
    }
    return [{}, half, *items, named]


DEFAULT_CHANGES: dict[str, Change] = {
    "changed_schema": _json_change(rename_keys),
    "empty_page": _json_change(lambda value: _lists(value, lambda items: [])),
    "duplicate_rows": _json_change(lambda value: _lists(value, lambda items: [*items, *items])),
    "odd_rows": _json_change(lambda value: _lists(value, _with_odd_rows)),
}


class FakeServer:
    """The server; a context manager.

    Args:
        routes: pattern to handler.
        faults: a kind for every route, or pattern to kind.
        error_reply: (kind, request) -> Reply for throttling, 500, expired and denied, in the cloud's own shape;
            None falls back to `default_error`.
        changes: replacements for what `changed_schema`, `empty_page`, `duplicate_rows`, `odd_rows` do to a body (for
            XML, say).
        slow_s: how late a `slow` reply is.
        latency_s: how late every reply is (for measuring parallelism).
        port: port to listen at where it is free; else, and for 0, any.
    """

    def __init__(
        self,
        routes: Mapping[str, Handler],
        faults: str | Mapping[str, str] | None = None,
        *,
        error_reply: ErrorReply = default_error,
        changes: Mapping[str, Change] | None = None,
        slow_s: float = 1.0,
        latency_s: float = 0.0,
        port: int = 0,
    ) -> None:
        self.port = port
        self.routes = dict(routes)
        self.faults = {"*": faults} if isinstance(faults, str) else dict(faults or {})
        unknown = sorted(set(self.faults.values()) - set(FAULTS))
        if unknown:
            raise ValueError(f"unknown faults {unknown}; there are {FAULTS}")
        self.error_reply = error_reply
        self.changes = {**DEFAULT_CHANGES, **(changes or {})}
        self.slow_s = slow_s
        self.latency_s = latency_s
        # sends it otherwise
        self.wire: Callable[[FakeServer, BaseHTTPRequestHandler, Reply], None] | None = None
        self.requests: list[Request] = []
        self.active = 0
        self.most_active = 0
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._stop = threading.Event()

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def count(self, pattern: str) -> int:
        """How many requests fitted a pattern."""
        return sum(1 for request in self.requests if _fits(pattern, request))

    def __enter__(self) -> FakeServer:
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler_class(self))
        except OSError:  # taken meanwhile
            self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_class(self))
        self.port = self._server.server_port
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._server.shutdown()
        self._thread.join(5)
        with self._lock:
            for connection in list(self._open):
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue
        self._server.server_close()

    def answer(self, request: Request) -> tuple[str, Reply]:
        """The fault in force for a request ("" none) and the reply."""
        with self._lock:
            self.requests.append(request)
            kind = next((kind for pattern, kind in self.faults.items() if _fits(pattern, request)), "")
            self._seen[request.target] += 1
            if kind in _ONCE and self._seen[request.target] > 1:
                kind = ""
        if kind in ("throttle_then_ok", "throttle_forever", "http_500_once", "http_500_forever") or kind in (
            "expired_credentials",
            "access_denied",
        ):
            reply = self.error_reply(kind, request) or default_error(kind, request)
            assert reply is not None
            return kind, reply
        handler = next((h for pattern, h in self.routes.items() if _fits(pattern, request)), None)
        if handler is None:
            return "", Reply({"error": {"code": 404, "message": f"no route for {request.target}"}}, 404)
        said = handler(request)
        return kind, said if isinstance(said, Reply) else Reply(said)

    def wait(self, seconds: float) -> None:
        """Sleep, but not past the server's end."""
        self._stop.wait(seconds)

    def stopped(self, within_s: float) -> bool:
        """Whether the server ends within a time, which is waited for."""
        return self._stop.wait(within_s)


def _fits(pattern: str, request: Request) -> bool:
    method, _, rest = pattern.partition(" ")
    if rest:
        return method == request.method and _fits(rest, request)
    return fnmatchcase(request.target, pattern) or fnmatchcase(request.path, pattern)


def _handler_class(fake: FakeServer) -> type[BaseHTTPRequestHandler]:
    class Handler_(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            with fake._lock:
                fake._open.add(self.connection)

        def finish(self) -> None:
            with fake._lock:
                fake._open.discard(self.connection)
            try:
                super().finish()
            except OSError:
                return

        def handle(self) -> None:
            try:
                super().handle()
            except (ConnectionError, TimeoutError, ValueError):
                return  # the client went away

        def log_message(self, format: str, *args: Any) -> None:
            return

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_HEAD(self) -> None:
            self._serve()

        def _serve(self) -> None:
            with fake._lock:
                fake.active += 1
                fake.most_active = max(fake.most_active, fake.active)
            try:
                request = self._read()
                if fake.latency_s:
                    fake.wait(fake.latency_s)
                kind, reply = fake.answer(request)
            finally:
                with fake._lock:  # before the caller has its answer, and may ask again
                    fake.active -= 1
            self._send(kind, reply)

        def _read(self) -> Request:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = parse_qs(parts.query, keep_blank_values=True)
            action = ""
            if self.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded"):
                form = parse_qs(body.decode(), keep_blank_values=True)
                query = {**query, **form}
            action = (query.get("Action") or [""])[0]
            named = self.headers.get("X-Amz-Target") or self.headers.get("x-acs-action")
            target = named or action or parts.path
            headers = {key.lower(): value for key, value in self.headers.items()}
            return Request(self.command, parts.path, query, headers, body, target, fake.url)

        def _send(self, kind: str, reply: Reply) -> None:
            if fake.wire is not None:
                fake.wire(fake, self, reply)
                return
            if kind == "connection_reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
                return
            if kind == "slow":
                fake.wait(fake.slow_s)
                if fake._stop.is_set():  # nobody listens any more
                    self.close_connection = True
                    return
            data = reply.data()
            if kind in fake.changes:
                data = fake.changes[kind](data)
            if kind == "malformed_json":
                data = data[: len(data) // 2] + b'<<"{'
            cut = len(data) // 2 if kind == "truncated_body" else len(data)
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(data)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if kind == "truncated_body":
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data[:cut])
            if kind == "truncated_body":
                self.close_connection = True

    return Handler_


def started(url: str, within_s: float = 2.0) -> bool:
    """Whether a server answers; for fakes run as processes of their own."""
    parts = urlsplit(url)
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        with socket.socket() as probe:
            probe.settimeout(0.2)
            if probe.connect_ex((parts.hostname or "127.0.0.1", parts.port or 80)) == 0:
                return True
    return False
