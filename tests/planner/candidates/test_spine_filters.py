"""Every filter removes something somewhere, alone and beside another; what an infeasible answer says is true."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.candidates.constraints.registry import BIT, CONSTRAINTS
from planner.candidates.filters import count_filters
from planner.plan.model import FilterCount
from planner.plan.relaxation import Relaxation
from planner.workloads.answer import Answer
from tests.planner.spine_catalogs import (
    A10,
    A10G,
    A100X8,
    L4,
    T4,
    V100,
    Machine,
    Offer,
    make_catalog,
    plan_on,
    work,
)

FILTERS = {item.id: item.words for item in CONSTRAINTS}
FACTS = {item.id for item in CONSTRAINTS if item.is_fact}
GOOD = Offer(A10G, "us-east-1", "1.0")
OTHER = Offer(L4, "europe-west4", "1.0")
SLOW = {"samples": 400_000_000, "global_batch": 256, "sequence_length": 128, "precision": "fp16"}
HUGE = {"preset": "gpt-3-175b"}
SHORT_LONG = {"samples": 1_000, "global_batch": 64, "sequence_length": 2048, "precision": "fp16"}
FP8 = {"samples": 1_000_000, "global_batch": 256, "sequence_length": 128, "precision": "fp8"}
INFERENTIA = replace(A10G, instance_type="inf2.xlarge", accelerator="inf2-32gb")
TRN1 = replace(A10G, instance_type="trn1.2xlarge", accelerator="trn1-32gb")


def hours_of(offers: list[Offer], nodes: int | None = None) -> float:
    """Hours of the fastest candidate (with `nodes` nodes): limits are set around it, whatever the model predicts."""
    found = plan_on(make_catalog(offers), work()).found
    assert found is not None
    made = found.candidates
    return float(made.hours[(made.nodes == nodes) if nodes else (made.nodes <= 8)].min())


def within(hours: float, confidence: float) -> dict[str, Any]:
    return {"deadline": f"{hours:.4f}h", "deadline_confidence": confidence}


ALL = [GOOD, OTHER, Offer(V100, "us-east-1", "2.0"), replace(GOOD, purchase_option="spot")]
CATALOG = make_catalog(ALL)
FASTEST, ALONE_HOURS = hours_of(ALL), hours_of([GOOD], 1)
ALONE_USD = float(plan_on(make_catalog([GOOD]), work(constraints={"max_nodes": 1})).plan.total_usd)
# name -> offers, workload: the filter removes at least one candidate.
TRIGGERS: dict[str, tuple[list[Offer], dict[str, Any]]] = {
    "price_refused": ([GOOD, replace(OTHER, flags="sources_disagree")], work()),
    "derived_price": ([GOOD, Offer(A10G, "us-east-1", "0.4", "spot", basis="derived")], work()),
    "firm_price": ([GOOD, replace(GOOD, purchase_option="spot")], {**work(), "preferences": {"prices": "firm"}}),
    "inference_only": ([GOOD, Offer(INFERENTIA, "us-east-1", "1")], work()),
    "unknown_peak": ([GOOD, Offer(replace(L4, instance_type="k80", accelerator="k80-12gb-pcie"), "us-central1", "1")],
                     work()),
    "unmeasured": ([GOOD, Offer(replace(L4, instance_type="tpu", accelerator="tpu-v4-32gb"), "us-central1", "1")],
                   work(model={"preset": "resnet-50"}, constraints={"software": ["any"]},
                        training={"samples": 1_000_000, "global_batch": 256, "precision": "bf16"})),
    "precision": ([GOOD, Offer(L4, "us-central1", "1")], work(training=FP8)),
    "fractional": ([GOOD, Offer(replace(A10G, instance_type="part", accelerator_count=0.5), "us-east-1", "1")], work()),
    "arm64": ([GOOD, Offer(replace(A10G, instance_type="arm", arch="arm64"), "us-east-1", "1")], work()),
    "provider": ([GOOD, OTHER], work(constraints={"providers": ["gcp"]})),
    "region": ([GOOD, OTHER], work(constraints={"regions": ["europe-*"]})),
    "residency": ([GOOD, OTHER], work(constraints={"residency": ["eu"]})),
    "partition": ([GOOD, Offer(A10, "cn-shanghai", "1")], work()),
    "purchase_option": ([GOOD, replace(GOOD, purchase_option="spot")],
                        work(constraints={"exclude_purchase_options": ["spot"]})),
    "accelerator": ([GOOD, OTHER], work(constraints={"accelerators": {"deny": ["l4-*"]}})),
    "instance_type": ([GOOD, OTHER], work(constraints={"instance_types": {"allow": ["g5.*"]}})),
    "software": ([GOOD, Offer(TRN1, "us-east-1", "1")], work()),
    "min_memory": ([GOOD, Offer(T4, "eastus", "1")], work(constraints={"min_memory_gib": 20.0})),
    "memory": ([GOOD], work(model=HUGE, training=SHORT_LONG)),
    "layout": ([GOOD], work(training={**SLOW, "global_batch": 8}, constraints={"max_nodes": 12})),
    "network": ([Offer(replace(A10G, internode_gbps=float("nan")), "us-east-1", "1")], work()),
    # sizes above the limit are looked at where nothing fits
    "max_nodes": ([GOOD], work(constraints={**within(hours_of([GOOD]) * 1.5, 0.5), "max_nodes": 1})),
    "max_accelerators": ([Offer(A100X8, "us-east-1", "20")], work(constraints={"max_accelerators": 16})),
    "capacity": ([replace(GOOD, capacity=2.0)], work()),
    "allocation_unit": ([GOOD, Offer(replace(A10G, instance_type="rack", allocation_unit=3.0), "us-east-1", "1")],
                        work()),
    "obtainable": ([GOOD], work(constraints={"obtainable": [
        {"accelerator": "a10g*", "purchase_option": "on_demand", "accelerators": 3}]})),
    "longest": ([GOOD], work(training={**SLOW, "samples": 10**16})),
    "term": ([GOOD, Offer(L4, "us-central1", "0.1", "flex_start")], work(training={**SLOW, "samples": 2_000_000_000})),
    "ended": ([GOOD], work(commitments=[{
        "provider": "aws", "region": "us-east-1", "instance_type": A10G.instance_type, "purchase_option": "reserved_1y",
        "nodes": 1, "expires": "2026-11-20T00:30Z"}])),
    "quota": ([GOOD], work(constraints={"quota": [{"provider": "aws", "quota": "g5", "limit": 24}]})),
    "throughput": ([GOOD], work(constraints={"min_throughput": {"tokens_per_s": 300_000}})),
    "unknown_carbon": ([GOOD, Offer(A10G, "ap-southeast-6", "1")], work(constraints={"max_kgco2e": 1e9})),
    "carbon": ([GOOD, OTHER], work(constraints={"max_kgco2e": 1.0})),
    "deadline": ([GOOD], work(constraints=within(hours_of([GOOD]) * 1.1, 0.5))),
    "unrecorded": ([GOOD, replace(GOOD, purchase_option="spot", price_per_hour="0.5")],
                   work(constraints=within(hours_of([GOOD]) * 20.0, 0.5))),
    "confidence": ([GOOD], work(constraints=within(ALONE_HOURS * 1.03, 0.99))),
    "no_discount": ([GOOD, replace(GOOD, purchase_option="spot")], work()),
    "budget": ([GOOD], work(constraints={"budget_usd": f"{ALONE_USD * 1.1:.2f}"})),
}  # fmt: skip


def counts(answer: Answer) -> dict[str, FilterCount]:
    return {count.name: count for count in answer.plan.filters}


def test_every_filter_has_a_case() -> None:
    assert set(TRIGGERS) == set(FILTERS)
    assert all(FILTERS.values())


@pytest.mark.parametrize("name", TRIGGERS)
def test_the_filter_is_counted(name: str) -> None:
    offers, job = TRIGGERS[name]
    answer = plan_on(make_catalog(offers), job)
    found = counts(answer)
    assert name in found
    assert found[name].removed >= 1
    # a chip that cannot train has no peak either, and one without a peak was never measured
    assert found[name].removed_only_by_this >= (0 if name in ("inference_only", "unknown_peak") else 1)
    assert found[name].description == FILTERS[name]
    assert answer.found is not None
    words = answer.found.candidates.all_bits()
    assert found[name].removed == int(((words & BIT[name]) != 0).sum())
    assert found[name].removed_only_by_this == int((words == BIT[name]).sum())


def test_a_chip_that_cannot_train_answers_requests() -> None:
    answers = {
        "version": 1, "name": "answers", "kind": "inference", "model": {"preset": "llama-3.1-8b"},
        "inference": {"requests": 9_000, "input_tokens": {"mean": 500}, "output_tokens": {"mean": 99},
                      "engine": "neuronx"},
        "constraints": {"software": ["neuron"]},
    }  # fmt: skip
    chips = make_catalog([Offer(INFERENTIA, "us-east-1", "1")])
    answered, trained = plan_on(chips, answers), plan_on(chips, work(constraints={"software": ["neuron"]}))
    assert answered.plan.status == "planned" and "inference_only" not in counts(answered)
    assert trained.plan.status == "infeasible" and counts(trained)["inference_only"].removed_only_by_this >= 1


# Confidence and discount are asked only of candidates that pass all else (as they say); the others stand alone by
# nature.
ALONE = ("provider", "memory", "layout", "inference_only", "unknown_peak", "confidence", "no_discount")


@pytest.mark.parametrize("name", [name for name in FILTERS if name not in ALONE])
def test_the_filter_is_counted_beside_another(name: str) -> None:
    offers, job = TRIGGERS[name]
    wrong = {**job, "constraints": {**job["constraints"], "providers": ["lambda"]}}
    elsewhere = Offer(Machine("lambda", "gpu_1x_a10", "gpu", "a10-24gb-pcie"), "us-south-1", "0.1")
    answer = plan_on(make_catalog([*offers, elsewhere]), wrong)
    pairs = {frozenset((pair.first, pair.second)): pair.removed for pair in answer.plan.filter_pairs}
    assert pairs.get(frozenset((name, "provider")), 0) >= 1


def test_counts_alone_and_in_pairs_are_those_of_the_bits() -> None:
    random = np.random.default_rng(7)
    names = list(FILTERS)
    bits = np.zeros(4_000, dtype=np.int64)
    for name in names:
        bits |= np.where(random.random(len(bits)) < 0.06, BIT[name], 0)
    report = count_filters(bits, max_pairs=1_000)
    assert (report.total, report.passed) == (4_000, int((bits == 0).sum()))
    for count in report.counts:
        assert count.removed == sum(1 for word in bits.tolist() if word & BIT[count.name])
        assert count.removed_only_by_this == bits.tolist().count(BIT[count.name])
    assert [pair.removed for pair in report.pairs] == sorted(
        (pair.removed for pair in report.pairs), reverse=True
    )
    for pair in report.pairs:
        assert pair.removed == bits.tolist().count(BIT[pair.first] | BIT[pair.second])
    assert len(count_filters(bits, max_pairs=3).pairs) == 3


def relaxation(answer: Answer, name: str) -> Relaxation:
    assert answer.plan.status == "infeasible"
    assert answer.plan.lines == ()
    found = {item.constraint: item for item in answer.plan.relaxations}
    assert name in found, found
    return found[name]


def number(text: str) -> str:
    (value,) = re.findall(r"[0-9][0-9,]*(?:\.[0-9]+)?", text)
    return str(value).replace(",", "")


def test_the_deadline_needed_is_true_and_the_smallest() -> None:
    limits = within(FASTEST * 0.7, 0.5)
    item = relaxation(plan_on(CATALOG, work(constraints=limits)), "deadline")
    assert f"{FASTEST * 0.7:.1f} h" in item.current
    needed = float(number(item.needed))
    assert plan_on(CATALOG, work(constraints={**limits, "deadline": f"{needed:g}h"})).plan.status == "planned"
    less = {**limits, "deadline": f"{needed - 0.2:g}h"}
    assert plan_on(CATALOG, work(constraints=less)).plan.status == "infeasible"


def test_the_deadline_needed_holds_with_the_confidence_asked() -> None:
    limits = within(FASTEST * 0.7, 0.9)
    item = relaxation(plan_on(CATALOG, work(constraints=limits)), "deadline")
    wider = {**limits, "deadline": f"{number(item.needed)}h"}
    assert plan_on(CATALOG, work(constraints=wider)).plan.status == "planned"


def test_a_budget_is_written_as_money() -> None:
    """$1.50 for 1.5, whole dollars without cents."""
    for stated, written in ((1.5, "$1.50"), (2, "$2")):
        item = relaxation(plan_on(CATALOG, work(constraints={"budget_usd": stated})), "budget")
        assert item.current == written and re.fullmatch(r"\$[\d,]+\.\d\d", item.needed)


def test_the_budget_needed_is_true_and_the_smallest() -> None:
    item = relaxation(plan_on(CATALOG, work(constraints={"budget_usd": 2})), "budget")
    needed = float(number(item.needed))
    assert plan_on(CATALOG, work(constraints={"budget_usd": needed})).plan.status == "planned"
    assert (
        plan_on(CATALOG, work(constraints={"budget_usd": round(needed - 0.02, 2)})).plan.status
        == "infeasible"
    )


def test_the_confidence_that_can_be_had_is_true() -> None:
    limits = within(FASTEST * 1.05, 0.99)
    item = relaxation(plan_on(CATALOG, work(constraints=limits)), "confidence")
    assert 0 < float(number(item.needed)) < 0.99
    lower = {**limits, "deadline_confidence": float(number(item.needed))}
    assert plan_on(CATALOG, work(constraints=lower)).plan.status == "planned"


def test_the_confidence_of_a_pair_of_limits_is_a_number() -> None:
    limits = {**within(FASTEST * 1.05, 0.99), "budget_usd": 2}
    item = relaxation(plan_on(CATALOG, work(constraints=limits)), "confidence and budget")
    chance, _, usd = item.needed.partition(" and ")
    assert 0 < float(number(chance)) < 0.99  # was nan: only candidates that pass all else had been asked
    wider = {**limits, "deadline_confidence": float(number(chance)), "budget_usd": float(number(usd))}
    assert plan_on(CATALOG, work(constraints=wider)).plan.status == "planned"


def test_more_nodes_are_offered_when_they_help() -> None:
    limits = {**within(FASTEST * 1.5, 0.5), "max_nodes": 1}
    item = relaxation(plan_on(CATALOG, work(constraints=limits)), "max_nodes")
    assert number(item.current) == "1"
    wider = {**limits, "max_nodes": int(number(item.needed))}
    assert plan_on(CATALOG, work(constraints=wider)).plan.status == "planned"


def test_more_accelerators_are_offered_as_such() -> None:
    limits = {**within(FASTEST * 1.5, 0.5), "max_accelerators": 1}
    answer = plan_on(CATALOG, work(constraints=limits))
    item = relaxation(answer, "max_accelerators")
    assert number(item.current) == "1"
    wider = {**limits, "max_accelerators": int(number(item.needed))}
    assert plan_on(CATALOG, work(constraints=wider)).plan.status == "planned"
    assert "max_nodes" not in {one.constraint for one in answer.plan.relaxations}


@pytest.mark.parametrize(
    ("limits", "name", "change"),
    [
        ({"providers": ["azure"]}, "provider", lambda name: {"providers": [name]}),
        ({"regions": ["eastus"]}, "region", lambda name: {"regions": [name]}),
        ({"purchase_options": ["reserved_3y"]}, "purchase_option", lambda name: {"purchase_options": [name]}),
        ({"accelerators": {"allow": ["inf2*"]}}, "accelerator", lambda name: {"accelerators": {"allow": [name]}}),
        ({"instance_types": {"allow": ["inf2*"]}}, "instance_type", lambda name: {"instance_types": {"allow": [name]}}),
    ],
)  # fmt: skip
def test_the_choice_that_would_help_is_named(limits: dict[str, Any], name: str, change: Any) -> None:
    useless = Machine("azure", "inf2-like", "inf2", "inf2-32gb")
    offers = [
        GOOD,
        OTHER,
        Offer(useless, "eastus", "1.0"),
        replace(OTHER, purchase_option="reserved_3y", capacity=0.0),
    ]
    catalog = make_catalog(offers)
    item = relaxation(plan_on(catalog, work(constraints=limits)), name)
    helpful = change(item.needed.removeprefix("allow "))
    assert plan_on(catalog, work(constraints=helpful)).plan.status == "planned"


def test_a_provider_is_not_promised_when_its_plans_are_too_uncertain() -> None:
    useless = Machine("azure", "inf2-like", "inf2", "inf2-32gb")
    catalog = make_catalog([GOOD, Offer(useless, "eastus", "1.0")])
    limits = {"providers": ["azure"], **within(hours_of([GOOD], 2) * 1.02, 0.9), "max_nodes": 2}
    assert plan_on(catalog, work(constraints={**limits, "providers": ["aws"]})).plan.status == "infeasible"
    answer = plan_on(catalog, work(constraints=limits))
    assert [item.constraint for item in answer.plan.relaxations if item.constraint == "provider"] == []


def test_two_limits_together_are_told_when_one_is_not_enough() -> None:
    limits = {**within(FASTEST * 0.7, 0.5), "budget_usd": "0.5"}
    answer = plan_on(CATALOG, work(constraints=limits))
    item = relaxation(answer, "deadline and budget")
    hours, dollars = (number(part) for part in item.needed.split(" and "))
    both = {**limits, "deadline": f"{hours}h", "budget_usd": dollars}
    assert plan_on(CATALOG, work(constraints=both)).plan.status == "planned"


@pytest.mark.parametrize(
    "limits", [within(FASTEST * 0.7, 0.9), {"budget_usd": 1}, {"min_throughput": {"tokens_per_s": 1e9}}]
)
def test_what_is_shown_as_best_with_a_relaxation_is_a_real_candidate(limits: dict[str, Any]) -> None:
    answer = plan_on(CATALOG, work(constraints=limits))
    assert answer.plan.status == "infeasible"
    assert answer.plan.relaxations
    for item in answer.plan.relaxations:
        assert item.best is not None
        assert item.best.cost_usd > 0
        assert item.best.hours > 0
        assert item.note


def test_facts_of_the_hardware_are_never_relaxed() -> None:
    plan = plan_on(make_catalog([GOOD]), work(model=HUGE, training=SHORT_LONG)).plan
    assert plan.status == "infeasible"
    assert {count.name for count in plan.filters} & {"memory", "layout"}
    assert all(item.constraint not in FACTS for item in plan.relaxations)


def test_what_one_limit_alone_is_said_to_remove_is_a_plan_without_it() -> None:
    """Budget and deadline together, drawn around the fastest: also judged by the limits that are asked last."""
    random, alone = np.random.default_rng(3), {True: 0, False: 0}
    for _ in range(12):
        limits = within(ALONE_HOURS * random.uniform(0.9, 5.0), 0.9)
        limits |= {"max_nodes": 1, "budget_usd": round(ALONE_USD * random.uniform(0.3, 0.9), 2)}
        plan = plan_on(make_catalog([GOOD]), work(constraints=limits)).plan
        if plan.status == "planned":
            continue
        counts = {count.name: count.removed_only_by_this for count in plan.filters}
        free = {name: value for name, value in limits.items() if name != "budget_usd"}
        helps = plan_on(make_catalog([GOOD]), work(constraints=free)).plan.status == "planned"
        assert bool(counts["budget"]) is helps
        alone[helps] += 1
    assert all(alone.values())
