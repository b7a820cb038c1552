"""Where a budget gives way with another limit, what is named is enough and hardly less would be."""

from __future__ import annotations

from typing import Any

import pytest

from planner.plan.model import Plan
from tests.planner.candidates.ways.cases import A10G, AWAY, HOME, THREE_ZONES, answer, on_demand

TWO_MACHINES = [*THREE_ZONES, on_demand("1.60", A10G)]
HOURS, SURE = 20.0, 0.99


def plan_with(limits: dict[str, Any], **changes: Any) -> Plan:
    wanted = {"max_nodes": 1, **limits}
    sure = wanted.pop("deadline_confidence", SURE)
    return answer(TWO_MACHINES, HOURS, sure, constraints=wanted, **changes).plan


def needed_with_budget(plan: Plan, name: str) -> tuple[str, float]:
    """What the other limit and the budget must become."""
    [both] = [item.needed for item in plan.relaxations if item.constraint == f"{name} and budget"]
    other, dollars = both.split(" and ")
    return other, float(dollars.removeprefix("$").replace(",", ""))


@pytest.mark.parametrize("objective", ["cost", "time"])
@pytest.mark.parametrize(
    ("name", "key", "read"), [("confidence", "deadline_confidence", float), ("max_nodes", "max_nodes", int)]
)
def test_the_budget_beside_another_limit_is_the_least(
    name: str, key: str, read: type, objective: str
) -> None:
    """Ways to run in turn that the other limit makes possible count too, and what is too unsure does not."""
    wish = {"preferences": {"objective": objective}}
    other, dollars = needed_with_budget(plan_with({"budget_usd": 1.0}, **wish), name)
    moved = {key: read(other)}
    assert dollars == pytest.approx(float(plan_with(moved).total_usd), abs=0.02)
    assert plan_with({**moved, "budget_usd": dollars}, **wish).status == "planned"
    assert plan_with({**moved, "budget_usd": 0.99 * dollars}, **wish).status == "infeasible"


@pytest.mark.parametrize("objective", ["cost", "time"])
def test_the_other_limit_is_what_the_plan_found_needs(objective: str) -> None:
    """Not what the candidate does that named it: the plan that costs least may be surer, on fewer machines."""
    wish = {"preferences": {"objective": objective}}
    refused = plan_with({"budget_usd": 1.0}, **wish)
    sure, dollars = needed_with_budget(refused, "confidence")
    found = plan_with({"deadline_confidence": float(sure), "budget_usd": dollars}, **wish)
    assert found.risk is not None and found.risk.p_meet_deadline is not None
    assert float(sure) == pytest.approx(found.risk.p_meet_deadline, abs=0.001)
    [best] = [item.best for item in refused.relaxations if item.constraint == "max_nodes and budget"]
    assert best is not None and int(needed_with_budget(refused, "max_nodes")[0]) == best.nodes


def test_so_it_is_where_the_other_limit_is_no_number() -> None:
    only_away = {"regions": [f"aws/{AWAY}"], "deadline_confidence": 0.9}
    other, dollars = needed_with_budget(plan_with({**only_away, "budget_usd": 1.0}), "region")
    assert other == f"allow {HOME}"
    at_home = plan_with({"regions": [f"aws/{HOME}"], "deadline_confidence": 0.9})
    assert dollars == pytest.approx(float(at_home.total_usd), abs=0.02)


def test_a_budget_that_is_enough_is_not_named_beside_the_other_limit() -> None:
    """It is less than on-demand at home costs, and enough for spot there that falls back on it."""
    refused = plan_with({"regions": [f"aws/{AWAY}"], "deadline_confidence": 0.9, "budget_usd": 20.0})
    [item] = refused.relaxations
    assert (item.constraint, item.current, item.needed) == ("region", "excluded", f"allow {HOME}")
    at_home = plan_with({"regions": [f"aws/{HOME}"], "deadline_confidence": 0.9, "budget_usd": 20.0})
    assert at_home.status == "planned" and item.best is not None
    assert float(item.best.cost_usd) == pytest.approx(float(at_home.total_usd))
