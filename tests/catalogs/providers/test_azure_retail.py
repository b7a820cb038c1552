"""Azure Retail Prices: which items are prices, terms divided exactly, one price per machine and option."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.providers.azure_retail import in_force, offer_rows, parse_retail_page
from catalogs.providers.azure_types import Size
from catalogs.providers.base import FetchLog, SchemaChanged
from tests.fakes.azure import fixture

AS_OF = "2026-11-20"
ITEM: dict[str, Any] = fixture("retail_items")[0]


def _page(*items: dict[str, Any]) -> Any:
    return parse_retail_page({"Items": list(items), "NextPageLink": None})


def _item(**change: Any) -> dict[str, Any]:
    return {**ITEM, "savingsPlan": [], **change}


def _prices(*items: dict[str, Any], log: FetchLog | None = None) -> dict[str, str]:
    found = in_force(_page(*items).prices, AS_OF, log or FetchLog())
    return {price.option: str(price.per_hour) for price in found}


def test_on_demand_and_savings_plans_of_one_item() -> None:
    assert _prices(ITEM) == {
        "on_demand": "27.197",
        "savings_plan_1y": "20.669721",
        "savings_plan_3y": "13.5985",
    }


@pytest.mark.parametrize(
    ("term", "option", "hourly"),
    [("1 Year", "reserved_1y", "17.407191781"), ("3 Years", "reserved_3y", "5.802397260")],
)
def test_a_reservation_is_priced_for_its_whole_term(term: str, option: str, hourly: str) -> None:
    item = _item(type="Reservation", reservationTerm=term, retailPrice=152487.0)
    assert _prices(item) == {option: hourly}
    (row,) = offer_rows(
        in_force(_page(item).prices, AS_OF, FetchLog()), [ITEM["armSkuName"]], [], {option}, AS_OF, FetchLog()
    )
    assert row["term_hours"] == {"1 Year": "8760", "3 Years": "26280"}[term]


@given(total=st.integers(1, 10_000_000))
def test_the_term_is_paid_back_to_the_cent(total: int) -> None:
    item = _item(type="Reservation", reservationTerm="1 Year", retailPrice=float(total))
    hourly = Decimal(_prices(item)["reserved_1y"])
    assert abs(hourly * 8760 - total) < Decimal("0.00001")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"productName": "Virtual Machines NDasr A100 v4 Series Windows"}, "Windows"),
        ({"skuName": "ND96asr v4 Low Priority"}, "Low Priority"),
        ({"meterName": "ND96asr v4 Low Priority"}, "Low Priority"),
        ({"productName": "NDasr A100 v4 Series CloudServices"}, "cloud services"),
        ({"productName": "NDasr A100 v4 Series Cloud Services"}, "cloud services"),
        ({"productName": "NDasr A100 v4 Series Dedicated Host"}, "dedicated host"),
        ({"type": "DevTestConsumption"}, "dev/test"),
        ({"isPrimaryMeterRegion": False}, "not the primary meter of its region"),
        ({"armSkuName": ""}, "not bound to a size and region"),
        ({"type": "Reservation", "reservationTerm": "5 Years"}, "reservation of '5 Years'"),
    ],
)
def test_other_products_are_left_aside_and_counted(change: dict[str, Any], reason: str) -> None:
    page = _page(_item(**change))
    assert (page.prices, page.odd, dict(page.left_aside)) == ((), (), {reason: 1})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"unitOfMeasure": "1/Month"}, "unit is '1/Month'"),
        ({"type": "Enigma"}, "'Enigma' is not known"),
        ({"tierMinimumUnits": 10}, "tiered"),
        ({"type": "Reservation", "reservationTerm": "2 Years"}, "reservation of '2 Years'"),
    ],
)
def test_what_is_strange_is_reported(change: dict[str, Any], reason: str) -> None:
    page = _page(_item(**change))
    assert page.prices == ()
    assert reason in page.odd[0][1]


def test_spot_is_told_by_its_name() -> None:
    assert _prices(_item(skuName="ND96asr v4 Spot", retailPrice=10.8788)) == {"spot": "10.8788"}
    assert _prices(_item(meterName="ND96asr v4 Spot", retailPrice=10.8788)) == {"spot": "10.8788"}


@pytest.mark.parametrize("number", [0.1, 0.454, 27.197, 31.3245, 0.6787704, 98.32, 1e-7, 123456.789])
def test_amounts_are_those_that_were_published(number: float) -> None:
    assert Decimal(_prices(_item(retailPrice=number))["on_demand"]) == Decimal(repr(number))


@pytest.mark.parametrize("name", ["armSkuName", "armRegionName", "retailPrice", "type", "productName"])
def test_an_item_without_a_field_costs_itself_and_is_named(name: str) -> None:
    broken = {key: value for key, value in ITEM.items() if key != name}
    page = _page(ITEM, broken)
    assert (len(page.prices), page.n_refused) == (3, 1)
    assert [reason for _, reason in page.odd] == [f"{name}: missing or not as documented"]


def test_an_item_without_the_name_of_its_sku_has_that_of_its_meter() -> None:
    bare = {key: value for key, value in _item(meterName="ND96asr v4 Spot").items() if key != "skuName"}
    assert _prices(bare) == {"spot": "27.197"}


@pytest.mark.parametrize("payload", [{}, [], {"Items": None}])
def test_another_form_is_a_change_of_schema(payload: Any) -> None:
    with pytest.raises(SchemaChanged):
        parse_retail_page(payload)


@pytest.mark.parametrize("amount", [None, "x", -1, float("nan")])
def test_an_amount_that_is_none_costs_its_row(amount: Any) -> None:
    page = _page(_item(retailPrice=amount), ITEM, 3)
    assert (len(page.prices), page.n_refused) == (3, 2)
    assert page.odd[0][1].startswith("retailPrice")


def test_a_savings_plan_of_an_unknown_term_costs_itself() -> None:
    odd, good = {"term": "7 Years", "retailPrice": 1.0}, {"term": "1 Year", "retailPrice": "1,020.5"}
    page = _page(_item(savingsPlan=[odd, good]))
    assert {price.option: str(price.per_hour) for price in page.prices} == {
        "on_demand": "27.197",
        "savings_plan_1y": "1020.5",
    }
    assert page.odd[0][0].startswith("savings plan of Standard_ND96asr_v4")


def test_windows_and_expired_twins_delete_no_price() -> None:
    twins = [
        _item(productName="Virtual Machines NDasrA100v4 Srs Win", retailPrice=30.0),
        _item(skuName="ND96asr v4 Expired", retailPrice=0.0),
        _item(retailPrice=0.0),
        _item(retailPrice=27.19),
    ]
    assert _prices(_item(), *twins) == {"on_demand": "27.197"}
    assert _page(*twins).left_aside == {"Windows": 1, "expired": 1}


def test_a_size_listed_twice_is_closed_only_where_both_entries_are() -> None:
    closed = Size(
        ITEM["armSkuName"], "eastus", (), Decimal(96), Decimal(900), Decimal(8), "x86_64", True, None, "x"
    )
    prices = in_force(_page(_item()).prices, AS_OF, FetchLog())
    for sizes, capacity in (([closed, closed], "0"), ([closed, replace(closed, restriction="")], "")):
        rows = offer_rows(prices, [ITEM["armSkuName"]], sizes, {"on_demand"}, AS_OF, FetchLog())
        assert [row["capacity"] for row in rows] == [capacity]


def test_the_newest_price_in_force_counts() -> None:
    old = _item(retailPrice=1.0, effectiveStartDate="2020-01-01T00:00:00Z")
    coming = _item(retailPrice=2.0, effectiveStartDate="2099-01-01T00:00:00Z")
    assert _prices(old, _item(), coming) == {"on_demand": "27.197"}
    assert _prices(coming, _item(), old) == {"on_demand": "27.197"}


def test_two_prices_of_one_day_are_both_refused_and_told() -> None:
    log = FetchLog()
    assert _prices(_item(retailPrice=1.0), _item(retailPrice=2.0), log=log) == {}
    assert "2 prices of the same day: 1.0, 2.0" in log.not_understood[0].reason
    assert _prices(_item(), _item()) == {"on_demand": "27.197"}


def test_a_price_of_zero_is_refused_and_told() -> None:
    log = FetchLog()
    assert _prices(_item(retailPrice=0.0), log=log) == {}
    assert log.not_understood[0].reason == "the price is zero"


@pytest.mark.parametrize(
    ("spot", "region", "flags"),
    [
        (10.0, "eastus", ""),
        (27.197, "eastus", "spot_equals_on_demand"),
        (30.0, "eastus", "spot_equals_on_demand"),
        (5.0260056, "eastus", "administered_floor"),
        (10.0, "usgovvirginia", "restricted_region"),
    ],
)
def test_flags_of_spot(spot: float, region: str, flags: str) -> None:
    items = [_item(armRegionName=region), _item(armRegionName=region, skuName="X Spot", retailPrice=spot)]
    prices = in_force(_page(*items).prices, AS_OF, FetchLog())
    rows = offer_rows(prices, [ITEM["armSkuName"]], [], {"spot"}, AS_OF, FetchLog())
    assert [(row["purchase_option"], row["flags"]) for row in rows] == [("spot", flags)]


def test_the_spelling_of_a_size_is_the_known_one() -> None:
    prices = in_force(_page(_item(armSkuName="standard_nd96ASR_v4")).prices, AS_OF, FetchLog())
    rows = offer_rows(prices, ["Standard_ND96asr_v4"], [], {"on_demand"}, AS_OF, FetchLog())
    assert rows[0]["instance_type"] == "Standard_ND96asr_v4"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"skuName": "NC24ads A100 v4 Windows"}, "Windows"),
        ({"serviceName": "Azure Machine Learning", "retailPrice": 0.001}, "another service"),
        ({"productName": "Virtual Machines NCads A100 v4 Series Red Hat Enterprise Linux"}, "licences"),
        ({"meterName": "NC24ads A100 v4 Promo", "retailPrice": 1.0}, "promotional"),
    ],
)
def test_a_price_of_something_else_costs_the_machines_own_nothing(
    fields: dict[str, Any], reason: str
) -> None:
    """Constructed rows: the same size, region and day as the Linux price, at another price."""
    plain = _item(serviceName="Virtual Machines")
    page = _page(plain, {**plain, "retailPrice": 99.0, **fields})
    assert page.left_aside == {reason: 1}
    log = FetchLog()
    assert [price.per_hour for price in in_force(page.prices, "2026-11-28", log)] == [page.prices[0].per_hour]
    assert not log.not_understood


def test_a_price_that_has_ended_is_not_in_force() -> None:
    ended = _item(
        effectiveStartDate="2026-10-01T00:00:00Z", effectiveEndDate="2026-10-31T23:59:59Z", retailPrice=1.0
    )
    page = _page(_item(), ended)
    (price,) = in_force(page.prices, "2026-11-28", FetchLog())
    assert price == page.prices[0]
    (earlier,) = in_force(page.prices, "2026-10-15", FetchLog())
    assert earlier == page.prices[1]
