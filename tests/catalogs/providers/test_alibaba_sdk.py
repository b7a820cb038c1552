"""The official SDK against the fake; skipped where the extra `alibaba` is not installed."""

from __future__ import annotations

from typing import Any

import pytest

from catalogs.providers.alibaba import create
from catalogs.providers.base import (
    CredentialsMissing,
    FetchOptions,
    PermissionDenied,
    RateLimited,
    Unreachable,
    frame_rows,
)
from catalogs.refresh.checking import check_fetched
from tests.catalogs.providers.test_alibaba import BOTH, QUICK
from tests.fakes import alibaba as fake

pytest.importorskip("alibabacloud_ecs20140526", reason="needs the extra: pip install '.[alibaba]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the SDK's own modules


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
