"""Where a budget gives way with another limit, what is named is enough and hardly less would be."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from planner.plan.model import Plan
from planner.plan.relaxation import Change
from tests.conftest import Run
from tests.planner.candidates.ways.cases import A10G, AWAY, HOME, THREE_ZONES, V100, answer, on_demand
from tests.planner.spine_catalogs import Machine

TWO_MACHINES = [*THREE_ZONES, on_demand("1.60", A10G)]
HOURS, SURE = 20, 0.99


def plan_with(limits: dict[str, Any], **changes: Any) -> Plan:
    wanted = {"max_nodes": 1, "deadline_confidence": SURE, "deadline": f"{HOURS}h", **limits}
    return answer(TWO_MACHINES, None, constraints=wanted, **changes).plan


def needed_with_budget(plan: Plan, name: str) -> tuple[Change, float]:
    """What the other limit and the budget must become."""
    [(other, budget)] = [item.changes for item in plan.relaxations if item.constraint == f"{name} and budget"]
    assert budget.enough is not None and budget.needed == f"${budget.enough:,.2f}"
    return other, budget.enough


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
    assert other.enough is not None and other.needed == f"{other.enough:g}"
    moved = {key: read(other.enough)}
    assert dollars == pytest.approx(float(plan_with(moved).total_usd), abs=0.02)
    assert plan_with({**moved, "budget_usd": dollars}, **wish).status == "planned"
    assert plan_with({**moved, "budget_usd": 0.99 * dollars}, **wish).status == "infeasible"


@pytest.mark.parametrize("objective", ["cost", "time"])
def test_the_other_limit_is_what_the_plan_found_needs(objective: str) -> None:
    """Not what the candidate does that named it: the plan that costs least may be surer, on fewer machines."""
    wish = {"preferences": {"objective": objective}}
    refused = plan_with({"budget_usd": 1.0}, **wish)
    sure, dollars = needed_with_budget(refused, "confidence")
    found = plan_with({"deadline_confidence": sure.enough, "budget_usd": dollars}, **wish)
    assert found.risk is not None and found.risk.p_meet_deadline is not None
    assert sure.enough == pytest.approx(found.risk.p_meet_deadline, abs=0.001)
    [best] = [item.best for item in refused.relaxations if item.constraint == "max_nodes and budget"]
    assert best is not None and needed_with_budget(refused, "max_nodes")[0].enough == best.nodes


def test_so_it_is_where_the_other_limit_is_no_number() -> None:
    only_away = {"regions": [f"aws/{AWAY}"], "deadline_confidence": 0.9}
    other, dollars = needed_with_budget(plan_with({**only_away, "budget_usd": 1.0}), "region")
    assert other.needed == f"allow {HOME}" and other.enough is None
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


def test_a_deadline_beside_the_budget_is_no_later_than_the_plan_found_needs(run_cli: Run) -> None:
    """Spot in several zones costs less than the cluster for which the deadline was found, and ends sooner for sure."""

    def asked(hours: float, dollars: float) -> dict[str, Any]:
        limits = [f"constraints.deadline={hours}h", f"constraints.budget_usd={dollars}"]
        sets = [part for limit in limits for part in ("--set", limit)]
        done = run_cli("optimize", "examples/vlm-8b.yaml", *sets, "--as-of", "2026-11-20", "-o", "json")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    items = asked(8, 500)["relaxations"]
    [changes] = [item["changes"] for item in items if item["constraint"] == "deadline and budget"]
    hours, dollars = (change["enough"] for change in changes)
    assert asked(hours, dollars)["status"] == "planned"
    assert asked(0.98 * hours, dollars)["status"] == "infeasible"


QUOTA = [{"provider": "aws", "quota": name, "unit": "GPU", "limit": 0} for name in ("v100", "a10g")]
AT_ONCE = [
    {"accelerator": "*", "purchase_option": bought, "accelerators": 1} for bought in ("spot", "on_demand")
]


@pytest.mark.parametrize(
    ("name", "limits", "wider"),
    [
        ("quota", {"quota": QUOTA}, lambda enough: {"quota": [{**QUOTA[0], "limit": enough}, QUOTA[1]]}),
        (
            "throughput", {"min_throughput": {"samples_per_s": 1e6}},
            lambda enough: {"min_throughput": {"samples_per_s": enough}},
        ),
        (
            "obtainable", {"obtainable": AT_ONCE, "deadline": "12h", "max_nodes": 4},
            lambda enough: {
                "obtainable": [*AT_ONCE, {**AT_ONCE[1], "accelerator": "v100*", "accelerators": int(enough)}]
            },
        ),
    ],
)  # fmt: skip
def test_limits_that_are_no_single_number_give_way_too(
    name: str, limits: dict[str, Any], wider: Callable[[float], dict[str, Any]]
) -> None:
    """The budget beside them is the least, too."""
    limits = {"deadline_confidence": 0.9, **limits}
    other, dollars = needed_with_budget(plan_with({**limits, "budget_usd": 1.0}), name)
    assert other.enough is not None
    moved = limits | wider(other.enough)
    assert dollars == pytest.approx(float(plan_with(moved).total_usd), abs=0.02)
    assert plan_with({**moved, "budget_usd": dollars}).status == "planned"


def test_where_no_two_are_enough_three_limits_are_named() -> None:
    limits = {"budget_usd": 1.0, "max_nodes": 1, "min_throughput": {"samples_per_s": 1e6}}
    away = {"regions": [f"aws/{AWAY}"], "deadline_confidence": 0.9}
    first = plan_with({**away, **limits}).relaxations[0]
    assert [change.constraint for change in first.changes] == ["region", "throughput", "budget"]
    _, speed, budget = (change.enough for change in first.changes)
    enough = {"regions": ["aws/*"], "min_throughput": {"samples_per_s": speed}, "budget_usd": budget}
    assert plan_with({"deadline_confidence": 0.9, **enough}).status == "planned"


@pytest.mark.parametrize("objective", ["cost", "time"])
@pytest.mark.parametrize(("name", "key"), [("confidence", "deadline_confidence"), ("max_nodes", "max_nodes")])
def test_beside_a_limit_that_gives_way_alone_is_the_plan_that_it_then_has(
    name: str, key: str, objective: str
) -> None:
    """Not the candidate that names the change, which has no fall-back and no other zone."""
    wish = {"preferences": {"objective": objective}}
    [found] = [item for item in plan_with({}, **wish).relaxations if item.constraint == name]
    [change] = found.changes
    assert change.enough is not None and found.best is not None
    moved = int(change.enough) if key == "max_nodes" else change.enough
    real = plan_with({key: moved}, **wish)
    assert float(real.total_usd) == pytest.approx(float(found.best.cost_usd), rel=1e-9)
    assert real.hours == pytest.approx(found.best.hours, rel=1e-9)


def test_what_is_let_in_is_the_cheapest_of_all_that_could_be() -> None:
    """Not the type of the candidate that names the change: spot of another one falls back and costs less."""
    small = Machine("aws", "g4dn.xlarge", "g4dn", "t4-16gb-pcie", accelerator_memory_gib=16.0)
    firm = replace(V100, instance_type="p3n.2xlarge")
    offers = [*THREE_ZONES, on_demand("2.50", firm), on_demand("0.50", small)]

    def by_types(*names: str) -> Plan:
        limits = {"deadline": f"{HOURS}h", "max_nodes": 1, "instance_types": {"allow": list(names)}}
        return answer(offers, None, constraints=limits).plan

    [item] = [one for one in by_types("g4dn.xlarge").relaxations if one.constraint == "instance_type"]
    costs = {name: by_types("g4dn.xlarge", name).total_usd for name in ("p3.2xlarge", "p3n.2xlarge")}
    assert 0 < costs["p3.2xlarge"] < costs["p3n.2xlarge"]
    assert item.needed == "allow p3.2xlarge"
    assert item.best is not None and float(item.best.cost_usd) == pytest.approx(float(costs["p3.2xlarge"]))
