"""Members of the extra: weighed by trial, left out where there is no room for one."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.finops.forecast.model import forecast_periods
from planner.finops.forecast.more import Fit, statsforecast_members, with_more_members

DAYS = np.datetime64("2026-01-01") + np.arange(150)
WAVE = 100 + 80 * np.sin(2 * np.pi * np.arange(300) / 91)  # beyond what the ensemble can see coming


def oracle(cost: Floats, horizon: int) -> Floats:
    return np.asarray(WAVE[len(cost) : len(cost) + horizon])


def fool(cost: Floats, horizon: int) -> Floats:
    return np.full(horizon, 10 * cost.max())


def test_the_member_that_was_right_gets_the_weight() -> None:
    members: dict[str, Fit] = {"oracle": oracle, "fool": fool}
    period = [(np.datetime64("2026-05-31"), np.datetime64("2026-06-30"))]
    (found,) = forecast_periods(DAYS, WAVE[:150], periods=period, more_members=members)
    assert found.weights["oracle"] > 0.99 > 0.01 > found.weights["fool"]
    assert found.landing == pytest.approx(WAVE[150:180].sum(), rel=0.02)
    assert found.low < found.landing < found.high
    assert sum(found.weights.values()) == pytest.approx(1.0)


def test_a_short_history_leaves_the_ensemble_alone() -> None:
    paths = np.ones((31, 10))
    path, weights = with_more_members(np.ones(30), paths, {"fool": fool})
    assert weights == {"ensemble": 1.0} and path.tolist() == [1.0] * 10


@pytest.mark.skipif(
    importlib.util.find_spec("statsforecast") is not None, reason="statsforecast is installed"
)
def test_without_the_package_it_is_named() -> None:
    with pytest.raises(InputError, match=r"ml-training-planner\[forecast\]"):
        statsforecast_members()
