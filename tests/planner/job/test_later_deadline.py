"""The later deadline that is named is enough, and the least that is; a far one comes last and says so."""

from __future__ import annotations

import pytest

from planner.job import later_deadline
from planner.plan.front_choices import changes, choices
from planner.plan.model import Plan
from planner.plan.relaxation import Relaxation
from tests.planner.candidates.ways.cases import THREE_ZONES, answer, on_demand

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
    assert plan_of(needed * 0.98, between).status == "infeasible"
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


SPOT_ALONE = {"purchase_options": ["spot"]}


@pytest.mark.parametrize("hours", [2.0, 5.0])
def test_spot_in_several_zones_is_asked_at_later_deadlines_too(hours: float) -> None:
    """It does not exist at a deadline that is too early for it, and needs less time than spot in one zone."""

    def spot_by(wanted: float) -> Plan:
        return answer(THREE_ZONES, wanted, constraints=SPOT_ALONE, spot={"fallback": "none"}).plan

    [later] = deadlines(spot_by(hours))
    needed = float(later.needed.removesuffix(" h"))
    enough = spot_by(needed)
    assert enough.status == "planned" and later.best is not None
    assert float(enough.total_usd) == pytest.approx(float(later.best.cost_usd))
    assert spot_by(needed * 0.98).status == "infeasible"


@pytest.mark.parametrize(("hours", "confidence"), [(2.0, 0.9), (29.0, 0.99)])
def test_on_demand_is_told_the_first_of_the_deadlines_that_could_be_printed(
    hours: float, confidence: float
) -> None:
    """At the greater deadline bisection to a twentieth of a per cent names the one after it."""
    [later] = deadlines(answer([on_demand()], hours, confidence).plan)
    needed = float(later.needed.removesuffix(" h"))
    assert answer([on_demand()], needed, confidence).plan.status == "planned"
    assert answer([on_demand()], needed - 0.1, confidence).plan.status == "infeasible"


def test_a_far_deadline_comes_last_and_says_how_many_times_as_long_it_is(
    between: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = plan_of(TIGHT, between).relaxations
    assert [(item.constraint, item.times) for item in near] == [("deadline", None), ("budget", None)]
    monkeypatch.setattr(later_deadline, "_NEAR", 1.01)
    monkeypatch.setattr(later_deadline, "_NEAR_MORE", 0.01)
    refused = plan_of(TIGHT, between)
    times = round(float(near[0].needed.removesuffix(" h")) / TIGHT, 1)
    asked = [(item.constraint, item.times) for item in refused.relaxations]
    assert asked == [("budget", None), ("deadline", times)]
    [shown] = changes(refused)
    assert f"({times:,.1f} times as long)" in str(shown.tables[0].rows[1][0])


def test_a_little_more_time_that_saves_a_tenth_is_named_with_the_plan_by_it() -> None:
    tight = answer(THREE_ZONES, TIGHT).plan
    assert tight.status == "planned"
    [later] = deadlines(tight)
    assert later.best is not None and later.needed == f"{TIGHT * 1.25:.1f} h"
    by_then = answer(THREE_ZONES, TIGHT * 1.25).plan
    assert float(by_then.total_usd) == pytest.approx(float(later.best.cost_usd))
    assert float(later.best.cost_usd) <= 0.9 * float(tight.total_usd)
    notes = " ".join(str(section) for section in choices(tight))
    assert f"by a deadline of {TIGHT * 1.25:g} h instead of {TIGHT:g} h" in notes


def test_no_later_deadline_is_named_where_it_saves_little() -> None:
    assert deadlines(answer(THREE_ZONES, TIGHT * 8).plan) == []
    assert deadlines(answer(THREE_ZONES, TIGHT, preferences={"objective": "time"}).plan) == []


@pytest.mark.parametrize("objective", ["cost", "time"])
def test_where_both_give_way_the_budget_is_the_least_by_the_later_deadline(objective: str) -> None:
    """Ways to run in turn by that deadline count too: nobody is asked for more than the cheapest of them costs."""
    limits = {"max_nodes": 2, "budget_usd": 1.0}
    refused = answer(THREE_ZONES, 1.0, constraints=limits, preferences={"objective": objective}).plan
    [both] = [item for item in refused.relaxations if item.constraint == "deadline and budget"]
    hours, dollars = (float(part.strip("$ h").replace(",", "")) for part in both.needed.split(" and "))
    assert dollars == pytest.approx(float(answer(THREE_ZONES, hours, max_nodes=2).plan.total_usd), abs=0.02)
    enough = answer(THREE_ZONES, hours, constraints={"max_nodes": 2, "budget_usd": dollars}).plan
    assert enough.status == "planned"
