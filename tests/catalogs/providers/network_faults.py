"""What a network may do to one answer: the table that every provider's fetcher is held against.

A fault is a name, a way to send a reply, and the kinds of `ProviderError` that may come of it; `fine` means that the
caller gets the answer as if nothing had happened. `python -m benchmarks.network_faults` runs all of them against all
providers.
"""

from __future__ import annotations

import gzip
import json
import socket
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fakes.http_base import FakeServer, Reply

Wire = Callable[["FakeServer", BaseHTTPRequestHandler, "Reply"], None]
FINE, LOGIN, DENIED = "fine", "credentials_missing", "permission_denied"
BUSY, CHANGED, DOWN, OTHER = "rate_limited", "schema_changed", "unreachable", "failed"
# What is answered, but not by the service: which of the two it is called depends on the SDK's reader.
UNREADABLE = frozenset({CHANGED, DOWN})
PAGE = b"<html><body><h1>Sign in to the hotel's network</h1></body></html>"


@dataclass(frozen=True)
class NetworkFault:
    """One row of the table.

    Attributes:
        name: of the fault.
        wire: sends a reply in its way.
        allowed: kinds of `ProviderError`, and `fine`.
        is_slow: it ends at a time limit.
    """

    name: str
    wire: Wire
    allowed: frozenset[str]
    is_slow: bool = False


def send(server: FakeServer, handler: BaseHTTPRequestHandler, data: bytes, *, then: str = "close") -> None:
    """Write bytes as they are; then `close`, `reset` or `hang` the connection."""
    handler.close_connection = True
    handler.wfile.write(data)
    handler.wfile.flush()
    if then == "hang":
        server.wait(60.0)
    if then == "reset":
        linger = struct.pack("ii", 1, 0)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.connection.close()


def head(reply: Reply, status: int | str = 200, **more: str) -> bytes:
    """A status line and headers, the empty line included."""
    fields = {"Content-Type": reply.content_type, "Connection": "close", **dict(reply.headers)}
    fields |= {name.replace("_", "-"): value for name, value in more.items()}
    lines = [f"HTTP/1.1 {status} said", *(f"{name}: {value}" for name, value in fields.items() if value)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def with_length(reply: Reply, data: bytes, status: int = 200, **more: str) -> bytes:
    """A whole answer."""
    return head(reply, status, Content_Length=str(len(data)), **more) + data


def _status(code: int, server: FakeServer, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    send(server, handler, with_length(reply, PAGE, code, Content_Type="text/html"))


def _busy(asked: str, server: FakeServer, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    body = PAGE if "xml" in reply.content_type else b"{}"
    send(server, handler, with_length(reply, body, 429, Retry_After=asked))


def _moved(code: int, target: str, server: FakeServer, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    send(server, handler, with_length(reply, b"", code, Location=target))


def _body(
    change: Callable[[bytes], bytes],
    server: FakeServer,
    handler: BaseHTTPRequestHandler,
    reply: Reply,
    **more: str,
) -> None:
    send(server, handler, with_length(reply, change(reply.data()), **more))


def _raw(
    make: Callable[[Reply, bytes], bytes],
    then: str,
    server: FakeServer,
    handler: BaseHTTPRequestHandler,
    reply: Reply,
) -> None:
    send(server, handler, make(reply, reply.data()), then=then)


def _drip(part: str, server: FakeServer, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
    data = with_length(reply, reply.data())
    at = 3 if part == "head" else data.index(b"\r\n\r\n") + 5
    handler.close_connection = True
    handler.wfile.write(data[:at])
    for byte in data[at : at + 200]:
        if server.stopped(0.05):
            break
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
    handler.connection.close()


def _chunked(data: bytes, end: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n" + end


def _statuses() -> Iterator[NetworkFault]:
    refused = frozenset({CHANGED, DENIED, OTHER, DOWN})
    kinds = {
        401: {LOGIN, CHANGED},
        403: {DENIED, CHANGED},  # an SDK that reads the body first calls a proxy's page unreadable
        429: {BUSY, CHANGED},
        404: {CHANGED, DENIED},
        407: {CHANGED, DOWN},
    }
    for code in (400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 413, 414, 421, 422, 429, 431, 451):
        yield NetworkFault(f"status {code}", partial(_status, code), frozenset(kinds.get(code, refused)))
    for code in (500, 501, 502, 503, 504, 507, 511, 520, 599):
        yield NetworkFault(f"status {code}", partial(_status, code), frozenset({DOWN, CHANGED}))
    for asked in ("soon", "-1", "1e999", "Fri, 31 Feb 2099 00:00:00 GMT", "Mon, 01 Jan 1900 00:00:00 GMT"):
        yield NetworkFault(f"busy, again in {asked!r}", partial(_busy, asked), frozenset({BUSY}))


def _redirects() -> Iterator[NetworkFault]:
    for code, target in (
        (301, "http://192.0.2.1/else"),
        (302, "http://192.0.2.1/else"),
        (303, "http://192.0.2.1/else"),
        (307, "//192.0.2.1/else"),
        (308, "https://192.0.2.1/else"),
        (302, "file:///etc/passwd"),
        (302, "gopher://192.0.2.1:70/"),
        (302, "http://[nonsense/"),
        (302, ""),
    ):
        yield NetworkFault(f"{code} to {target!r}", partial(_moved, code, target), UNREADABLE)


def _bodies() -> Iterator[NetworkFault]:
    def body(name: str, change: Callable[[bytes], bytes], *allowed: str, **more: str) -> NetworkFault:
        return NetworkFault(name, partial(_body, change, **more), frozenset(allowed or UNREADABLE))

    yield body("nothing", lambda _: b"")
    yield body("blanks", lambda _: b" \r\n\t ")
    for text in (b"null", b"[]", b"{}", b'"text"', b"42", b"true", b"NaN"):
        yield body(f"JSON {text.decode()}", lambda _, text=text: text)
    yield body("a page of the hotel", lambda _: PAGE, Content_Type="text/html")
    yield body("a page of the hotel, said to be the answer", lambda _: PAGE)
    yield body("half the text", lambda data: data[: len(data) // 2])
    yield body("the text and more", lambda data: data + data)
    yield body("an ending too few", lambda data: data.rstrip()[:-1])
    yield body("zeros", lambda data: b"\0" * len(data))
    yield body("bytes of no text", lambda data: b"\xff\xfe\x00\xd8" + data)
    yield body(
        "bytes of no text within",
        lambda data: data.replace(b'"', b'"\xff\xfe', 3) if b'"' in data else b"\xff",
    )
    yield body("100,000 brackets", lambda _: b"[" * 100_000)
    yield body("100,000 brackets, closed", lambda _: b"[" * 100_000 + b"]" * 100_000)
    yield body("a number of 10,000 digits", lambda _: b"[" + b"9" * 10_000 + b"]")
    yield body("packed, it says", lambda data: data, FINE, *UNREADABLE, Content_Encoding="gzip")
    yield body("packed and cut", lambda data: gzip.compress(data)[: len(data) // 8], Content_Encoding="gzip")
    yield body(
        "packed and damaged", lambda data: gzip.compress(data)[:12] + b"\xff" * 30, Content_Encoding="gzip"
    )
    yield body("packed well", gzip.compress, FINE, *UNREADABLE, Content_Encoding="gzip")
    yield body("deflated", zlib.compress, FINE, *UNREADABLE, Content_Encoding="deflate")
    yield body("in an unknown packing", lambda data: data, FINE, *UNREADABLE, Content_Encoding="xyz")
    yield body("of another type", lambda data: data, FINE, *UNREADABLE, Content_Type="text/plain")
    yield body("of no type", lambda data: data, FINE, *UNREADABLE, Content_Type="")
    yield body("many headers", lambda data: data, FINE, *UNREADABLE, **{f"X_{at}": "1" for at in range(300)})
    yield body("a long header", lambda data: data, FINE, *UNREADABLE, X_Long="x" * 200_000)


def _transport() -> Iterator[NetworkFault]:
    def raw(
        name: str,
        make: Callable[[Any, bytes], bytes],
        *allowed: str,
        then: str = "close",
        is_slow: bool = False,
    ) -> NetworkFault:
        return NetworkFault(name, partial(_raw, make, then), frozenset(allowed or UNREADABLE), is_slow)

    go_on = b"HTTP/1.1 100 Continue\r\n\r\n"
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    odd = b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"
    yield raw("closed at once", lambda reply, data: b"")
    yield raw("reset at once", lambda reply, data: b"", then="reset")
    yield raw("closed in the status line", lambda reply, data: b"HTTP/1.")
    yield raw("closed in the headers", lambda reply, data: head(reply)[:30])
    yield raw("closed before the body", lambda reply, data: head(reply, Content_Length=str(len(data))))
    yield raw("cut short", lambda reply, data: with_length(reply, data)[: -len(data) // 2])
    yield raw(
        "reset within the body", lambda reply, data: with_length(reply, data)[: -len(data) // 2], then="reset"
    )
    yield raw("longer than said", lambda reply, data: head(reply, Content_Length=str(len(data) // 2)) + data)
    yield raw(
        "longer than said, by a word",
        lambda reply, data: with_length(reply, data) + b"more",
        FINE,
        *UNREADABLE,
    )
    yield raw(
        "a negative length", lambda reply, data: head(reply, Content_Length="-5") + data, FINE, *UNREADABLE
    )
    yield raw(
        "a length in words", lambda reply, data: head(reply, Content_Length="many") + data, FINE, *UNREADABLE
    )
    yield raw("a length of 20 digits", lambda reply, data: head(reply, Content_Length="9" * 20) + data)
    yield raw("no length", lambda reply, data: head(reply) + data, FINE)
    chunked = {"Transfer_Encoding": "chunked"}
    yield raw("in chunks", lambda reply, data: head(reply, **chunked) + _chunked(data, b"0\r\n\r\n"), FINE)
    yield raw("in chunks without an end", lambda reply, data: head(reply, **chunked) + _chunked(data, b""))
    yield raw(
        "a chunk cut", lambda reply, data: head(reply, **chunked) + _chunked(data, b"")[: len(data) // 2]
    )
    yield raw("a chunk of no size", lambda reply, data: head(reply, **chunked) + b"many\r\n" + data)
    yield raw("a chunk of a negative size", lambda reply, data: head(reply, **chunked) + b"-5\r\n" + data)
    yield raw("another protocol", lambda reply, data: b"SSH-2.0-OpenSSH_9.6\r\n")
    yield raw("TLS where none was asked for", lambda reply, data: b"\x15\x03\x01\x00\x02\x02\x46")
    yield raw("HTTP/2", lambda reply, data: b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\0" * 18)
    yield raw("HTTP/0.9", lambda reply, data: data)
    yield raw("a status of no number", lambda reply, data: head(reply, "OK") + data)
    yield raw("a status of 5 digits", lambda reply, data: head(reply, 20000) + data)
    yield raw(
        "a header without a colon",
        lambda reply, data: odd + data,
        FINE,
        *UNREADABLE,
    )
    yield raw("a first line of 1 MB", lambda reply, data: b"HTTP/1.1 200 " + b"x" * (1 << 20))
    yield raw("continue, and then nothing", lambda reply, data: go_on)
    yield raw(
        "continue, then the answer",
        lambda reply, data: go_on + with_length(reply, data),
        FINE,
    )
    yield raw(
        "hints, then the answer",
        lambda reply, data: hints + with_length(reply, data),
        FINE,
        *UNREADABLE,
    )
    yield raw("other protocols now", lambda reply, data: head(reply, 101))
    yield raw("no content", lambda reply, data: head(reply, 204))
    yield raw("a part of the content", lambda reply, data: with_length(reply, data[: len(data) // 2], 206))
    yield raw("never an answer", lambda reply, data: b"", DOWN, then="hang", is_slow=True)
    yield raw(
        "never a body", lambda reply, data: head(reply, Content_Length="9"), DOWN, then="hang", is_slow=True
    )
    yield raw(
        "never the end", lambda reply, data: with_length(reply, data)[:-3], DOWN, then="hang", is_slow=True
    )
    for part in ("head", "body"):
        yield NetworkFault(
            f"a byte at a time of the {part}", partial(_drip, part), frozenset({DOWN}), is_slow=True
        )


FAULTS: tuple[NetworkFault, ...] = (*_statuses(), *_redirects(), *_bodies(), *_transport())


def json_of(value: object) -> str:
    """A value to compare answers by."""
    return json.dumps(value, sort_keys=True, default=str)
