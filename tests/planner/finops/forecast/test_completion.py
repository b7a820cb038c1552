"""Billing latency: known shares are found again, and corrected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.errors import InputError
from planner.finops.forecast.completion import incomplete_days, learn_completion
from planner.finops.forecast.model import forecast_daily, forecast_month_end

SHARES = (0.12, 0.9, 0.978, 0.985, 0.99)  # 0, 1, 2, 3 and 4 days later, then all
START = np.datetime64("2026-01-01")


def reported(cost: NDArray[np.float64], age: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(cost * np.array([SHARES[a] if a < len(SHARES) else 1.0 for a in age]))


def reports(n: int, noise: float = 0.0) -> list[tuple[object, Any, Any]]:
    rng = np.random.default_rng(5)
    cost = 100 * np.exp(rng.normal(0, 0.1, n))
    days = START + np.arange(n)
    out: list[tuple[object, Any, Any]] = []
    for last in range(20, n):
        known, age = days[: last + 1], last - np.arange(last + 1)
        told = reported(cost[: last + 1], age) * np.exp(rng.normal(0, noise, last + 1) * (age < 5))
        out.append((known[-1], known, told))
    return out


def test_known_latency_is_recovered() -> None:
    found = learn_completion(reports(60))
    assert found.share[: len(SHARES)] == pytest.approx(SHARES, abs=1e-12)
    assert found.share[len(SHARES) :] == pytest.approx(1.0)
    assert [found.trusted(age) for age in (0, 1, 2, 13, 99)] == [False, True, True, True, True]


def test_noisy_latency_is_recovered_nearly() -> None:
    found = learn_completion(reports(90, noise=0.02))
    assert found.share[:3] == pytest.approx(SHARES[:3], rel=0.01)


def test_a_day_two_days_old_is_within_one_percent_after_grossing_up() -> None:
    completion = learn_completion(reports(60))
    assert 97.8 * completion.factor(2) == pytest.approx(100.0, rel=0.01)


def test_young_days_neither_lower_the_forecast_nor_the_landing() -> None:
    completion = learn_completion(reports(60))
    cost = np.full(80, 50.0)
    told = reported(cost, 79 - np.arange(80))
    days = START + np.arange(80)
    raw = forecast_month_end(days, told, month="2026-03")
    settled = forecast_month_end(days, told, month="2026-03", completion=completion)
    assert settled.landing == pytest.approx(31 * 50.0, rel=1e-6)
    assert raw.landing < 0.98 * settled.landing
    daily = forecast_daily(days, told, horizon_days=10, completion=completion)
    assert daily.dropped_days == 1 and len(daily.days) == 11
    assert daily.expected == pytest.approx(np.full(11, 50.0), rel=1e-6)
    later = forecast_daily(days, cost, horizon_days=10, completion=completion, reported_on=days[-1] + 30)
    assert later.dropped_days == 0


def test_reports_that_end_the_day_before_say_how_old_the_last_day_is() -> None:
    """The last day was taken to be of the day of the report, and the others to be a day younger than they were."""
    late = [(reported + 1, days, cost) for reported, days, cost in reports(60)]  # type: ignore[operator]
    completion = learn_completion(late)
    assert completion.newest_age == 1 and learn_completion(reports(60)).newest_age == 0
    days, cost = START + np.arange(80), np.full(80, 50.0)
    told = reported(cost, 79 - np.arange(80))  # the last day at the share of reports on the day after it
    daily = forecast_daily(days, told, horizon_days=10, completion=completion)
    assert daily.dropped_days == 1 and daily.expected == pytest.approx(np.full(11, 50.0), rel=1e-6)
    landing = forecast_month_end(days, told, month="2026-03", completion=completion).landing
    assert landing == pytest.approx(31 * 50.0, rel=1e-6)


def test_without_restatements_there_is_nothing_to_learn() -> None:
    with pytest.raises(InputError, match="keep reports for some weeks"):
        learn_completion([("2026-01-02", np.array(["2026-01-01"], dtype="datetime64[D]"), [1.0])])


def test_late_last_days_are_seen_and_a_quiet_weekend_is_not() -> None:
    cost = np.tile([100.0, 100, 100, 100, 100, 40, 40], 8)
    assert incomplete_days(cost) == 0
    cost[-1] = 20
    assert incomplete_days(cost) == 1
    cost[-3:] = [10, 4, 0]
    assert incomplete_days(cost) == 3
    assert incomplete_days(np.r_[np.full(40, 100.0), np.full(20, 30.0)]) == 0
