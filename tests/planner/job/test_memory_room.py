"""A job that memory alone keeps from running: the answer names the sureness of fitting with which it would run."""

from __future__ import annotations

from typing import Any

import pytest

from planner.plan.model import Plan
from tests.planner.spine_catalogs import V100, Offer, make_catalog, plan_on


def planned(confidence: float | None = None, length: int = 256, **limits: Any) -> Plan:
    """LoRA of a 7 B model in 16 bits on one V100: its 13 GiB of weights leave little of 16."""
    memory = {} if confidence is None else {"memory": {"confidence": confidence}}
    job = {
        "version": 1,
        "name": "tight",
        "model": {"preset": "llama-2-7b"},
        "training": {
            "samples": 2_000, "global_batch": 8, "sequence_length": length, "precision": "fp16", "method": "lora",
            "objective": "sft",
        } | memory,
        "data": {"size": "1GB"},
        "constraints": {"deadline": "2000h", "max_nodes": 1} | limits,
    }  # fmt: skip
    return plan_on(make_catalog([Offer(V100, "us-east-1", "3.00")]), job).plan


def changed(plan: Plan) -> list[tuple[str, str]]:
    return [(one.current, one.needed) for one in plan.relaxations if "memory.confidence" in one.current]


@pytest.mark.parametrize("asked", [None, 0.9])
def test_the_sureness_that_is_enough_is_named_with_its_plan_and_more_is_too_much(asked: float | None) -> None:
    plan = planned(asked)
    assert plan.status == "infeasible"
    [named] = [one for one in plan.relaxations if "memory.confidence" in one.current]
    current, needed = named.current, named.needed
    assert current == f"training.memory.confidence {asked or 0.95:g}"
    real, best = planned(float(needed)), named.best
    assert real.status == "planned" and best is not None and float(best.cost_usd) == float(real.total_usd)
    assert planned(float(needed) + 0.02).status == "infeasible"


def test_no_sureness_is_named_that_fails_more_often_than_not_or_that_is_not_enough() -> None:
    assert not changed(planned(length=1024))
    assert not changed(planned(deadline="10m"))
