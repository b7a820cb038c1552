"""The official SDK against the fake; skipped where the extra `alibaba` is not installed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from catalogs.providers.alibaba import create
from catalogs.providers.alibaba_sdk import sdk_client
from catalogs.providers.base import (
    CredentialsMissing,
    FetchLog,
    FetchOptions,
    PermissionDenied,
    RateLimited,
    SchemaChanged,
    Unreachable,
    frame_rows,
)
from catalogs.refresh.checking import check_fetched
from tests.catalogs.providers.test_alibaba import BOTH, QUICK
from tests.fakes import alibaba as fake
from tests.fakes.http_base import FakeServer, Reply

pytest.importorskip("alibabacloud_ecs20140526", reason="needs the extra: pip install '.[alibaba]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the SDK's own modules
SPARE_S = 30.0  # a busy machine; an answer that is waited for never ends


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_ID", "LTAIsecretKeyIdOfTheUser")
    monkeypatch.setenv("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "alibabaSecretOfTheUser0123456789")


def _options(url: str, **more: Any) -> FetchOptions:
    return FetchOptions(**{**QUICK, "endpoints": {"alibaba_ecs": url}, **more})


def test_the_sdk_reads_what_the_plain_client_reads() -> None:
    with fake.server() as server:
        one = create(_options(server.url))
        regions = one.fetch_regions()
        types, offers = (
            frame_rows(one.fetch_instance_types(regions)),
            frame_rows(one.fetch_offers(regions, BOTH)),
        )
        quotas = frame_rows(one.fetch_quotas(regions))
    assert (len(types), len(offers), len(quotas)) == (5, 30, 4)
    assert check_fetched(types, offers, regions).refused == {}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("throttle_forever", RateLimited),
        ("http_500_forever", Unreachable),
        ("slow", Unreachable),
        ("truncated_body", Unreachable),
        ("connection_reset", Unreachable),
        ("expired_credentials", CredentialsMissing),
        ("access_denied", PermissionDenied),
    ],
)
def test_the_sdks_own_exceptions_are_understood(fault: str, error: type[Exception]) -> None:
    with fake.server({"DescribeRegions": fault}, slow_s=2.0) as server, pytest.raises(error) as caught:
        limit_s = 1.0 if fault == "slow" else 10.0
        create(_options(server.url, retries=1, timeout_s=limit_s)).fetch_regions()
    assert "LTAI" not in str(caught.value) and "alibabaSecret" not in str(caught.value)


@pytest.fixture
def endless() -> Iterator[Callable[[bytes, float], str]]:
    """A server whose answers never end: `endless(part, pause_s)` is its URL, sending a part after each pause."""
    stop = threading.Event()
    with contextlib.ExitStack() as stack:

        def start(part: bytes, pause_s: float) -> str:
            class Endless(BaseHTTPRequestHandler):
                def do_POST(self) -> None:
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.end_headers()
                    with contextlib.suppress(OSError):  # the client hangs up, which is what it should do
                        while not stop.wait(pause_s):
                            self.wfile.write(part)
                            self.wfile.flush()

                do_GET = do_POST

                def log_message(self, *_: Any) -> None:
                    pass

            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Endless))
            stack.callback(server.shutdown)
            stack.callback(stop.set)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            return f"http://127.0.0.1:{server.server_port}"

        yield start


def test_an_answer_of_a_byte_a_second_ends_at_the_time_limit(
    endless: Callable[[bytes, float], str],
) -> None:
    begin = time.monotonic()
    with pytest.raises(Unreachable, match=r"in time \(2 s\)"):
        create(_options(endless(b" ", 1.0), retries=3, timeout_s=2.0)).fetch_regions()
    assert time.monotonic() - begin < 2.0 + SPARE_S


def test_the_time_limit_is_that_of_all_tries_together() -> None:
    with fake.server({"DescribeRegions": "http_500_forever"}, latency_s=0.4) as server:
        begin = time.monotonic()
        with pytest.raises(Unreachable, match=r"in time \(1 s\)"):
            create(_options(server.url, retries=50, timeout_s=1.0)).fetch_regions()
    assert time.monotonic() - begin < 1.0 + SPARE_S


def test_an_answer_without_end_is_refused_at_the_byte_limit(endless: Callable[[bytes, float], str]) -> None:
    with pytest.raises(SchemaChanged, match=r"more than 1,000,000 bytes \(--max-bytes\)"):
        create(
            _options(endless(b" " * 65_536, 0.0), retries=0, timeout_s=60.0, max_bytes=1_000_000)
        ).fetch_regions()


def test_no_redirect_is_followed() -> None:
    with fake.server() as other:
        reply = Reply(b"", 307, {"Location": f"{other.url}/"})
        with FakeServer({"*": lambda _: reply}) as server, pytest.raises(Unreachable):
            create(_options(server.url, retries=0)).fetch_regions()
        assert not other.requests


def test_a_version_of_the_sdk_without_such_sessions_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from darabonba.core import DaraCore

    monkeypatch.delattr(DaraCore, "_sessions")
    log = FetchLog()
    sdk_client("cn-hangzhou", _options("http://127.0.0.1:9", log=log))
    assert any("--max-bytes does not hold" in said for said in log.remarks)
