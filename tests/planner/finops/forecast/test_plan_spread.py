"""Laws of plans in forecasts and budgets: what a plan may cost more widens intervals and moves P(over)."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.finops.forecast.plan_spread import PlanSpread, plan_spread
from planner.finops.forecast.plans import PlannedCost, daily_plan_cost

START = datetime(2026, 11, 3, tzinfo=UTC)
DAYS = np.arange(np.datetime64("2026-11-01"), np.datetime64("2026-12-01"))
RUN = PlannedCost("run", "r", START, START + timedelta(days=2), 1000.0, "p.json", low=700.0, high=1600.0)
HALF = st.floats(0.0, 500.0)


def test_one_run_in_the_period_has_its_own_interval() -> None:
    assert plan_spread([RUN], DAYS) == PlanSpread(pytest.approx(300.0), pytest.approx(600.0))
    assert plan_spread([RUN], DAYS[:3]) == PlanSpread(
        pytest.approx(150.0), pytest.approx(300.0)
    )  # a day of two
    assert plan_spread([RUN], DAYS[:2]) == PlanSpread(0.0, 0.0)


def test_runs_of_one_plan_err_together_and_plans_apart() -> None:
    weekly = replace(RUN, every=timedelta(days=7), times=3)
    assert plan_spread([weekly], DAYS).above == pytest.approx(3 * 600.0)
    assert plan_spread([RUN, replace(RUN, name="other")], DAYS).above == pytest.approx(math.sqrt(2) * 600.0)
    assert daily_plan_cost([weekly], DAYS).sum() == pytest.approx(3000.0)


@pytest.mark.parametrize(
    ("low", "high", "below", "above"),
    [
        (None, None, 0.0, 0.0),
        (None, 1600.0, 600.0, 600.0),
        (None, 2500.0, 1000.0, 1500.0),
        (700.0, 1600.0, 300.0, 600.0),
    ],
)
def test_where_p90_alone_is_known_its_distance_counts_on_both_sides(
    low: float | None, high: float | None, below: float, above: float
) -> None:
    found = plan_spread([replace(RUN, low=low, high=high)], DAYS)
    assert (found.below, found.above) == (pytest.approx(below), pytest.approx(above))


@given(HALF, HALF, st.floats(100.0, 3000.0))
def test_plans_that_may_cost_more_widen_the_interval_and_never_narrow_it(
    below: float, above: float, amount: float
) -> None:
    spread = PlanSpread(below, above)
    low, high = spread.widened(1000.0, 900.0, 1200.0, 0.8)
    assert low <= 900.0 + 1e-9 and high >= 1200.0 - 1e-9
    assert PlanSpread().widened(1000.0, 900.0, 1200.0, 0.95) == (900.0, 1200.0)
    wider = spread.widened(1000.0, 900.0, 1200.0, 0.95)
    assert wider[0] <= low + 1e-9 and wider[1] >= high - 1e-9
    certain = spread.p_over(lambda usd: float(usd < 1000.0), amount)
    assert 0.0 <= certain <= 1.0
    assert PlanSpread().p_over(lambda usd: float(usd < 1000.0), amount) == float(amount < 1000.0)


def test_p_over_is_that_of_the_plans_where_the_rest_is_certain() -> None:
    spread = PlanSpread(300.0, 600.0)  # P10 is 700, P90 is 1,600
    for amount, chance in ((700.0, 0.9), (1000.0, 0.5), (1600.0, 0.1)):
        found = spread.p_over(lambda usd: float(usd < 1000.0), amount)
        assert found == pytest.approx(chance, abs=0.03)
