"""Where the budget is too small by the deadline, a later deadline that is enough is named too."""

from __future__ import annotations

import pytest

from planner.plan.model import Plan, Relaxation
from tests.planner.candidates.ways.cases import THREE_ZONES, answer

TIGHT = 20.0


def plan_of(hours: float, budget: float) -> Plan:
    return answer(THREE_ZONES, hours, constraints={"budget_usd": budget}).plan


def deadlines(plan: Plan) -> list[Relaxation]:
    return [item for item in plan.relaxations if item.constraint == "deadline"]


def cost_by(hours: float) -> float:
    return float(answer(THREE_ZONES, hours).plan.total_usd)


@pytest.fixture(scope="module")
def between() -> float:
    """A budget that is enough in a week and not by a tight deadline."""
    tight, loose = cost_by(TIGHT), cost_by(TIGHT * 8)
    assert loose < 0.9 * tight
    return (tight + loose) / 2.0


def test_the_deadline_named_is_enough_and_hardly_an_earlier_one(between: float) -> None:
    refused = plan_of(TIGHT, between)
    assert refused.status == "infeasible"
    [later] = deadlines(refused)
    assert later.current == f"{TIGHT:.1f} h"
    needed = float(later.needed.removesuffix(" h"))
    enough = plan_of(needed, between)
    assert enough.status == "planned" and later.best is not None
    assert float(enough.total_usd) == pytest.approx(float(later.best.cost_usd))
    assert float(enough.total_usd) <= between
    assert plan_of(needed * 0.95, between).status == "infeasible"
    assert {item.constraint for item in refused.relaxations} == {"deadline", "budget"}


def test_none_is_named_where_no_later_one_helps() -> None:
    refused = plan_of(TIGHT, cost_by(TIGHT * 32) / 2.0)
    assert refused.status == "infeasible" and deadlines(refused) == []


def test_a_plan_for_the_soonest_end_is_told_the_same_deadline(between: float) -> None:
    time = answer(
        THREE_ZONES, TIGHT, constraints={"budget_usd": between}, preferences={"objective": "time"}
    ).plan
    assert [item.needed for item in deadlines(time)] == [
        item.needed for item in deadlines(plan_of(TIGHT, between))
    ]
