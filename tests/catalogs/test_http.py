"""The HTTP client for public lists: what each fault of a server means to the user."""

from __future__ import annotations

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


def test_a_server_cannot_make_the_user_wait_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses_s: list[float] = []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", pauses_s.append)
    busy = Reply({}, 429, {"Retry-After": "3600"})
    with FakeServer({"/list": lambda request: busy}) as fake, _client() as client, pytest.raises(RateLimited):
        client.get_json(f"{fake.url}/list")
    assert pauses_s == [QUICK.max_wait_s] * QUICK.retries


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
