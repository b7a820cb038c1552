"""Changes of the level, monthly charges, and the run rate as the bar, on generated bills."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.forecast_regimes import REGIMES, bills
from catalogs.tables.table import Floats
from planner.finops.forecast.clean import regular_series
from planner.finops.forecast.ensemble import combine, window_totals
from planner.finops.forecast.level import steady_level
from planner.finops.forecast.model import forecast_daily, forecast_month_end
from planner.finops.forecast.monthly import monthly_charges

START = np.datetime64("2026-01-01")


def days(n: int) -> NDArray[np.datetime64]:
    return START + np.arange(n)


def noisy(n: int, seed: int = 1, noise: float = 0.04) -> Floats:
    return np.asarray(100 * np.exp(np.random.default_rng(seed).normal(0, noise, n)))


def fees(n: int, *, last_day: bool, amount: float = 800.0) -> Floats:
    when = days(n) + int(last_day)
    return np.where(when == when.astype("datetime64[M]").astype("datetime64[D]"), amount, 0.0)


@pytest.mark.parametrize("factor", [0.5, 1.7, 3.0])
@pytest.mark.parametrize(("known", "most"), [(8, 0.12), (10, 0.06), (21, 0.03)])
def test_a_shift_of_the_level_is_followed_within_days(factor: float, known: int, most: float) -> None:
    """A week after it most of it is in the forecast, three weeks after it all of it is."""
    errors = []
    for seed in range(2):
        cost = noisy(160, seed) * np.where(np.arange(160) < 130, 1.0, factor)
        total = forecast_daily(days(130 + known), cost[: 130 + known], horizon_days=30).total
        errors.append(abs(total / (3000 * factor) - 1))
    run_rate = abs((28 - known + known * factor) / (28 * factor) - 1)
    assert np.median(errors) < min(most, run_rate)


def test_the_level_is_the_mean_since_it_changed() -> None:
    cost = noisy(200) * np.where(np.arange(200) < 150, 1.0, 2.0)
    level = steady_level(cost, 2.5)
    assert level.shape == (201,) and np.isnan(level[:7]).all() and np.isfinite(level[7:]).all()
    assert level[150] == pytest.approx(cost[150 - 112 : 150].mean(), rel=1e-9)
    assert level[178] == pytest.approx(200, rel=0.02)
    assert level[200] == pytest.approx(200, rel=0.02)


@pytest.mark.parametrize("last_day", [False, True])
def test_a_fee_is_put_onto_its_day_and_counted_once(last_day: bool) -> None:
    n = 190  # to July 9
    cost = 100.0 + fees(n, last_day=last_day)
    found = forecast_daily(days(n), cost, horizon_days=30)
    day = np.datetime64("2026-07-31" if last_day else "2026-08-01")
    expected = np.where(found.days == day, 900.0, 100.0)
    assert found.expected == pytest.approx(expected, rel=0.01)
    landing = forecast_month_end(days(n), cost, month="2026-07").landing
    assert landing == pytest.approx(3900.0, rel=0.01)


def test_a_fee_that_ended_is_not_expected_again() -> None:
    cost = 100.0 + np.where(np.arange(190) < 120, fees(190, last_day=False), 0.0)
    assert forecast_daily(days(190), cost, horizon_days=30).total == pytest.approx(3000, rel=0.02)


def test_one_dear_day_is_no_fee() -> None:
    cost = noisy(190)
    cost[100] = 1500.0
    assert monthly_charges(cost, days(190), 30) is None
    cost[121] = 1500.0  # three weeks later
    assert monthly_charges(cost, days(190), 30) is None


def test_fees_are_known_only_by_days_before() -> None:
    cost = noisy(170) + fees(170, last_day=True) + 2.0 * fees(170, last_day=False)
    whole = combine(cost, days(170), 31)
    for origin in (62, 92, 123, 150, 170):
        cut = combine(cost[:origin], days(origin), 31)
        assert whole.paths[origin] == pytest.approx(cut.paths[-1], rel=1e-9)


def test_no_kind_of_bill_is_forecast_worse_than_by_its_run_rate() -> None:
    """Errors of 30-day totals of final costs, every week from day 90, against the mean of 28 days."""
    ours: dict[str, list[float]] = {name: [] for name in REGIMES}
    run_rate: dict[str, list[float]] = {name: [] for name in REGIMES}
    for bill in bills(2026, 3):
        series = regular_series(bill.days, bill.cost)
        reported = series.reported
        total = combine(series.cost, series.days, 30).paths.sum(axis=1)
        actual = window_totals(reported, 30)
        for origin in range(90, len(reported) - 29, 7):
            ours[bill.regime].append(abs(total[origin] / actual[origin] - 1))
            run_rate[bill.regime].append(abs(30 * reported[origin - 28 : origin].mean() / actual[origin] - 1))
    for name in REGIMES:
        assert np.median(ours[name]) <= 1.3 * np.median(run_rate[name]) + 0.005, name
    one, other = (np.concatenate(list(errors.values())) for errors in (ours, run_rate))
    assert np.median(one) < 0.8 * np.median(other)
    assert np.quantile(one, 0.9) < np.quantile(other, 0.9)
    assert (one <= 0.12).mean() > (other <= 0.12).mean()


def test_intervals_are_judged_by_what_was_reported() -> None:
    """One day in thirty-one without a report: sums lack it, and the interval knows."""
    n = 260
    cost, keep = noisy(n, noise=0.01), np.arange(n) % 31 != 20
    series = regular_series(days(n)[keep], cost[keep])
    assert series.filled > 3 and series.reported.sum() == pytest.approx(cost[keep].sum())
    held = []
    for origin in range(154, 230, 10):
        known = keep[:origin]
        found = forecast_daily(days(origin)[known], cost[:origin][known], horizon_days=30)
        first = int((found.days[0] - START).astype(int))
        actual = float((cost * keep)[first : first + 30].sum())
        held.append(found.total_low <= actual <= found.total_high)
    assert np.mean(held) >= 0.6
