"""A fleet whose runs no machine can hold: options of the training code are named, each with a fleet that it allows."""

from __future__ import annotations

from typing import Any

from planner.plan.model import Plan
from planner.plan.relaxation import Relaxation
from tests.planner.spine_catalogs import A100, V100, Machine, Offer, make_catalog, plan_on


def planned(machine: Machine, training: dict[str, Any] | None = None, **limits: Any) -> Plan:
    """Four fine-tuning runs of 7 B parameters, one machine each."""
    job = {
        "version": 1,
        "name": "tight",
        "kind": "fleet",
        "fleet": {"runs": 4},
        "model": {"preset": "llama-2-7b"},
        "training": {"samples": 2_000, "global_batch": 8, "sequence_length": 1024, "objective": "sft"}
        | (training or {}),
        "data": {"size": "1GB"},
        "constraints": {"max_nodes": 4, "deadline": "10d"} | limits,
    }
    return plan_on(make_catalog([Offer(machine, "us-east-1", "3.00")]), job).plan


def of_memory(plan: Plan) -> list[Relaxation]:
    return [one for one in plan.relaxations if one.constraint == "memory"]


def test_each_option_named_has_a_fleet_of_that_cost() -> None:
    named = of_memory(planned(A100))
    assert named
    for one in named:
        training: dict[str, Any] = {}
        for change in one.changes:
            key = change.current.split()[0].removeprefix("training.")
            value = {"true": True, "false": False}.get(change.needed, change.needed)
            *section, name = key.split(".")
            (training.setdefault(section[0], {}) if section else training)[name] = value
        with_it = planned(A100, training)
        assert with_it.status == "planned"
        assert f"{with_it.lines[0].nodes} x {with_it.lines[0].instance_type}" in one.note
        stated = float(one.note.rsplit("$", 1)[1].replace(",", ""))
        assert abs(stated / float(with_it.total_usd) - 1.0) < 0.06


def test_nothing_is_said_of_memory_where_another_limit_keeps_the_fleet_or_no_option_helps() -> None:
    assert not of_memory(planned(A100, {"method": "lora"}, budget_usd=1))
    assert not of_memory(
        planned(A100, budget_usd=1)
    )  # options make it fit, and no fleet is within the budget
    assert not of_memory(planned(V100, {"method": "qlora"}, budget_usd=1))
