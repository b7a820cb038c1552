"""Alternatives are decisions: another accelerator, provider, region, size or way to buy; near-duplicates are folded."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from planner.candidates.decisions import HAIR_RATIO, KINDS, best_of
from planner.candidates.model import IN_TURN
from planner.candidates.plan_parts.summary import describe, summarize
from planner.job.explain import explain_kinds, why_not
from planner.plan.brief import Summary
from planner.plan.front_scale import Scale
from planner.render.numbers import usd_change_known
from planner.render.precision import rounded
from planner.workloads.answer import Answer
from tests.draws import draws
from tests.planner.job.test_spine_laws import a_job, some_offers
from tests.planner.spine_catalogs import A10G, L4, Offer, make_catalog, make_world, plan_on, work

BULK = {"training": {"samples": 2_000_000, "global_batch": 512, "sequence_length": 128, "precision": "fp16"}}


def answer_on(offers: list[Offer], **changes: Any) -> Answer:
    return plan_on(make_catalog(offers), work(**{"constraints": {"max_nodes": 1}, **changes}))


def shown(answer: Answer) -> list[tuple[str, tuple[str, ...]]]:
    return [(describe(other), other.brings) for other in answer.plan.alternatives]


def folded(answer: Answer) -> dict[tuple[int, str], int]:
    return {(one.rank, one.differs_in): one.count for one in answer.plan.folded}


def test_zones_and_machines_with_the_same_accelerators_are_one_decision() -> None:
    answer = answer_on([Offer(A10G, "us-east-1", "1.0", zone=zone) for zone in "abc"])
    assert answer.plan.alternatives == ()
    assert folded(answer) == {(1, "machine"): 2}


def test_the_second_row_is_another_region_where_that_is_the_second_best_decision() -> None:
    answer = answer_on(
        [Offer(A10G, "us-east-1", "1.0"), Offer(A10G, "us-west-2", "1.1"), Offer(L4, "us-central1", "9.0")]
    )
    assert shown(answer) == [
        ("1 x g5.2xlarge on_demand in aws/us-west-2", ("region",)),
        ("1 x g2-standard-8 on_demand in gcp/us-central1", ("accelerator", "provider")),
    ]


def test_a_region_within_a_hair_is_folded_into_the_plan_with_its_cost() -> None:
    answer = answer_on([Offer(A10G, "us-east-1", "1.0"), Offer(A10G, "us-west-2", "1.01")])
    assert shown(answer) == []
    (one,) = answer.plan.folded
    assert (one.rank, one.differs_in, one.count) == (1, "region", 1)
    assert one.best is not None
    assert one.best.region == "us-west-2"
    assert 0 < one.best.delta_cost_usd <= answer.plan.total_usd * Decimal(HAIR_RATIO)


def test_another_size_is_listed_where_it_is_sooner() -> None:
    limits = {"max_nodes": 4}
    answer = answer_on([Offer(A10G, "us-east-1", "1.0")], constraints=limits, **BULK)
    (other,) = answer.plan.alternatives
    assert other.brings == ("size",)
    assert other.hours < answer.plan.hours
    assert sum(count for (_, differs), count in folded(answer).items() if differs == "size") >= 1


def test_blocks_and_every_other_way_to_buy_compete() -> None:
    offers = [
        Offer(A10G, "us-east-1", "1.0"), Offer(A10G, "us-east-1", "0.9", "capacity_block"),
        Offer(A10G, "us-east-1", "0.3", "spot"), Offer(L4, "us-central1", "5.0", "flex_start"),
    ]  # fmt: skip
    answer = answer_on(
        offers, constraints={"max_nodes": 1, "deadline": "20d", "deadline_confidence": 0.5}, **BULK
    )
    ways = [
        answer.plan.lines[0].purchase_option,
        *(other.purchase_option for other in answer.plan.alternatives),
    ]
    assert {"on_demand", "capacity_block", "spot", "flex_start"} <= set(ways)


def test_after_the_results_asked_for_only_providers_and_ways_to_buy_follow() -> None:
    offers = [
        Offer(A10G, "us-east-1", "1.0"), Offer(A10G, "us-west-2", "2.0"), Offer(L4, "us-central1", "9.0"),
        Offer(A10G, "us-west-2", "2.5", "capacity_block"),
    ]  # fmt: skip
    answer = answer_on(offers, preferences={"max_results": 1})
    assert [brings for _, brings in shown(answer)] == [("region",), ("way",), ("accelerator", "provider")]


def way_of(item: Summary, *, in_turn: bool) -> tuple[object, ...]:
    options = sorted((part.purchase_option, part.option_variant == "already_owned") for part in item.parts)
    if not in_turn:
        return tuple(options)
    spot = sum(option == "spot" for option, _ in options)
    return "in turn", spot > 1, spot < len(options)


@draws(15)
@given(some_offers(2), a_job())
def test_listed_decisions_are_the_best_of_their_kind(offers: list[Offer], job: dict[str, Any]) -> None:
    answer = plan_on(make_world(offers), job)
    if answer.plan.status != "planned":
        return
    assert answer.found is not None
    made, objective = answer.found.candidates, answer.plan.objective
    best: dict[tuple[Any, ...], float] = {}
    keys: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for at in np.flatnonzero(made.bits == 0).tolist():
        item = summarize(made, at, None)
        way = way_of(item, in_turn=made.kind[at] == IN_TURN)
        key = (item.accelerator, item.provider, item.region, item.accelerators, way)
        value = float(made.cost_usd[at] if objective == "cost" else made.hours[at])
        best[key] = min(best.get(key, np.inf), value)
        keys[item.cost_usd, item.hours, item.instance_type, item.region, item.parts] = key
    listed = [
        keys[one.cost_usd, one.hours, one.instance_type, one.region, one.parts]
        for one in answer.plan.alternatives
    ]
    assert len(set(listed)) == len(listed)
    for one, key in zip(answer.plan.alternatives, listed, strict=True):
        assert (float(one.cost_usd) if objective == "cost" else one.hours) == pytest.approx(
            best[key], rel=1e-6
        )
        assert one.brings
    _agree(answer)


def _agree(answer: Answer) -> None:
    """Baseline, best of each kind, alternatives and `why` name one cost for the best on-demand candidate."""
    plan = answer.plan
    assert answer.found is not None
    made = answer.found.candidates
    at = best_of(made, KINDS[0])
    assert plan.savings is not None
    if plan.savings.baseline is None:
        assert at is None
        return
    assert at is not None
    cost = summarize(made, at, None).cost_usd
    assert plan.savings.baseline.cost_usd == cost
    listed = [
        one for one in plan.alternatives if {part.purchase_option for part in one.parts} == {"on_demand"}
    ]
    if any("way" in one.brings for one in listed):
        assert listed[0].cost_usd == cost


def test_why_the_baseline_explain_and_the_alternatives_name_the_same_candidate() -> None:
    offers = [
        Offer(A10G, "us-east-1", "1.2"), Offer(A10G, "us-east-1", "0.2", "spot"), Offer(L4, "us-central1", "1.0"),
    ]  # fmt: skip
    answer = answer_on(
        offers, constraints={"max_nodes": 1, "deadline": "20d", "deadline_confidence": 0.5}, **BULK
    )
    plan = answer.plan
    assert plan.lines[0].purchase_option == "spot"
    assert plan.savings is not None
    assert plan.savings.baseline is not None
    base = plan.savings.baseline
    said = f"{describe(base)}"
    usd = f"${base.cost_usd:,.2f}"
    assert plan.launch is not None
    assert plan.launch.why[0] == f"on-demand alone would cost {usd} and take {base.hours:,.1f} h: {said}"
    (kind,) = [line for line in explain_kinds(answer.found, plan) if line.startswith("on-demand alone")]
    assert any((one.cost_usd, describe(one)) == (base.cost_usd, said) for one in plan.alternatives)
    lines = why_not(answer.context.asked, answer.context.market, answer.found, base.instance_type, plan)
    scale = Scale.of(plan)
    more = usd_change_known(rounded(base.delta_cost_usd, scale.places(base.cost_usd)))
    for line in (kind, lines[-1]):
        assert f"{said}, {scale.usd(base.cost_usd)} ({more})" in line


def test_a_type_that_fits_too_rarely_says_how_often_it_does_not() -> None:
    """Less than the memory is needed, and yet nothing fits: the sureness that is asked keeps it out."""
    training = {**BULK["training"], "memory": {"confidence": 0.999999999}}
    job = work(model={"preset": "gpt-2-774m"}, constraints={"max_nodes": 1}, training=training)
    answer = plan_on(make_catalog([Offer(A10G, "us-east-1", "1.2")]), job)
    assert answer.plan.status == "infeasible"
    lines = why_not(
        answer.context.asked, answer.context.market, answer.found, A10G.instance_type, answer.plan
    )
    said = next(line for line in lines if "does not run on" in line and "GiB" in line)
    assert "GiB per accelerator and runs out with " in said and ", has " not in said
