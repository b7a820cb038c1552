"""A job that memory alone keeps from running: options of the training code are named, and each is enough as named."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from planner.inputs.yaml12 import resolve_scalar
from planner.plan.model import Plan
from planner.plan.relaxation import Relaxation
from tests.planner.spine_catalogs import A100, A100X8, V100, Machine, Offer, make_catalog, plan_on


def planned(machine: Machine, training: dict[str, Any], model: str = "llama-2-7b", **limits: Any) -> Plan:
    """A fine-tuning run on one machine."""
    defaults = {"samples": 2_000, "global_batch": 8, "sequence_length": 1024, "objective": "sft"}
    job = {
        "version": 1,
        "name": "tight",
        "model": {"preset": model},
        "training": {key: value for key, value in (defaults | training).items() if value is not None},
        "data": {"size": "1GB"},
        "constraints": {"max_nodes": 1} | limits,
    }
    return plan_on(make_catalog([Offer(machine, "us-east-1", "3.00")]), job).plan


def remedies(plan: Plan) -> list[Relaxation]:
    return [one for one in plan.relaxations if one.constraint == "memory" and "confidence" not in one.current]


def options(plan: Plan) -> list[dict[str, Any]]:
    """Of each option named: the values by key, as the changes state them."""
    return [
        {
            change.current.split()[0].removeprefix("training."): resolve_scalar(change.needed)
            for change in one.changes
        }
        for one in remedies(plan)
    ]


def applied(training: dict[str, Any], option: dict[str, Any]) -> dict[str, Any]:
    changed = copy.deepcopy(training)
    for key, value in option.items():
        *sections, name = key.split(".")
        inner = changed
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[name] = value
    return changed


CASES: dict[str, tuple[Machine, dict[str, Any]]] = {
    "full": (A100, {}),
    "pinned": (
        A100X8,
        {"global_batch": 64, "sequence_length": 4096, "layout": {"micro_batch": 8, "recompute": "none"}},
    ),
    "pairs": (A100X8, {"objective": "dpo", "layout": {"zero_stage": 1, "tensor_parallel": 1}}),
    "pairs alone": (A100, {"objective": "dpo", "sequence_length": 2048, "optimizer": "adamw_8bit"}),
    "lora": (V100, {"method": "lora", "precision": "fp16"}),
    "lora by default": (V100, {"method": "lora", "precision": "fp16", "objective": None}),
    "sharded": (A100X8, {"layout": {"zero_stage": 0, "tensor_parallel": 1, "pipeline_parallel": 1}}),
}


@pytest.mark.parametrize("case", CASES)
def test_each_option_is_enough_and_costs_what_is_said(case: str) -> None:
    machine, training = CASES[case]
    refused = planned(machine, training)
    assert refused.status == "infeasible"
    named = options(refused)
    assert named
    for option, said in zip(named, remedies(refused), strict=True):
        real = planned(machine, applied(training, option))
        assert said.best is not None and real.status == "planned"
        assert float(real.total_usd) == float(said.best.cost_usd)


def test_the_same_weights_are_tried_before_adapters() -> None:
    optimizer, offload, adapters = options(planned(A100, {}))
    assert optimizer["optimizer"] == "paged_adamw_8bit"
    assert offload["memory.offload_optimizer"] is True
    assert adapters == {"method": "lora"}


def test_adapters_are_named_for_fine_tuning_alone() -> None:
    assert {"method": "lora"} in options(planned(A100, {}))
    assert all("method" not in one for one in options(planned(A100, {"objective": "pretrain"})))


def test_images_without_an_objective_may_be_fine_tuning_which_the_change_then_states() -> None:
    images = {"objective": None, "sequence_length": None}
    [named] = [one for one in options(planned(A100X8, images, "flux-1-dev")) if "method" in one] or [{}]
    assert named == {"objective": "sft", "method": "lora"}


@pytest.mark.parametrize("limit", [{"budget_usd": 0.05}, {"deadline": "20m"}])
def test_an_option_that_is_not_enough_alone_is_named_with_the_limit_that_must_give_way(
    limit: dict[str, Any],
) -> None:
    [said] = [one for one in planned(A100, {}, **limit).relaxations if "training." in one.current]
    option, other = said.changes[:-1], said.changes[-1]
    assert option and f"memory and {other.constraint}" == said.constraint
    assert other.enough is not None and said.best is not None
    enough: dict[str, Any] = (
        {"budget_usd": other.enough} if other.constraint == "budget" else {"deadline": f"{other.enough}h"}
    )
    values = {one.current.split()[0].removeprefix("training."): resolve_scalar(one.needed) for one in option}
    real = planned(A100, applied({}, values), **enough)
    assert real.status == "planned" and float(real.total_usd) == pytest.approx(float(said.best.cost_usd))
    assert planned(A100, applied({}, values), **limit).status == "infeasible"


def test_a_number_is_told_as_one() -> None:
    _, training = CASES["pinned"]
    [(micro, *_)] = [
        one.changes
        for one in remedies(planned(A100X8, training))
        if "micro_batch" in one.current and "recompute" not in one.current
    ]
    assert (micro.limit, micro.enough) == (8.0, 1.0)


def test_nothing_is_named_where_memory_is_not_what_is_short() -> None:
    assert not options(planned(A100, {"method": "lora"}, deadline="1m"))
