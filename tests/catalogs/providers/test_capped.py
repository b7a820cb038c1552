"""`--max-bytes` holds for answers that come through an SDK, packed or not, as for plain lists."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler

import pytest

from catalogs.providers.base import SchemaChanged
from tests.catalogs.providers.network_faults import Wire, head, send
from tests.catalogs.providers.network_harness import INTERFACES, QUICK
from tests.fakes.http_base import FakeServer, Reply

OPTIONS = replace(QUICK, max_bytes=20_000, timeout_s=30.0)
PACKED = {"gcp", "azure", "azure retail"}  # botocore unpacks no answers


def _grown(pack: Callable[[bytes], bytes], encoding: str) -> Wire:
    def wire(server: FakeServer, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        body = pack(reply.data() + b" " * OPTIONS.max_bytes)  # blanks behind an answer change nothing of it
        send(server, handler, head(reply, Content_Length=str(len(body)), Content_Encoding=encoding) + body)

    return wire


@pytest.mark.parametrize("interface", ["aws", *sorted(PACKED)])
def test_an_answer_above_the_limit_is_refused_by_name(interface: str) -> None:
    wires = [_grown(bytes, ""), *([_grown(gzip.compress, "gzip")] if interface in PACKED else [])]
    with INTERFACES[interface]() as (server, ask, secrets):
        assert ask(OPTIONS)
        for server.wire in wires:
            with pytest.raises(SchemaChanged, match="more than 20,000 bytes \\(--max-bytes\\)") as caught:
                ask(OPTIONS)
            assert not any(secret in str(caught.value) for secret in secrets)
