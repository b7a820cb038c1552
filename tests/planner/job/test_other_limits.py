"""Other deadlines and budgets on a plan's page: each point is what `optimize` answers with that limit."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.job.other_limits import STEPS, OtherLimits, budget_steps, other_limits
from planner.job.other_limits_report import other_limits_sections
from tests.draws import draws
from tests.planner.job.test_spine_laws import some_offers
from tests.planner.spine_catalogs import (
    A100X8,
    V100,
    Offer,
    cost_of,
    make_catalog,
    plan_on,
    work,
)

SOLD = [
    Offer(V100, "us-east-1", "0.6"), Offer(V100, "us-east-1", "0.2", "spot", interruption_band="5-10%"),
    Offer(A100X8, "us-east-1", "9"), Offer(A100X8, "us-west-2", "3", "spot", interruption_band="5-10%"),
]  # fmt: skip


def limits_of(offers: list[Offer], job: dict[str, Any]) -> OtherLimits | None:
    answer = plan_on(make_catalog(offers), job)
    assert answer.found is not None
    return other_limits(answer.found)


def small(**limits: Any) -> dict[str, Any]:
    return work(constraints={"max_nodes": 4, "deadline": "3d", **limits})


@draws(15)
@given(some_offers(2, 5), st.data())
def test_each_point_is_the_plan_under_its_limit(offers: list[Offer], data: st.DataObject) -> None:
    found = limits_of(offers, small())
    if found is None:
        assert cost_of(plan_on(make_catalog(offers), small())) is None
        return
    point = data.draw(st.sampled_from(found.frontier.points))
    whole_seconds = math.ceil(point.deadline_hours * 3600 - 1e-6)
    cost = cost_of(plan_on(make_catalog(offers), small(deadline=f"{whole_seconds}s")))
    later = [one.best.cost_usd for one in found.frontier.points if one.deadline_hours * 3600 > whole_seconds]
    assert cost is not None and max(later, default=Decimal(0)) <= cost <= point.best.cost_usd
    if found.budgets:
        one = data.draw(st.sampled_from(found.budgets))
        job = small(budget_usd=one.budget_usd) | {"preferences": {"objective": "time"}}
        plan = plan_on(make_catalog(offers), job).plan
        assert (plan.status, plan.hours) == ("planned", pytest.approx(one.best.hours, rel=1e-9))
        assert plan.total_usd == one.best.cost_usd <= one.budget_usd


@pytest.fixture(scope="module")
def found() -> OtherLimits:
    asked = limits_of(SOLD, small(budget_usd=60))
    assert asked is not None
    return asked


def test_there_are_enough_points_and_each_tells_the_workloads_own(found: OtherLimits) -> None:
    points, budgets = found.frontier.points, found.budgets
    assert len(points) >= STEPS and len(budgets) >= STEPS
    assert [one.deadline_hours for one in points if one.wished] == [72.0]
    assert [one.budget_usd for one in budgets if one.is_own] == [Decimal(60)]
    costs, hours = [one.best.cost_usd for one in points], [one.best.hours for one in budgets]
    assert costs == sorted(costs, reverse=True) and hours == sorted(hours, reverse=True)
    assert costs[0] > costs[-1] and hours[0] > hours[-1]


def test_the_sections_name_plan_and_limits(found: OtherLimits) -> None:
    plan = plan_on(make_catalog(SOLD), small(budget_usd=60)).plan
    by_deadline, by_budget = other_limits_sections(found, plan)
    assert by_deadline.tables[0].picked == [one.wished for one in found.frontier.points].index(True)
    assert by_budget.tables[0].picked == [one.is_own for one in found.budgets].index(True)
    assert by_deadline.tables[0].rows[by_deadline.tables[0].picked][-1] == "your deadline"
    named = {name: (x, y) for x, y, name in by_deadline.charts[0].named}
    assert named["your plan"] == (72.0, float(plan.total_usd))


def test_where_the_deadline_cannot_be_kept_later_ones_are_shown() -> None:
    asked = limits_of(SOLD, small(deadline="10m"))
    assert asked is not None
    assert asked.budgets == ()
    assert all(point.within_deadline is False for point in asked.frontier.points)


def test_where_another_limit_removes_all_nothing_is_shown() -> None:
    assert limits_of(SOLD, small(min_throughput={"samples_per_s": 1e12})) is None


@pytest.mark.parametrize(("least", "most"), [(0.0, 0.0), (0.0, 90.0), (404.86, 543.85), (13088.2, 13088.2)])
def test_budgets_rise_from_what_the_cheapest_plan_needs(least: float, most: float) -> None:
    steps = budget_steps(least, most)
    assert len(set(steps)) == STEPS and steps == sorted(steps)
    assert least <= steps[0] <= Decimal(repr(least)) * Decimal("1.01") and steps[-1] >= most
