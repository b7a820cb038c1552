"""Anomalies: a spike is found with its excess, a week's rhythm, growth and a new level are not spikes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.finops.anomalies import find_anomalies

WEEK = np.array([1.0, 1.1, 1.05, 1.1, 1.0, 0.4, 0.35])


def steady(days: int = 84, noise: float = 0.02, seed: int = 3) -> np.ndarray:
    draw = np.random.default_rng(seed).normal(0, noise, days)
    return 100 * np.resize(WEEK, days) * np.exp(draw)


@pytest.mark.parametrize("day", [30, 40, 83])
def test_a_day_at_half_as_much_again_is_found_with_its_excess(day: int) -> None:
    cost = steady()
    usual = cost[day]
    cost[day] *= 1.5
    (found,) = find_anomalies(cost)
    assert found.index == day
    assert found.excess == pytest.approx(0.5 * usual, rel=0.2)


def test_weekends_are_no_anomalies_and_neither_is_a_dear_one_missed() -> None:
    cost = steady()
    assert find_anomalies(cost) == ()
    cost[61] *= 1.6  # a Saturday: still below any weekday
    assert [a.index for a in find_anomalies(cost)] == [61]


def test_a_new_level_of_cost_is_not_an_anomaly_every_day() -> None:
    cost = steady()
    cost[45:] *= 1.8
    assert len(find_anomalies(cost)) <= 2


def test_growth_is_no_anomaly() -> None:
    assert find_anomalies(steady() * 1.01 ** np.arange(84)) == ()


def test_a_day_of_a_service_used_once_a_week_is_judged_by_all_its_days() -> None:
    """6,000 of data transfer on a Tuesday, else 300 on Sundays, was no anomaly: too few days around it cost any."""
    cost = np.zeros(84)
    cost[::7] = 300
    assert find_anomalies(cost) == ()
    cost[37] = 6000
    (found,) = find_anomalies(cost)
    assert (found.index, found.cost, found.expected) == (37, 6000, 0)
    cost[42] = 1000  # a Sunday, three times as dear as usual, not as the Tuesday
    assert [one.index for one in find_anomalies(cost)] == [37]
    cost[37] = 0
    (found,) = find_anomalies(cost)
    assert (found.index, found.expected) == (42, 300)


def test_a_fee_that_begins_is_no_anomaly_of_itself() -> None:
    cost = np.zeros(84)
    cost[[3, 33, 64]] = 50, 50, 5000
    assert find_anomalies(cost) == ()  # two other days show no rule


def test_short_empty_and_unknown_series_say_nothing() -> None:
    for cost in ([], [1.0] * 20, [np.nan] * 60, [0.0] * 60, [-5.0] * 60):
        assert find_anomalies(np.array(cost, dtype=float)) == ()


@given(st.floats(0.001, 1e6), st.integers(0, 83))
def test_the_currency_changes_nothing(factor: float, day: int) -> None:
    cost = steady(noise=0.1)
    cost[day] *= 2
    plain, scaled = find_anomalies(cost), find_anomalies(cost * factor)
    assert [a.index for a in plain] == [a.index for a in scaled]
    assert [a.excess * factor for a in plain] == pytest.approx([a.excess for a in scaled])
