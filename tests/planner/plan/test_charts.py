"""Charts of a plan: their parts are all of what the plan says, and none is drawn of what is not known."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from planner.plan.ids import CostId
from planner.plan.model import Plan
from planner.plan.report_charts import cost_by_day, finish_range, hours_by_use
from tests.planner.render.render_plans import FLEET, HOSTILE, INFEASIBLE, PLANS, SPOT, TRAINING


@pytest.mark.parametrize("plan", [TRAINING, SPOT, FLEET], ids=lambda plan: plan.workload)
def test_days_and_uses_add_up_to_the_plan(plan: Plan) -> None:
    (by_day,) = cost_by_day(plan)
    paid = sum(value or 0.0 for _, values in by_day.series for value in values)
    assert paid == pytest.approx(float(sum(line.cost_usd for line in plan.lines)))
    assert by_day.labels[0] == plan.start[:10] and by_day.labels[-1] == str(plan.finish_expected)[:10]
    for chart in hours_by_use(plan):
        assert sum(chart.series[0][1]) == pytest.approx(sum(part.hours for part in plan.timeline))  # type: ignore[arg-type]


def test_what_is_paid_at_once_is_on_its_day() -> None:
    (by_day,) = cost_by_day(TRAINING)
    transfer = dict(by_day.series)["data transfer"]
    assert transfer[0] and not any(transfer[1:])


def test_hours_after_a_commitment_are_not_spread_over_the_run_that_is_on_it() -> None:
    """It ends no earlier than the run is expected to, so what comes after is at the end."""
    first = TRAINING.lines[0]
    after = replace(first.costs[0], id=CostId.AFTER_END, kind="after_end", amount_usd=Decimal(100))
    longer = replace(TRAINING, lines=(replace(first, costs=(*first.costs, after)), *TRAINING.lines[1:]))
    (by_day,) = cost_by_day(longer)
    added = dict(by_day.series)["after a commitment ends (expected)"]
    assert added[-1] == pytest.approx(100.0) and not any(added[:-1])


def test_the_finish_lies_in_its_interval_and_the_deadline_is_marked() -> None:
    (chart,) = finish_range(SPOT)
    (expected,), (low,), (high,) = (values for _, values in chart.series)
    assert expected is not None and low is not None and high is not None
    assert low <= expected <= high
    assert len(chart.marks) == 1
    assert finish_range(replace(SPOT, deadline=None))[0].marks == ()


def test_what_waits_for_spot_is_not_counted_as_lost() -> None:
    assert SPOT.launch is not None
    uses = dict(zip(hours_by_use(SPOT)[0].labels, hours_by_use(SPOT)[0].series[0][1], strict=True))
    assert (uses["waiting for data and capacity"] or 0.0) >= SPOT.launch.waiting_hours


def test_no_chart_where_nothing_is_known() -> None:
    assert PLANS["hostile"] is HOSTILE
    for draw in (cost_by_day, finish_range, hours_by_use):
        assert draw(INFEASIBLE) == ()
    assert finish_range(HOSTILE) == ()
