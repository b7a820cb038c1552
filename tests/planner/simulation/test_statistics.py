"""Gaps and intervals: by hand, and as laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.simulation.statistics import clustered_gap, clustered_mean, gap_closed
from tests.draws import draws

Ratios = st.lists(st.floats(0.1, 1.0), min_size=4, max_size=12)


def test_by_hand() -> None:
    baseline, optimum = np.array([0.6, 0.8]), np.array([0.5, 0.5])
    assert gap_closed(np.array([0.55, 0.65]), baseline, optimum) == pytest.approx(0.5)
    assert math.isnan(gap_closed(baseline, optimum, optimum))


@draws(40)
@given(Ratios)
def test_the_optimum_closes_all_and_the_baseline_nothing(values: list[float]) -> None:
    optimum = np.array(values)
    baseline = optimum * 1.2
    assert gap_closed(optimum, baseline, optimum) == pytest.approx(1.0)
    assert gap_closed(baseline, baseline, optimum) == pytest.approx(0.0)


@draws(20)
@given(Ratios, st.integers(0, 5))
def test_the_interval_holds_the_value_of_equal_clusters(values: list[float], seed: int) -> None:
    """Where every cluster closes the same share, so does every resample."""
    optimum = np.array(values)
    names = [str(k) for k in range(len(values))]
    found = clustered_gap(optimum * 1.1, optimum * 1.2, optimum, names, seed=seed)
    assert found.low == pytest.approx(0.5) and found.high == pytest.approx(0.5)


def test_clusters_and_not_their_members_are_drawn() -> None:
    """Ten equal members of each of four clusters say as little as one of each."""
    values = np.array([0.2, 0.3, 0.5, 0.6])
    names = ["a", "b", "c", "d"]
    few = clustered_mean(values, np.ones(4), names)
    many = clustered_mean(np.repeat(values, 10), np.ones(40), np.repeat(names, 10).tolist())
    assert (few.value, few.low, few.high) == pytest.approx((many.value, many.low, many.high))
    apart = clustered_mean(np.repeat(values, 10), np.ones(40), [str(k) for k in range(40)])
    assert few.low < apart.low < apart.high < few.high


def test_three_clusters_say_nothing_of_how_clusters_differ() -> None:
    alone = clustered_mean(np.repeat([0.2, 0.6], 10), np.ones(20), ["a", "b"] * 10)
    assert math.isnan(alone.low) and alone.value == pytest.approx(0.4)
