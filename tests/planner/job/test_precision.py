"""A job on cards that cannot compute in the precision asked names the one in which it would run."""

from __future__ import annotations

from typing import Any

import pytest

from planner.plan.model import Plan
from tests.planner.spine_catalogs import A100, V100, Machine, Offer, make_catalog, plan_on, work


def planned(machine: Machine, precision: str | None, **limits: Any) -> Plan:
    training = {"samples": 2_000_000, "global_batch": 256, "sequence_length": 128}
    stated = {} if precision is None else {"precision": precision}
    catalog = make_catalog([Offer(machine, "us-east-1", "3.00")])
    return plan_on(catalog, work(training=training | stated, constraints=limits)).plan


def changed(plan: Plan) -> list[tuple[str, str]]:
    return [(one.current, one.needed) for one in plan.relaxations if one.constraint == "precision"]


@pytest.mark.parametrize(
    ("machine", "asked", "enough"), [(V100, None, "fp16"), (V100, "bf16", "fp16"), (A100, "fp8", "bf16")]
)
def test_the_precision_that_is_enough_is_named_with_its_plan(
    machine: Machine, asked: str | None, enough: str
) -> None:
    plan = planned(machine, asked)
    assert plan.status == "infeasible"
    assert changed(plan) == [(f"training.precision {asked or 'bf16'}", enough)]
    real, best = planned(machine, enough), plan.relaxations[0].best
    assert real.status == "planned" and best is not None and float(best.cost_usd) == float(real.total_usd)


def test_none_is_named_where_it_is_not_enough_or_not_the_reason() -> None:
    assert not changed(planned(V100, "bf16", deadline="5m"))
    assert not changed(planned(A100, "bf16", deadline="5m"))
