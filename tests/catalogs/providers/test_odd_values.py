"""Values of another kind than documented, in the places where a reader once broke off: each costs itself."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from catalogs.errors import CatalogError
from catalogs.providers.aws_spot import parse_advisor
from catalogs.providers.base import FetchLog
from catalogs.providers.gcp_skus import build_rate_book, parse_skus, sku_reader
from catalogs.providers.gcp_types import parse_quotas
from catalogs.providers.row_reader import RowReader
from tests.fakes.gcp import fixture


def sku() -> dict[str, Any]:
    """A SKU of a card, as the fake serves it."""
    return copy.deepcopy(
        next(item for item in fixture("skus") if "A100 GPU running in" in item["description"])
    )


ADVISOR: dict[str, Any] = {
    "ranges": [{"index": 0, "label": "<5%"}, {"index": 1, "label": "5-10%"}],
    "spot_advisor": {"us-east-1": {"Linux": {"a.large": {"r": 0, "s": 50}, "b.large": {"r": 1, "s": 40}}}},
}


@pytest.mark.parametrize("odd", [{"index": {}, "label": "5-10%"}, {"index": 1, "label": "x"}, {}])
def test_a_range_that_cannot_be_read_costs_the_machines_in_it(odd: dict[str, Any]) -> None:
    payload = copy.deepcopy(ADVISOR)
    payload["ranges"][1] = odd
    log = FetchLog()
    found = parse_advisor(payload, ["us-east-1"], RowReader("band", log))
    assert list(found) == [("us-east-1", "a.large")]
    assert len(log.not_understood) == 2  # the range, and the machine in it


def test_a_region_without_a_list_is_a_change_of_schema() -> None:
    payload = copy.deepcopy(ADVISOR)
    payload["spot_advisor"]["us-east-1"]["Linux"] = ["x"]
    with pytest.raises(CatalogError, match="Linux"):
        parse_advisor(payload, ["us-east-1"], RowReader("band", FetchLog()))


@pytest.mark.parametrize("regions", [[{}], "us-central1", [None]])
def test_a_sku_in_no_readable_region_costs_itself(regions: Any) -> None:
    log = FetchLog()
    read = parse_skus({"skus": [sku(), {**sku(), "serviceRegions": regions}]}, sku_reader(log))
    assert (len(read), len(log.not_understood)) == (1, 1)


def test_a_price_that_is_no_number_is_noted() -> None:
    odd = sku()
    odd["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]["units"] = float("nan")
    book = build_rate_book(parse_skus({"skus": [odd]}))
    assert not book.rates
    assert [note.reason for note in book.notes] == ["its price is not a number"]


@pytest.mark.parametrize("quotas", [None, True, float("nan"), "x"])
def test_quotas_that_are_no_list_are_refused_by_name(quotas: Any) -> None:
    with pytest.raises(CatalogError, match="is not a list"):
        parse_quotas("us-central1", quotas)
