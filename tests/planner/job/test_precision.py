"""Cards without bf16 run a job that states no precision in fp16; of a stated one they name what would run."""

from __future__ import annotations

from typing import Any

import pytest

from planner.plan.model import Plan
from planner.render.words import assumed_sizes
from tests.planner.spine_catalogs import A100, V100, Machine, Offer, make_catalog, plan_on, work


def planned(machine: Machine, precision: str | None, *more: Machine, **limits: Any) -> Plan:
    training = {"samples": 2_000_000, "global_batch": 256, "sequence_length": 128}
    stated = {} if precision is None else {"precision": precision}
    catalog = make_catalog([Offer(one, "us-east-1", "3.00") for one in (machine, *more)])
    return plan_on(catalog, work(training=training | stated, constraints=limits)).plan


def assumed(plan: Plan) -> tuple[str, str]:
    return next((item.value, item.origin) for item in plan.assumptions if item.key == "training.precision")


def changed(plan: Plan) -> list[tuple[str, str]]:
    return [(one.current, one.needed) for one in plan.relaxations if one.constraint == "precision"]


@pytest.mark.parametrize(("machine", "asked", "enough"), [(V100, "bf16", "fp16"), (A100, "fp8", "bf16")])
def test_the_precision_that_is_enough_is_named_with_its_plan(
    machine: Machine, asked: str, enough: str
) -> None:
    plan = planned(machine, asked)
    assert plan.status == "infeasible"
    assert changed(plan) == [(f"training.precision {asked}", enough)]
    real, best = planned(machine, enough), plan.relaxations[0].best
    assert real.status == "planned" and best is not None and float(best.cost_usd) == float(real.total_usd)


def test_none_is_named_where_it_is_not_enough_or_not_the_reason() -> None:
    assert not changed(planned(V100, "bf16", deadline="5m"))
    assert not changed(planned(A100, "bf16", deadline="5m"))


def test_cards_without_bf16_run_in_fp16_where_no_precision_is_stated() -> None:
    plan, stated = planned(V100, None), planned(V100, "fp16")
    assert plan.status == "planned" and assumed(plan) == ("fp16", "default")
    assert assumed(stated) == ("fp16", "workload")
    assert plan.total_usd == stated.total_usd and plan.hours == stated.hours
    assert "fp16 assumed on machines without bf16 (training.precision)" in assumed_sizes(plan.assumptions)


def test_the_default_stays_beside_a_machine_with_bf16() -> None:
    plan = planned(V100, None, A100)
    assert assumed(plan) == ("bf16", "default")
    assert [line.accelerator for line in plan.lines] == [A100.accelerator]
    # where the limits leave out that machine, it is fp16 again
    alone = planned(V100, None, A100, accelerators={"deny": [A100.accelerator]})
    assert assumed(alone) == ("fp16", "default")
    assert alone.total_usd == planned(V100, "fp16").total_usd


@pytest.mark.parametrize("key", ["accelerators", "instance_types"])
def test_what_is_named_beside_others_and_lacks_the_precision_is_said(key: str) -> None:
    def names(*machines: Machine) -> list[str]:
        return [one.accelerator if key == "accelerators" else one.instance_type for one in machines]

    old, both = names(V100)[0], {key: {"allow": names(V100, A100)}}
    says = f"{old} has no bf16, so no plan uses it (training.precision: fp16 would allow it)"
    assert says in planned(V100, None, A100, **both).warnings
    assert says in planned(V100, "bf16", A100, **both).warnings
    # in fp16 it is used; a glob names none; alone, the precision is what must give way
    for plan in (
        planned(V100, "fp16", A100, **both),
        planned(V100, None, A100, **{key: {"allow": ["*"]}}),
        planned(V100, None, A100),
        planned(V100, "bf16", A100, **{key: {"allow": names(V100)}}),
    ):
        assert not [text for text in plan.warnings if "so no plan uses it" in text]
