"""What a user of the forecast relies on: laws, months, awkward histories, intervals that hold."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.finops.forecast.ensemble import combine, weigh
from planner.finops.forecast.members import MEMBERS, all_paths
from planner.finops.forecast.model import forecast_daily, forecast_month_end, forecast_periods
from tests.draws import draws

START = np.datetime64("2026-01-01")


def days(n: int, start: np.datetime64 = START) -> NDArray[np.datetime64]:
    return start + np.arange(n)


def noisy(n: int = 160, seed: int = 1, noise: float = 0.05, level: float = 100.0) -> Floats:
    rng = np.random.default_rng(seed)
    week = 1 + 0.2 * np.sin(2 * np.pi * np.arange(n) / 7)
    return np.asarray(level * week * np.exp(rng.normal(0, noise, n)))


@draws(8)
@given(st.floats(1e-4, 1e7), st.integers(0, 50))
def test_cost_times_k_gives_forecast_times_k(factor: float, seed: int) -> None:
    cost = noisy(90, seed)
    one = forecast_daily(days(90), cost, horizon_days=20)
    scaled = forecast_daily(days(90), factor * cost, horizon_days=20)
    for name in ("total", "total_low", "total_high"):
        assert getattr(scaled, name) == pytest.approx(factor * getattr(one, name), rel=1e-6)
    assert scaled.expected == pytest.approx(factor * one.expected, rel=1e-6)
    assert scaled.p_over(factor * 2100) == pytest.approx(one.p_over(2100), abs=1e-6)


def test_dates_are_labels_as_far_as_months_allow() -> None:
    """28 years later the calendar is the same, so the forecast is; any other shift moves only the monthly member."""
    cost = noisy(100)
    one = forecast_daily(days(100), cost, horizon_days=30)
    later = forecast_daily(days(100, np.datetime64("2054-01-01")), cost, horizon_days=30)
    assert (later.expected == one.expected).all() and later.total_high == one.total_high
    shifted = days(100, START + 11)
    for name, member in MEMBERS.items():
        if name != "last_month":
            expected, moved = member(cost, days(100), 30), member(cost, shifted, 30)
            assert np.array_equal(expected, moved, equal_nan=True), name


@pytest.mark.parametrize("level", [0.0, 0.07, 1e6])
def test_what_never_changes_is_forecast_without_width(level: float) -> None:
    found = forecast_daily(days(60), np.full(60, level), horizon_days=31)
    assert found.expected == pytest.approx(np.full(31, level), rel=1e-9)
    assert found.total_low == found.total == found.total_high == pytest.approx(31 * level, rel=1e-9)
    assert found.backtest.coverage_ratio == 1.0
    assert found.p_over(31.1 * level + 1) == 0.0 and found.p_over(30.9 * level - 1) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_the_interval_widens_with_the_days_ahead(seed: int) -> None:
    found = forecast_daily(days(160), noisy(seed=seed, noise=0.1), horizon_days=60)
    cumulative = np.cumsum(found.expected)
    for half in (cumulative - found.cumulative_low, found.cumulative_high - cumulative):
        assert (np.diff(half) >= -1e-9).all() and half[0] > 0
    assert found.cumulative_high[-1] == pytest.approx(found.total_high)
    months = [(np.datetime64(f"2026-{m:02}-01"), np.datetime64(f"2026-{m + 1:02}-01")) for m in (7, 8, 9)]
    widths = [
        (one.high - one.low) / one.landing
        for one in forecast_periods(days(160), noisy(seed=seed, noise=0.1), periods=months)
    ]
    assert widths[2] >= 0.99 * widths[0]


def test_a_back_test_sees_no_later_day() -> None:
    """What the ensemble says at an origin is what it says when the history ends there."""
    cost = noisy(120, noise=0.1)
    cost[[58, 60, 98]] = (9_000.0, 700.0, 1e6)
    whole = combine(cost, days(120), 14)
    for origin in (30, 61, 100):
        cut = combine(cost[:origin], days(origin), 14)
        assert whole.paths[origin] == pytest.approx(cut.paths[-1], rel=1e-9)


def test_probability_of_going_over_fits_the_interval() -> None:
    found = forecast_daily(days(160), noisy(noise=0.1), horizon_days=30, level=0.8)
    assert found.p_over(found.total_high) == pytest.approx(0.1, abs=1e-6)
    assert found.p_over(found.total_low) == pytest.approx(0.9, abs=1e-6)
    assert found.p_over(found.total) == pytest.approx(0.5, abs=1e-6)
    chances = [found.p_over(amount) for amount in np.linspace(0, 2 * found.total, 80)]
    assert all(a >= b for a, b in itertools.pairwise(chances))
    assert chances[0] > 0.98 and chances[-1] < 0.02


def test_intervals_hold_as_often_as_they_say() -> None:
    """80 % over many series of different noise, on days the forecast did not see."""
    held = []
    for seed in range(40):
        cost = noisy(150, seed, noise=0.02 + 0.01 * (seed % 10))
        found = forecast_daily(days(120), cost[:120], horizon_days=30)
        held.append(found.total_low <= cost[120:].sum() <= found.total_high)
    assert 0.62 <= np.mean(held) <= 0.95


def test_weights_prefer_the_member_that_is_right() -> None:
    growing = 100.0 + 2.0 * np.arange(150)
    found = forecast_daily(days(150), growing, horizon_days=30)
    assert found.total == pytest.approx((100 + 2 * np.arange(150, 180)).sum(), rel=0.005)
    assert sum(found.weights.values()) == pytest.approx(1.0)
    assert found.weights["drift_28"] + found.weights["drift_56"] > 0.8


def test_a_member_that_is_wrong_where_most_are_exact_gets_no_weight() -> None:
    cost = np.full(90, 5.0)
    paths = all_paths(cost, days(90), 14)
    paths[2] *= 1.1
    found = weigh(cost, paths)
    assert found.weights[2, -1] < 1e-9
    assert found.paths[-1] == pytest.approx(np.full(14, 5.0), rel=1e-9)


def test_a_level_shift_is_followed_and_a_spike_is_not() -> None:
    shifted = noisy(150, noise=0.02) * np.where(np.arange(150) < 110, 1.0, 1.6)
    assert forecast_daily(days(150), shifted, horizon_days=30).total == pytest.approx(4800, rel=0.05)
    spiked = noisy(150, noise=0.02)
    spiked[140] *= 10
    assert forecast_daily(days(150), spiked, horizon_days=30).total == pytest.approx(3000, rel=0.07)


@pytest.mark.parametrize("ago", [1, 2, 10, 60])
@pytest.mark.parametrize("amount", [1e6, -1e6])
def test_a_purchase_or_refund_of_a_year_is_no_run_rate(ago: int, amount: float) -> None:
    cost = noisy(120)
    cost[-ago] = amount
    assert forecast_daily(days(120), cost, horizon_days=30).total == pytest.approx(3000, rel=0.05)


def test_a_charge_much_larger_than_the_rest_of_the_month_is_expected_again() -> None:
    cost = noisy(150)
    cost[::30] = 10_000.0
    assert forecast_daily(days(150), cost, horizon_days=30).total == pytest.approx(12_900, rel=0.1)


def test_growth_is_followed_across_a_fall_of_the_level() -> None:
    """Storage that grows by the day and was cleaned up some weeks ago still grows by as much."""
    grown = 100.0 + 2.0 * np.arange(180) + np.random.default_rng(2).normal(0, 1, 180)
    grown[120:] -= 200.0
    found = forecast_daily(days(150), grown[:150], horizon_days=30)
    assert found.total == pytest.approx(grown[150:].sum(), rel=0.08)


def test_a_charge_that_comes_once_a_month_is_expected_again() -> None:
    when = days(200)
    monthly = when == when.astype("datetime64[M]").astype("datetime64[D]") + 24
    cost = 10.0 + 500.0 * monthly
    known = when < np.datetime64("2026-07-20")
    landing = forecast_month_end(when[known], cost[known], month="2026-07")
    assert landing.landing == pytest.approx(31 * 10 + 500, rel=0.1)
    after = forecast_month_end(
        when, cost, month="2026-07"
    )  # known to July 19 too, by the length of the series
    assert after.days_left == 12


@pytest.mark.parametrize("n", [7, 8, 10, 14, 21, 35])
def test_short_histories_are_forecast_with_a_width(n: int) -> None:
    found = forecast_daily(days(n), noisy(n, noise=0.1), horizon_days=30)
    assert 2000 < found.total < 4200
    assert 0 <= found.total_low < found.total < found.total_high < 12000
    assert found.backtest.windows == max(n - 30 - 7 + 1, 0)


def test_one_charge_alone_has_a_width_within_reason() -> None:
    found = forecast_daily(days(40), np.r_[np.zeros(39), 1000.0], horizon_days=30)
    assert found.total_low < 1000 < found.total_high < 3 * 30 * 1000


def test_credits_and_zero_days_and_gaps() -> None:
    cost = noisy(90)
    cost[::9] = 0.0
    cost[40] = -800.0
    found = forecast_daily(days(90), cost, horizon_days=30)
    assert found.total_low < found.total < found.total_high and np.isfinite(found.expected).all()
    keep = np.delete(np.arange(90), [13, 50, 51])
    gappy = forecast_daily(days(90)[keep], noisy(90)[keep], horizon_days=30)
    assert gappy.filled_days == 3
    assert gappy.total == pytest.approx(forecast_daily(days(90), noisy(90), horizon_days=30).total, rel=0.02)


def test_many_absent_days_are_days_without_cost() -> None:
    """A machine of weekdays has no rows on weekends."""
    weekday = days(140)[np.is_busday(days(140))]
    found = forecast_daily(weekday, np.full(len(weekday), 10.0), horizon_days=28)
    assert found.filled_days == 0
    assert found.total == pytest.approx(200.0, rel=0.05)


def test_old_days_do_not_matter() -> None:
    cost = noisy(900)
    whole = forecast_daily(days(900), cost, horizon_days=20)
    assert whole.total == forecast_daily(days(900)[-800:], cost[-800:], horizon_days=20).total


def test_rows_may_come_in_any_order_and_days_before_the_start_do_not_count() -> None:
    cost = noisy(80)
    order = np.random.default_rng(3).permutation(80)
    one, mixed = (forecast_daily(days(80)[o], cost[o], horizon_days=9) for o in (np.arange(80), order))
    assert mixed.total == one.total
    late = np.r_[np.zeros(60), cost]
    assert forecast_daily(days(140, START - 60), late, horizon_days=9).total == pytest.approx(one.total)


def test_month_end_counts_what_is_known_and_forecasts_the_rest() -> None:
    when, cost = days(80), np.full(80, 10.0)  # to March 21
    found = forecast_month_end(when, cost, month="2026-03")
    assert (found.days_left, found.actual_to_date) == (10, 210.0)
    assert found.landing == pytest.approx(310.0) and found.low == found.high == found.landing
    assert found.p_over(309) == 1.0 and found.p_over(311) == 0.0
    over = forecast_month_end(when, cost, month="2026-02")
    assert (over.days_left, over.landing, over.p_over(279), over.p_over(281)) == (0, 280.0, 1.0, 0.0)
    ahead = forecast_month_end(when, cost, month="2026-05")
    assert (ahead.actual_to_date, ahead.days_left) == (0.0, 31) and ahead.landing == pytest.approx(310.0)


@pytest.mark.parametrize(
    ("last", "month", "left"),
    [("2028-02-10", "2028-02", 19), ("2027-02-10", "2027-02", 18), ("2026-12-31", "2026-12", 0),
     ("2026-12-31", "2027-01", 31), ("2026-03-29", "2026-03", 2), ("2100-02-27", "2100-02", 1)],
)  # fmt: skip
def test_months_end_on_their_last_day(last: str, month: str, left: int) -> None:
    when = np.datetime64(last) - np.arange(60)[::-1]
    found = forecast_month_end(when, np.ones(60), month=month)
    length = int((np.datetime64(month, "M") + 1).astype("datetime64[D]") - np.datetime64(f"{month}-01") == 0)
    assert found.days_left == left and length == 0
    assert found.landing == pytest.approx((found.end - found.start).days + 1)


@draws(25)
@given(
    st.lists(st.one_of(st.just(0.0), st.floats(-1e6, 1e9), st.floats(0, 10)), min_size=7, max_size=70),
    st.integers(1, 45),
)
@example([0.0] * 6 + [5e-324], 1)  # a hundredth of it is 0
def test_any_series_has_finite_ordered_figures(cost: list[float], horizon: int) -> None:
    found = forecast_daily(days(len(cost)), cost, horizon_days=horizon)
    slack = 1e-9 * (1 + abs(found.total))
    assert found.total_low <= found.total + slack and found.total <= found.total_high + slack
    for values in (found.expected, found.cumulative_low, found.cumulative_high):
        assert np.isfinite(values).all()
    assert 0.0 <= found.p_over(found.total) <= 1.0
    assert sum(found.weights.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("when", "cost", "options", "said"),
    [
        (days(5), np.ones(5), {}, "at least 7 days"),
        (days(20), np.ones(19), {}, "20 days but 19 costs"),
        (np.r_[days(20), days(1)], np.ones(21), {}, "2026-01-01 is given twice"),
        (days(20), np.r_[np.ones(19), np.nan], {}, "is not a number"),
        (days(20), np.ones(20), {"horizon_days": 0}, "horizon must be 1 to 750"),
        (days(20), np.ones(20), {"horizon_days": 9999}, "horizon must be 1 to 750"),
        (days(20), np.ones(20), {"level": 80}, "level must be above 0 and at most 0.98"),
    ],
)
def test_bad_input_is_named(when: object, cost: Floats, options: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        forecast_daily(when, cost, **({"horizon_days": 30} | options))  # type: ignore[arg-type]


def test_a_month_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="write 2026-10"):
        forecast_month_end(days(20), np.ones(20), month="October")
