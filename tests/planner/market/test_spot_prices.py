"""Offers of a catalog at their quotes and at the price to expect: kinds, ages, modes, the plan and its judge."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from planner.judge.prices import expected_price, quotes_of, scaled
from planner.market.spot_prices import KINDS, PriceBook, price_book
from tests.conftest import ROOT
from tests.planner.spine_catalogs import A10G, Offer, make_catalog, plan_on, work

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Table

NOW = date(2026, 11, 20)
PLACES = ("us-east-1", "us-east-2", "us-west-2", "eu-west-1", "ca-central-1")


def market(spot: tuple[str, ...], **changes: Any) -> list[Offer]:
    """One type at 10 USD on-demand in five regions and on spot in some of them."""
    listed = [Offer(A10G, region, "10") for region in PLACES]
    given = {"basis": "observed", "as_of": "2026-11-20"} | changes
    return listed + [
        Offer(A10G, region, price, "spot", **given) for region, price in zip(PLACES, spot, strict=False)
    ]


def book_of(offers: list[Offer], mode: str = "expected", start: date = NOW) -> tuple[PriceBook, Any]:
    table = make_catalog(offers).offers
    return price_book(table, table.number("price_per_hour"), mode, NOW, start), table


def kinds(book: PriceBook) -> list[str]:
    return [KINDS[code] for code in book.kind.tolist()[len(PLACES) :]]


def test_a_quote_of_today_counts_as_it_is_and_age_is_waiting() -> None:
    offers = market(("1.2", "3", "3.2", "3.4"))
    today, _ = book_of(offers)
    np.testing.assert_array_equal(today.expected_ratio, 1.0)
    later, _ = book_of(offers, start=NOW + timedelta(days=91))
    aged, _ = book_of(market(("1.2", "3", "3.2", "3.4"), as_of=str(NOW - timedelta(days=91))))
    np.testing.assert_array_equal(later.expected_ratio, aged.expected_ratio)
    assert later.expected_ratio[len(PLACES)] > 1.15
    assert (later.expected_ratio[: len(PLACES)] == 1.0).all()


@pytest.mark.parametrize(
    ("price", "basis", "kind"),
    [("1.0", "derived", "no_market"), ("1.1", "derived", "derived"), ("9.95", "observed", "no_market"),
     ("1.0", "observed", "observed"), ("1.0", "declared", "declared")],
)  # fmt: skip
def test_a_price_at_a_cap_or_at_list_is_no_market(price: str, basis: str, kind: str) -> None:
    book, _ = book_of(market((price,), basis=basis))
    assert kinds(book) == [kind]
    if kind == "no_market":
        assert book.expected_ratio[-1] * float(price) == pytest.approx(10.0)


def test_a_derived_price_where_only_others_are_quoted_is_no_market() -> None:
    offers = [*market(("3", "3.1")), Offer(A10G, "eu-west-1", "1.5", "spot", basis="derived")]
    assert kinds(book_of(offers)[0]) == ["observed", "observed", "no_market"]


def test_quoted_believes_quotes_and_keeps_the_interval() -> None:
    offers = market(("1.2", "3", "3.2", "3.4"), as_of="2026-08-20")
    expected, quoted = book_of(offers)[0], book_of(offers, "quoted")[0]
    np.testing.assert_array_equal(quoted.expected_ratio, 1.0)
    assert (quoted.p10_ratio <= 1.0).all() and (quoted.p90_ratio >= 1.0).all()
    assert (quoted.p90_ratio >= expected.p90_ratio).all()


@pytest.mark.parametrize("mode", ["expected", "quoted"])
def test_the_judge_comes_to_the_same_prices_on_the_bundled_catalog(mode: str) -> None:
    from catalogs.store.load import load_catalog

    table = load_catalog(None, as_of=NOW).offers
    usd = table.number("price_per_hour") * np.where(table.equals("currency", "CNY"), 0.14, 1.0)
    start = NOW + timedelta(days=3)
    book = price_book(table, usd, mode, NOW, start)
    judged = quotes_of(table, usd.tolist(), mode == "quoted", NOW, start)
    assert [quote.kind for quote in judged] == [KINDS[code] for code in book.kind.tolist()]
    for name, column in (("expected", book.expected_ratio), ("p10", book.p10_ratio), ("p90", book.p90_ratio)):
        np.testing.assert_allclose([getattr(quote, name) for quote in judged], column, rtol=1e-12)
        for hours in (0.0, 30.0, 500.0, 3000.0, 30_000.0):
            later = book.during(f"{name}_ratio", np.arange(table.n_rows), np.full(table.n_rows, hours))
            mine = [getattr(quote.during(hours), name) for quote in judged]
            np.testing.assert_allclose(mine, later, rtol=1e-9)


@pytest.mark.parametrize("believed", [False, True])
def test_the_price_of_one_offer_follows_from_the_rows_that_decide_it(believed: bool) -> None:
    """`expected_price` looks at few rows; levels of the whole catalog say the same."""
    from catalogs.store.load import load_catalog

    table = load_catalog(None, as_of=NOW).offers
    start = NOW + timedelta(days=3)
    quotes = quotes_of(table, table.number("price_per_hour").tolist(), believed, NOW, start)
    whole = table.equals("currency", "USD") & (table.number("price_per_hour") > 0)
    rows = [row for option in set(table["purchase_option"]) for row in _some(table, whole, option)]
    assert len(rows) > 20
    for row in rows:
        listed = Fraction(str(table["price_per_hour"][row]))
        expected = scaled(listed, quotes[row].during(40.0).expected)
        got = expected_price(table, row, believed, NOW, start, 40.0)
        assert float(got) == pytest.approx(float(expected), rel=1e-9)


def _some(table: Table, among: Bools, option: str) -> list[int]:
    rows = np.flatnonzero(among & table.equals("purchase_option", option))
    return [int(row) for row in rows[:: max(len(rows) // 8, 1)]]


@pytest.mark.parametrize("half_days", [3, 30, 90, 365])
def test_half_of_the_run_counts_like_waiting(half_days: int) -> None:
    """A run of twice so many days pays what a run that starts so many days later expects at its start."""
    offers = market(("1.2", "3", "3.2", "3.4"))
    rows = np.arange(len(PLACES), len(offers))
    now, _ = book_of(offers)
    later, _ = book_of(offers, start=NOW + timedelta(days=half_days))
    run = np.full(len(rows), half_days * 48.0)
    for name in ("expected_ratio", "p10_ratio", "p90_ratio"):
        np.testing.assert_allclose(now.during(name, rows, run), getattr(later, name)[rows], rtol=1e-9)
    assert now.growth(rows, run)[0] > 1.003
    quoted, _ = book_of(offers, "quoted")
    np.testing.assert_array_equal(quoted.growth(rows, run), 1.0)


def test_the_cheapest_length_from_some_hours_on() -> None:
    """The lowest quote of a type rises towards its level, the highest falls: bounds take the end of its fall."""
    offers = market(("1.2", "3", "3.2", "8"))
    book, table = book_of(offers)
    rows = np.arange(table.n_rows)
    hours = np.full(len(rows), 100.0)
    later = book.cheapest_hours(rows, hours)
    assert later[len(PLACES)] == 100.0 and later[len(PLACES) + 3] > 100.0
    for many in (100.0, 400.0, 2000.0, 20_000.0):
        growth = book.growth(rows, np.full(len(rows), many))
        assert (book.growth(rows, later) <= growth * (1 + 1e-12)).all()
    assert (book.path is not None) and (book.path.least_growth <= book.growth(rows, later)).all()


def job(**preferences: Any) -> dict[str, Any]:
    text = (ROOT / "examples" / "bert-large.yaml").read_text(encoding="utf-8")
    import yaml

    sections: dict[str, Any] = yaml.safe_load(text)
    return {**sections, "preferences": preferences, "constraints": {"max_nodes": 1}, "data": {}}


def test_the_plan_shows_quote_expectation_and_interval() -> None:
    catalog = make_catalog(market(("1.2", "3", "3.2", "3.4"), as_of="2026-08-20"))
    line = plan_on(catalog, job()).plan.lines[0]
    assert (line.quoted_price_per_hour, line.price_kind, line.price_age_days) == (
        Decimal("1.2"),
        "observed",
        92.0,
    )
    assert line.price_per_hour > Decimal("1.3")
    assert line.price_p10_per_hour and line.price_p90_per_hour
    assert line.price_p10_per_hour < line.price_per_hour < line.price_p90_per_hour
    assert line.costs[0].unit_price == line.price_per_hour


def test_a_longer_run_expects_more_of_a_price_below_its_level() -> None:
    catalog = make_catalog(market(("1.2", "3", "3.2", "3.4")))
    short, long = (plan_on(catalog, job() | {"training": size}).plan for size in _sizes(1, 20))
    prices = [plan.lines[0].price_per_hour for plan in (short, long)]
    assert long.hours > 10 * short.hours
    assert Decimal("1.2") < prices[0] < prices[1]
    for plan in (short, long):
        compute = plan.lines[0].costs[0]
        assert compute.unit_price == plan.lines[0].price_per_hour
        assert plan.launch is not None and plan.launch.cost_p90_usd > plan.total_usd


def _sizes(*times: int) -> list[dict[str, Any]]:
    """The training of `job` on so many times 1e9 tokens."""
    return [{**job()["training"], "tokens": factor * 10**9} for factor in times]


def test_firm_prices_only() -> None:
    plan = plan_on(make_catalog(market(("1.2",))), job(prices="firm")).plan
    assert [line.purchase_option for line in plan.lines] == ["on_demand"]
    assert "firm_price" in {count.name for count in plan.filters}


def test_the_best_plan_on_known_prices_is_beside_one_on_a_derived_price() -> None:
    offers = market(("2", "2.2", "2.4"), basis="derived")
    assert plan_on(make_catalog(offers), job()).plan.lines[0].purchase_option == "on_demand"
    allowed = job()
    allowed["constraints"] = {**allowed.get("constraints", {}), "allow_derived": True}
    plan = plan_on(make_catalog(offers), allowed).plan
    assert plan.lines[0].price_kind == "derived"
    assert plan.on_known_prices is not None
    assert plan.on_known_prices.purchase_option == "on_demand"
    assert plan.on_known_prices.delta_cost_usd > 0
    assert plan_on(make_catalog(market(("2",))), job()).plan.on_known_prices is None


def test_a_list_price_has_a_spread_and_a_contract_has_none() -> None:
    listed = Offer(A10G, "us-east-1", "1.0", as_of="2026-05-01")
    line = plan_on(make_catalog([listed]), work()).plan.lines[0]
    assert line.price_kind == "listed"
    assert line.price_p10_per_hour is not None and line.price_p90_per_hour is not None
    assert line.price_p10_per_hour < line.price_per_hour == Decimal("1.0") < line.price_p90_per_hour
    block = plan_on(make_catalog([Offer(A10G, "us-east-1", "1.0", "capacity_block")]), work()).plan.lines[0]
    assert (block.price_kind, block.price_p10_per_hour) == ("firm", block.price_p90_per_hour)


@pytest.mark.parametrize(("known", "winner"), [("1.02", "us-east-1"), ("1.04", "eu-west-1")])
def test_near_ties_go_to_a_known_place(known: str, winner: str) -> None:
    """A list price without a place counts three percent dearer: that much a known place is worth."""
    nowhere = Offer(A10G, "eu-west-1", "1.0", flags="place_not_stated")
    plan = plan_on(make_catalog([nowhere, Offer(A10G, "us-east-1", known)]), work()).plan
    assert plan.lines[0].region == winner
    if winner == "eu-west-1":
        assert plan.lines[0].price_kind == "unplaced"
        assert plan.lines[0].quoted_price_per_hour == Decimal("1.0")
        assert plan.on_known_prices is not None
        assert any("place and stock not known" in text for text in plan.warnings)
