"""Where a history begins: lone charges before it do not count, slow starts and bills by the month do."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from planner.finops.forecast.clean import history_start
from planner.finops.forecast.model import forecast_month_end
from tests.draws import draws

Days, Floats = NDArray[np.datetime64], NDArray[np.float64]
FIRST = np.datetime64("2026-07-01")


def with_lead(at: list[int], lead: list[float], n: int = 60, cost: float = 100.0) -> tuple[Days, Floats]:
    """Charges on days counted from the first of a daily history, and the history."""
    return FIRST + np.array([*at, *range(n)]), np.array([*lead, *[cost] * n])


@pytest.mark.parametrize(
    ("at", "lead", "begins"),
    [
        ([-120], [-40.0], 1),
        ([-90, -40], [50.0, -70.0], 2),
        ([-3, -2, -1], [-5.0, 5.0, 2.0], 3),
        ([-70, -60], [-9000.0, 800.0], 2),  # a large refund
        ([-92, -61, -31], [3000.0, 3000.0, 3000.0], 0),  # a bill by the month that became one by the day
        (list(range(-30, 0)), [4.0] * 30, 0),  # every day, though small
        ([-2, -1], [40.0, 80.0], 0),
    ],
)
def test_where_it_begins(at: list[int], lead: list[float], begins: int) -> None:
    assert history_start(*with_lead(at, lead)) == begins


def test_days_before_the_first_cost_and_no_cost_at_all() -> None:
    assert history_start(FIRST + np.arange(5), np.array([0.0, 0, 0, 7, 7])) == 3
    assert history_start(FIRST + np.arange(3), np.zeros(3)) == 0
    assert history_start(FIRST + 30 * np.arange(4), np.full(4, 9.0)) == 0  # by the month only


@draws(10)
@given(st.integers(30, 300), st.floats(-60, 60).filter(bool))
def test_a_lone_charge_before_it_changes_no_forecast(gap: int, cost: float) -> None:
    plain, early = with_lead([], []), with_lead([-gap], [cost])
    one, other = (forecast_month_end(days, costs, month=date(2026, 9, 1)) for days, costs in (plain, early))
    assert (one.landing, one.low, one.high, one.missing_days) == (
        other.landing, other.low, other.high, other.missing_days
    )  # fmt: skip
    whole = forecast_month_end(*early, month=(FIRST - gap).astype(date))
    assert whole.actual_to_date == pytest.approx(cost)  # what was charged stays charged
