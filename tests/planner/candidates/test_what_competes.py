"""What may be the plan by default: software that the code runs on, clusters that asking brings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.judge.lines import verify_plan
from planner.market.obtainable import load_obtainable
from planner.plan.ids import CostId
from tests.planner.spine_catalogs import A10G, A100X8, Offer, loaded, make_catalog, plan_on, work

CUDA = Offer(A10G, "us-east-1", "1.0")
NEURON = Offer(replace(A10G, instance_type="trn1.2xlarge", accelerator="trn1-32gb"), "us-east-1", "0.01")


@pytest.mark.parametrize(
    "asked",
    [
        {"software": "neuron"},
        {"software": ["cuda", "neuron"]},
        {"software": "any"},
        {"accelerators": {"allow": ["*", "trn*"]}},
        {"instance_types": {"allow": ["trn1.*"]}},
    ],
)
def test_what_is_asked_for_may_win(asked: dict[str, Any]) -> None:
    plan = plan_on(make_catalog([CUDA, NEURON]), work(constraints=asked)).plan
    assert plan.lines[0].accelerator == "trn1-32gb"
    assert plan.relaxations == ()


def test_what_needs_a_port_is_named_beside_the_plan_and_never_wins() -> None:
    catalog = make_catalog([CUDA, NEURON])
    plan = plan_on(catalog, work()).plan
    assert plan.lines[0].accelerator == "a10g-24gb-pcie"
    (hidden,) = plan.relaxations
    assert hidden.best is not None
    assert (hidden.constraint, hidden.best.accelerator) == ("software", "trn1-32gb")
    assert hidden.best.cost_usd < plan.total_usd
    assert "neuron" in hidden.needed
    assert verify_plan(plan.to_dict(), loaded(work()).workload, catalog.offers) == []


def test_the_users_own_machines_are_asked_for() -> None:
    plan = plan_on(make_catalog([CUDA, replace(NEURON, purchase_option="owned")]), work()).plan
    assert plan.lines[0].accelerator == "trn1-32gb"


def test_a_cluster_larger_than_asking_brings_is_bought_beforehand_or_not_at_all() -> None:
    most = next(item.most_accelerators for item in load_obtainable()
                if item.accelerator == "a100*" and item.purchase_option == "on_demand")  # fmt: skip
    large = {"samples": 40_000_000_000, "global_batch": 65536, "sequence_length": 128, "precision": "bf16"}
    catalog = make_catalog([Offer(A100X8, "us-east-1", "10")])
    fast = {"deadline": "45h", "max_nodes": 64}
    job = work(training=large, constraints=fast)
    told = {"accelerator": "a100*", "purchase_option": "on_demand", "accelerators": 512}
    free = plan_on(catalog, work(training=large, constraints={**fast, "obtainable": [told]})).plan
    assert free.lines and free.lines[0].accelerators > most
    plan = plan_on(catalog, job).plan
    assert plan.status == "infeasible"
    changes = {item.constraint: item for item in plan.relaxations}
    assert changes["obtainable"].current.startswith(f"{most:g} x a100")


def test_rows_of_the_table_are_never_below_spot() -> None:
    """What spot brings, on-demand brings too: a fall-back to on-demand must be able to carry on."""
    rows = {(item.accelerator, item.purchase_option): item.most_accelerators for item in load_obtainable()}
    assert all(rows[name, "on_demand"] >= most for (name, option), most in rows.items() if option == "spot")


def test_a_fleet_without_a_deadline_is_planned_within_the_assumed_time() -> None:
    catalog = make_catalog([Offer(A10G, "us-east-1", "1.0")])
    job = work(kind="fleet", fleet={"runs": 40}, constraints={"max_nodes": 16})
    plan = plan_on(catalog, job).plan
    assert plan.status == "planned"
    assert 0 < plan.hours <= 720
    assert any("fleet_horizon_hours" in text for text in plan.warnings)
    hurried = plan_on(catalog, {**job, "assumptions": {"fleet_horizon_hours": plan.hours / 2}}).plan
    assert hurried.hours <= plan.hours / 2 + 1e-9
    assert verify_plan(plan.to_dict(), loaded(job).workload, catalog.offers) == []


def test_lora_exports_its_adapters_unless_they_are_merged() -> None:
    catalog = make_catalog([Offer(A100X8, "us-west-2", "10")])
    lora = {
        "samples": 1_000,
        "global_batch": 8,
        "sequence_length": 128,
        "precision": "bf16",
        "method": "lora",
    }
    at_home = {"size": "2GB"}
    job = work(
        model={"preset": "llama-3.1-70b"},
        training=lora,
        data=at_home,
        checkpoint={"size": "1GB", "export": True},
    )
    merged = {**job, "checkpoint": {"size": "1GB", "export": True, "merge_adapters": True}}
    exported = [
        sum(cost.quantity for line in plan.lines for cost in line.costs if cost.id == CostId.MODEL_EXPORT)
        for plan in (plan_on(catalog, job).plan, plan_on(catalog, merged).plan)
    ]
    assert exported[0] == 0 < exported[1]  # the first 100 GB out are free
