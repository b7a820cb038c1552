"""An odd row costs itself: never its page, its region or its provider, whichever list of a cloud has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from catalogs.providers.alibaba import explain
from catalogs.providers.aws import AwsProvider
from catalogs.providers.base import FetchOptions, frame_rows
from catalogs.providers.gcp_skus import build_rate_book, parse_skus
from catalogs.tables.normalize import number_of
from tests.catalogs.providers import azure_setup, gcp_setup
from tests.catalogs.providers.test_alibaba import provider as alibaba_provider
from tests.catalogs.providers.test_aws_faults import QUICK
from tests.catalogs.providers.test_odd_values import sku
from tests.fakes import alibaba, azure, gcp
from tests.fakes.alibaba import SdkLikeError
from tests.fakes.aws import NOW, environment, fake_aws
from tests.fakes.aws_clients import SharedClients

Fault = str | None


@contextmanager
def _aws(fault: Fault) -> Iterator[Any]:
    with fake_aws(fault) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in environment(server).items():
            patch.setenv(name, value)
        options = FetchOptions(**{**QUICK, "timeout_s": 10.0})
        yield AwsProvider(options, SharedClients(options), now=lambda: NOW)


@contextmanager
def _gcp(fault: Fault) -> Iterator[Any]:
    with gcp.fake_gcp(fault) as server:
        yield gcp_setup.provider(server)


@contextmanager
def _azure(fault: Fault) -> Iterator[Any]:
    with azure.fake_azure(fault) as server:
        yield azure_setup.provider(server, regions=tuple(azure_setup.REGIONS))


@contextmanager
def _alibaba(fault: Fault) -> Iterator[Any]:
    with alibaba.server(fault) as server:
        yield alibaba_provider(server)


CLOUDS = {"aws": (_aws, 2), "gcp": (_gcp, 9), "azure": (_azure, 0), "alibaba": (_alibaba, 9)}


def _all(provider: Any, regions: list[str]) -> list[set[tuple[tuple[str, str], ...]]]:
    """Machines, offers and quotas as sets of rows."""
    tables: list[Callable[[], Any]] = [
        lambda: provider.fetch_instance_types(regions),
        lambda: provider.fetch_offers(regions, provider.info.purchase_options),
        lambda: provider.fetch_quotas(regions),
    ]
    return [{tuple(sorted(row.items())) for row in frame_rows(table())} for table in tables]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_odd_rows_in_every_list_cost_themselves(
    cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PLANNER_CACHE_DIR", str(tmp_path / "cache"))
    opened, most = CLOUDS[cloud]
    with opened(None) as provider:
        regions = provider.fetch_regions()[:most] or list(azure_setup.REGIONS)
        before = _all(provider, regions)
    with opened("odd_rows") as provider:
        assert set(regions) <= set(provider.fetch_regions())
        after = _all(provider, regions)
        assert provider.options.log.failures == [] and provider.options.log.not_understood
    assert all(before) and after == before


def test_one_sku_in_another_currency_leaves_the_others_their_price() -> None:
    odd, fair, twin = sku(), sku(), sku()
    odd["skuId"], fair["skuId"], twin["skuId"] = "1", "2", "3"
    odd["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]["currencyCode"] = "XXX"
    book = build_rate_book(parse_skus({"skus": [odd, fair, twin]}))
    assert book.currency == "USD" and book.rates
    assert [note.reason for note in book.notes] == ["its currency is XXX, others are USD"]


@pytest.mark.parametrize("much", [10**40, "9" * 5000, "1e300"])
def test_an_amount_that_nothing_costs_is_no_number(much: object) -> None:
    with pytest.raises(ValueError, match="too large") as caught:
        number_of(much)
    assert len(str(caught.value)) < 100
    assert number_of("999,999,999.5") == number_of("999999999.5")


@pytest.mark.parametrize(
    "code",
    [
        "InstanceType.Offline",
        "IoOptimized.NotSupported",
        "DependencyViolation.IoOptimized",
        "InstanceDiskCategoryLimitExceed",
        "InstanceDiskNumber.LimitExceed",
        "InvalidDiskSize.TooSmall",
        "InvalidPeriod",
    ],
)
def test_a_type_that_alibaba_refuses_costs_itself(code: str) -> None:
    """Codes that the document of DescribePrice lists: of a type or its disks, not of the account or the region."""
    place = {"provider": "alibaba", "region": "cn-beijing", "api": "ecs:DescribePrice"}
    fault = explain(SdkLikeError(code, 403, "secret"), place, 1)
    assert fault is not None and fault.message.endswith(f"not sold here ({code})")
