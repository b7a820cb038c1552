"""The HTTP client for public lists: what each fault of a server means to the user."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from catalogs.providers.base import (
    CredentialsMissing,
    FetchOptions,
    PermissionDenied,
    RateLimited,
    SchemaChanged,
    Unreachable,
)
from catalogs.providers.http import HttpClient
from tests.fakes.http_base import LATE_S, LIMIT_S, FakeServer, Reply, Request

QUICK = FetchOptions(timeout_s=10.0, retries=2, backoff_s=0.0, max_wait_s=0.1)
ROUTES = {"GET /list": lambda request: {"items": [1, 2], "page": request.param("page", "1")}}


def _client(timeout_s: float = QUICK.timeout_s, **kwargs: object) -> HttpClient:
    options = replace(QUICK, timeout_s=timeout_s)
    return HttpClient("someone", options, login_hint="run `someone login`", **kwargs)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fault", "error", "says", "tries"),
    [
        ("throttle_forever", RateLimited, "429", 3),
        ("http_500_forever", Unreachable, "HTTP 500", 3),
        ("slow", Unreachable, "in time", None),
        ("truncated_body", Unreachable, "cut short", 3),
        ("malformed_json", SchemaChanged, "not JSON", 2),
        ("expired_credentials", CredentialsMissing, "someone login", 1),
        ("access_denied", PermissionDenied, "missing permission: things.list", 1),
        ("connection_reset", Unreachable, "connection failed", 3),
    ],
)
def test_a_fault_becomes_an_error_that_names_the_remedy(
    fault: str, error: type[Exception], says: str, tries: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    timeout_s = LIMIT_S if fault == "slow" else QUICK.timeout_s
    with FakeServer(ROUTES, faults=fault, slow_s=LATE_S) as fake, _client(timeout_s) as client:
        with pytest.raises(error) as caught:
            client.get_json(
                f"{fake.url}/list?key=SECRET", api="things.list", permission="things.list", region="r1"
            )
        assert says in str(caught.value)
        assert "SECRET" not in str(caught.value) + caplog.text
        assert str(caught.value).startswith("someone r1 things.list: ")
        assert tries is None or len(fake.requests) == tries


@pytest.mark.parametrize("fault", ["throttle_then_ok", "http_500_once"])
def test_a_passing_fault_is_not_seen(fault: str) -> None:
    with FakeServer(ROUTES, faults=fault) as fake, _client() as client:
        assert client.get_json(f"{fake.url}/list", params={"page": "7"}) == {"items": [1, 2], "page": "7"}
        assert len(fake.requests) == 2


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        ("3600", 0.1),
        ("0", 0.0),
        ("soon", 0.02),
        ("-5", 0.02),
        ("Fri, 31 Feb 2099 00:00:00 GMT", 0.02),
        ("", 0.02),
    ],
)
def test_what_a_server_asks_to_wait_is_capped_and_nonsense_is_ignored(asked: str, waited: float) -> None:
    pauses_s: list[float] = []
    busy = Reply({}, 429, {"Retry-After": asked})
    options = replace(QUICK, retries=1, backoff_s=0.02)
    client = HttpClient("someone", options, sleep=pauses_s.append)
    with FakeServer({"/list": lambda request: busy}) as fake, client, pytest.raises(RateLimited):
        client.get_json(f"{fake.url}/list")
    assert pauses_s == [waited]


def _drip(kind: str) -> Iterator[str]:
    """A server that sends a byte now and then: each in time, the whole never."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            connection.recv(65536)
            if kind == "body":
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not over.wait(0.05):
                connection.sendall(b"H" if kind == "head" else b"1")
            connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    over.set()
    listener.close()
    thread.join(2)


@pytest.mark.parametrize("kind", ["head", "body"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_server_of_a_byte_at_a_time_ends_at_the_time_limit(kind: str, streamed: bool) -> None:
    drip = contextmanager(_drip)
    began = time.monotonic()
    with drip(kind) as url, _client(0.3) as client, pytest.raises(Unreachable, match=r"in time \(0\.3 s\)"):
        if streamed:
            with client.stream(f"{url}/list") as chunks:
                list(chunks)
        else:
            client.get_json(f"{url}/list")
    assert time.monotonic() - began < 60  # the server goes on for ever, or for more than an hour


def test_all_tries_share_one_time_limit() -> None:
    broken = Reply({}, 500)
    with FakeServer({"/list": lambda request: broken}, latency_s=0.2) as fake:
        client = HttpClient("someone", replace(QUICK, timeout_s=0.5, retries=50))
        with client, pytest.raises(Unreachable):
            client.get_json(f"{fake.url}/list")
        assert len(fake.requests) <= 4


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_above_the_limit_is_refused(streamed: bool) -> None:
    big = Reply(b"1" * (33 << 10))
    options = replace(QUICK, max_bytes=1 << 10)
    client = HttpClient("someone", options)
    with (
        FakeServer({"/list": lambda request: big}) as fake,
        client,
        pytest.raises(SchemaChanged, match="max-bytes"),
    ):
        if streamed:
            with client.stream(f"{fake.url}/list") as chunks:
                list(chunks)
        else:
            client.get_json(f"{fake.url}/list")


def test_an_answer_that_unpacks_to_far_too_much_is_refused() -> None:
    bomb = Reply(gzip.compress(b" " * (24 << 20)), headers={"Content-Encoding": "gzip"})
    with FakeServer({"/list": lambda request: bomb}) as fake, _client() as client:
        with pytest.raises(SchemaChanged, match="unpack to more than 200 times"):
            client.get_json(f"{fake.url}/list")
        assert len(fake.requests) == 1


def _sent_on(target: str) -> Reply:
    return Reply(b"", 302, {"Location": target})


def test_a_redirect_is_followed_on_the_host_that_was_asked_and_nowhere_else() -> None:
    with FakeServer(ROUTES) as other:
        routes = {
            "/here": lambda request: _sent_on("/list?page=3"),
            "/there": lambda request: _sent_on(f"{other.url}/list"),
            "/file": lambda request: _sent_on("file:///etc/passwd"),
            "/round": lambda request: _sent_on("/round"),
            **ROUTES,
        }
        with FakeServer(routes) as fake, _client() as client:
            assert client.get_json(f"{fake.url}/here?page=1")["page"] == "3"
            for path in ("there", "file"):
                with pytest.raises(SchemaChanged, match="sends to another host"):
                    client.get_json(f"{fake.url}/{path}", headers={"X-Goog-Api-Key": "SECRET"})
            with pytest.raises(SchemaChanged, match="redirects more than 5 times"):
                client.get_json(f"{fake.url}/round")
        assert other.requests == []


def test_deep_json_is_no_json_and_a_dripped_file_has_a_time_limit() -> None:
    routes = {
        "/list": lambda request: Reply(b"[" * 200_000),
        "/file": lambda request: Reply(b"x" * (40 << 20)),
    }
    with FakeServer(routes) as fake, _client() as client, pytest.raises(SchemaChanged, match="not JSON"):
        client.get_json(f"{fake.url}/list")
    slow = replace(QUICK, timeout_s=0.001)  # 32 ms for 40 MiB
    with (
        FakeServer(routes) as fake,
        HttpClient("someone", slow) as client,
        pytest.raises(Unreachable, match="in time"),
        client.stream(f"{fake.url}/file") as chunks,
    ):
        list(chunks)


def test_nobody_listens() -> None:
    with FakeServer(ROUTES) as fake:
        url = fake.url
    with _client() as client, pytest.raises(Unreachable, match="check the network"):
        client.get_json(f"{url}/list")


def _tagged(request: Request) -> Reply:
    if request.headers.get("if-none-match") == '"v1"':
        return Reply(b"", 304, {"ETag": '"v1"'})
    return Reply({"items": [1]}, headers={"ETag": '"v1"'})


def test_an_unchanged_list_is_not_sent_again(tmp_path: Path) -> None:
    with FakeServer({"/list": _tagged}) as fake, _client(cache_dir=tmp_path) as client:
        for _ in range(3):
            assert client.get_json(f"{fake.url}/list", cached=True) == {"items": [1]}
        assert [request.headers.get("if-none-match") for request in fake.requests] == [None, '"v1"', '"v1"']
        (kept,) = tmp_path.iterdir()
        kept.write_bytes(kept.read_bytes()[:-3])  # damaged: asked for again, whole
        assert client.get_json(f"{fake.url}/list", cached=True) == {"items": [1]}
        assert fake.requests[-1].headers.get("if-none-match") is None


def test_a_large_body_comes_in_pieces_and_a_cut_one_is_an_error() -> None:
    big = b"x" * 1_000_000
    routes = {"/big": lambda request: Reply(big)}
    with FakeServer(routes) as fake, _client() as client, client.stream(f"{fake.url}/big") as chunks:
        sizes = [len(chunk) for chunk in chunks]
        assert sum(sizes) == len(big) and max(sizes) <= 1 << 16
    with (
        FakeServer(routes, faults="truncated_body") as fake,
        _client() as client,
        client.stream(f"{fake.url}/big") as chunks,
        pytest.raises(Unreachable, match="cut short"),
    ):
        list(chunks)
