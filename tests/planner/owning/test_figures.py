"""Laws of owning against renting: closed forms, what more use or a dearer machine does, and re-runs of the tornado."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.owning.figures import break_even_month, figures_of, pairs_of
from planner.owning.model import OWN_SITE, Factor, Fixed, Rent
from planner.owning.tornado import ends_of, named, spreads, tornado
from tests.draws import draws

HOURLY = Rent("on_demand", "", "a/b/-/c/on_demand/-", "x", 8.0, 0, 0.0, "listed", False, "s", "2026-01")
TERM = replace(HOURLY, option="reserved_1y", term_months=12, upfront_usd=1000.0)
SPOT = replace(HOURLY, option="spot", spot=True)
BASE = {
    "hardware_usd": 120_000.0, "power_kw": 10.0, "utilisation_ratio": 0.5, "years": 4.0, "residual_ratio": 0.25,
    "capital_ratio": 0.0, "idle_ratio": 0.2, "maintenance_ratio": 0.0, "failures_per_year": 0.0, "repair_days": 4.0,
    "spares_ratio": 0.0, "price_change_ratio": 0.0, "lost_ratio": 0.1, "own_site.usd_per_kwh": 0.1,
    "own_site.pue": 1.5, "own_site.hosting_usd_per_month": 0.0, "own_site.usd_per_kw_month": 0.0,
    "own_site.staff_fte": 0.0, "own_site.staff_usd_per_year": 0.0, "cloud.on_demand.usd_per_accelerator_hour": 1.0,
    "cloud.on_demand.speed_ratio": 1.0, "cloud.spot.usd_per_accelerator_hour": 0.5, "cloud.spot.speed_ratio": 1.0,
    "cloud.reserved_1y.usd_per_accelerator_hour": 0.6, "cloud.reserved_1y.speed_ratio": 1.0,
}  # fmt: skip
FIXED = Fixed(8, 1, (OWN_SITE,), 0.1, 0.0, 4.0, (HOURLY, SPOT, TERM))
SHARE = st.floats(0.01, 1.0)
CASES = st.fixed_dictionaries({
    "hardware_usd": st.floats(1_000, 1e6), "power_kw": st.floats(0.5, 20), "utilisation_ratio": SHARE,
    "years": st.sampled_from([1.0, 2.5, 3.0, 4.0, 6.0]), "residual_ratio": SHARE, "idle_ratio": SHARE,
    "capital_ratio": st.floats(0.0, 0.3), "maintenance_ratio": st.floats(0.0, 0.2),
    "failures_per_year": st.floats(0.0, 0.2), "repair_days": st.floats(0.0, 30.0), "spares_ratio": st.floats(0.0, 0.2),
    "price_change_ratio": st.floats(-0.3, 0.2), "lost_ratio": st.floats(0.0, 0.5),
    "own_site.usd_per_kwh": st.floats(0.0, 0.5), "own_site.staff_fte": st.floats(0.0, 1.0),
    "cloud.on_demand.usd_per_accelerator_hour": st.floats(0.05, 10.0),
    "cloud.on_demand.speed_ratio": st.floats(0.3, 3.0),
}).map(lambda changed: {**BASE, **changed, "own_site.staff_usd_per_year": 100_000.0})  # fmt: skip


def test_a_toy_has_its_closed_form() -> None:
    """At 0 % capital: price + power less resale; 8 x 730 x 0.5 useful hours a month at one dollar."""
    found = figures_of(BASE, FIXED)
    power = 10.0 * (0.5 + 0.2 * 0.5) * 730 * 1.5 * 0.1
    own, hourly, spot, term = (named(found, name) for name in (OWN_SITE, "on_demand", "spot", "reserved_1y"))
    assert found.months == 48
    assert found.useful_hours_per_month == pytest.approx(2920.0)
    assert own.npv_usd == pytest.approx(120_000 * 0.75 + 48 * power)
    assert own.cash_usd[0] == 120_000
    assert own.cash_usd[-1] == pytest.approx(power - 30_000)
    assert hourly.npv_usd == pytest.approx(48 * 2920.0)
    assert hourly.usd_per_useful_hour == pytest.approx(1.0)
    assert spot.usd_per_useful_hour == pytest.approx(0.5 / 0.9)
    assert term.npv_usd == pytest.approx(48 * 8 * 730 * 0.6 + 4 * 1000)  # every hour is paid, used or not
    assert term.cash_usd[12] == pytest.approx(8 * 730 * 0.6 + 1000)  # a renewal


def test_discounting_is_an_annuity() -> None:
    found = figures_of({**BASE, "capital_ratio": 0.08}, FIXED)
    monthly = 1.08 ** (1 / 12) - 1
    factor = (1 - (1 + monthly) ** -48) / monthly
    assert named(found, "on_demand").npv_usd == pytest.approx(2920.0 * factor)
    assert named(found, "on_demand").usd_per_useful_hour == pytest.approx(1.0)


@draws(60)
@given(CASES)
def test_break_even_is_the_first_month_in_which_owning_has_cost_no_more(values: dict[str, float]) -> None:
    found = figures_of(values, FIXED)
    own = list(accumulate(named(found, OWN_SITE).cash_usd))
    for pair in pairs_of(values, FIXED, found):
        rent = list(accumulate(named(found, pair.rent).cash_usd))
        reached = [
            month for month, (a, b) in enumerate(zip(own, rent, strict=True)) if a <= b + 1e-6 * abs(a)
        ]
        strictly = [
            month for month, (a, b) in enumerate(zip(own, rent, strict=True)) if a <= b - 1e-6 * abs(a)
        ]
        if pair.break_even_month is None:
            assert not strictly
        else:
            assert pair.break_even_month in reached
            assert not strictly or pair.break_even_month <= strictly[0]
            assert all(month >= pair.break_even_month for month in strictly)


@draws(40)
@given(CASES)
def test_npv_without_capital_cost_is_the_sum_of_cash(values: dict[str, float]) -> None:
    found = figures_of({**values, "capital_ratio": 0.0}, FIXED)
    for way in (*found.own, *found.rent):
        assert way.npv_usd == pytest.approx(way.total_usd) == pytest.approx(sum(way.cash_usd))


@draws(40)
@given(CASES, st.floats(1.01, 3.0))
def test_owning_moves_with_its_inputs(values: dict[str, float], factor: float) -> None:
    """More use costs less per useful hour; a dearer machine, dearer power and more capital cost never less."""

    def cost(**changed: float) -> float:
        return named(figures_of({**values, **changed}, FIXED), OWN_SITE).usd_per_useful_hour

    base = cost()
    used = min(1.0, values["utilisation_ratio"] * factor)
    if base > 0:
        assert cost(utilisation_ratio=used) <= base * (1 + 1e-9)
    assert cost(**{"own_site.usd_per_kwh": values["own_site.usd_per_kwh"] * factor}) >= base
    assert cost(residual_ratio=min(1.0, values["residual_ratio"] * factor)) <= base
    if values["residual_ratio"] ** (values["years"] / 4.0) <= 1.0:
        assert cost(hardware_usd=values["hardware_usd"] * factor) >= base - 1e-9


@draws(40)
@given(CASES)
def test_break_even_utilisation_is_where_both_cost_the_same(values: dict[str, float]) -> None:
    found = figures_of(values, FIXED)
    for pair in pairs_of(values, FIXED, found):
        ratio = pair.break_even_utilisation_ratio
        if ratio is None:
            assert (pair.saving_usd >= 0) == (pair.holds == "always")
            continue
        at = figures_of({**values, "utilisation_ratio": max(ratio, 1e-9)}, FIXED)
        own, rent = named(at, OWN_SITE).npv_usd, named(at, pair.rent).npv_usd
        assert own == pytest.approx(rent, rel=1e-6, abs=1.0)
        more = values["utilisation_ratio"] >= ratio
        if abs(values["utilisation_ratio"] - ratio) > 1e-6:
            assert (pair.saving_usd >= -1e-3) == (more if pair.holds == "from" else not more)


def factors_of(values: dict[str, float], spread: float) -> list[Factor]:
    def high(key: str, value: float) -> float:
        return min(value * spread, 1.0) if key == "utilisation_ratio" else value * spread

    return [
        Factor(key, key, value / spread, value, high(key, value), "", "given")
        for key, value in values.items()
    ]


@draws(15)
@given(CASES, st.floats(1.0, 1.5))
def test_ends_of_the_tornado_are_runs_of_their_own(values: dict[str, float], spread: float) -> None:
    factors = factors_of(values, spread)
    found, ends = figures_of(values, FIXED), ends_of(factors, FIXED)
    bars = tornado(factors, ends, found, OWN_SITE, "on_demand")
    by_key = {factor.key: factor for factor in factors}
    for bar in bars:
        for end, value in ((bar.low, by_key[bar.key].low), (bar.high, by_key[bar.key].high)):
            again = figures_of({**values, bar.key: value}, FIXED)
            own, rent = named(again, OWN_SITE), named(again, "on_demand")
            assert end.saving_usd_per_useful_hour == rent.usd_per_useful_hour - own.usd_per_useful_hour
            assert end.break_even_month == break_even_month(own.cash_usd, rent.cash_usd)
    base = named(found, "on_demand").usd_per_useful_hour - named(found, OWN_SITE).usd_per_useful_hour
    widths = [max(abs(e.saving_usd_per_useful_hour - base) for e in (bar.low, bar.high)) for bar in bars]
    assert widths == sorted(widths, reverse=True)
    for one in spreads(found, ends):
        assert one.low <= one.value <= one.high


def test_a_factor_without_a_range_has_no_bar_and_widens_nothing() -> None:
    factors = factors_of(BASE, 1.0)
    found, ends = figures_of(BASE, FIXED), ends_of(factors, FIXED)
    assert not ends
    assert tornado(factors, ends, found, OWN_SITE, "spot") == ()
    assert all(one.low == one.value == one.high for one in spreads(found, ends))


def test_failures_cost_hours_and_cards_and_the_warranty_pays_for_cards() -> None:
    failing = {**BASE, "failures_per_year": 0.5}
    paid, covered = figures_of(failing, FIXED), figures_of(failing, replace(FIXED, warranty_years=1.0))
    assert paid.useful_hours_per_month == pytest.approx(2920.0 * (1 - 0.5 * 8 * 4 / 365))
    cards = 0.5 * 8 * 0.1 * 120_000 / 12
    own, spared = named(paid, OWN_SITE).cash_usd, named(covered, OWN_SITE).cash_usd
    assert [a - b for a, b in zip(own[1:], spared[1:], strict=True)] == pytest.approx(
        [cards] * 12 + [0.0] * 36
    )
