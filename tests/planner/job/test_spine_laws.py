"""The laws of DESIGN.md section 6 on small catalogs of invented offers, for a single job."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from catalogs.tables.model import Catalog
from planner.workloads.answer import Answer
from tests.draws import draws
from tests.planner.spine_catalogs import (
    A10G,
    L4,
    MACHINES,
    NAN,
    REGIONS,
    V100,
    Offer,
    ScaledTariffs,
    bought_on,
    chosen,
    cost_of,
    make_catalog,
    make_world,
    not_dearer,
    plan_on,
    work,
)

LAW = draws(20)
BLOCK = draws(8)
OPTIONS = {
    "aws": ("on_demand", "spot", "reserved_1y", "capacity_block"),
    "gcp": ("on_demand", "spot", "flex_start"),
    "azure": ("on_demand", "spot", "reserved_1y"),
    "alibaba": ("on_demand", "spot"),
}


@st.composite
def an_offer(draw: st.DrawFn) -> Offer:
    machine = draw(st.sampled_from(MACHINES))
    option = draw(st.sampled_from(OPTIONS[machine.provider]))
    cents = draw(st.integers(1, 60) if option == "reserved_1y" else st.integers(20, 900))
    price = Decimal(cents) / (10_000 if option == "reserved_1y" else 100)
    return Offer(
        machine, draw(st.sampled_from(REGIONS[machine.provider])), str(price), option,
        currency="CNY" if machine.provider == "alibaba" else "USD",
        term_hours=8760.0 if option == "reserved_1y" else NAN, capacity=draw(st.sampled_from([NAN, NAN, 2.0])),
    )  # fmt: skip


def some_offers(least: int = 1, most: int = 6) -> st.SearchStrategy[list[Offer]]:
    return st.lists(an_offer(), min_size=least, max_size=most, unique_by=lambda offer: offer.offer_id)


@st.composite
def a_job(draw: st.DrawFn) -> dict[str, Any]:
    limits: dict[str, Any] = {"max_nodes": draw(st.integers(1, 8))}
    deadline = draw(st.sampled_from([None, 3, 5, 8, 12, 20]))
    if deadline is not None:
        limits |= {"deadline": f"{deadline}h", "deadline_confidence": draw(st.sampled_from([0.5, 0.9]))}
    budget = draw(st.sampled_from([None, 5, 20, 60]))
    if budget is not None:
        limits["budget_usd"] = budget
    return work(constraints=limits, data={"size": "20GB", "location": draw(st.sampled_from(LOCATIONS))})


LOCATIONS = ("aws/us-east-1", "gcp/us-central1", "onprem")


def at_quotes(job: dict[str, Any]) -> dict[str, Any]:
    """The job at quoted prices: expected prices of a type follow from all its offers, so they move with one more."""
    return {**job, "preferences": {"prices": "quoted"}}


@LAW
@given(some_offers(2), a_job().map(at_quotes))
def test_adding_an_offer_never_raises_the_optimum(offers: list[Offer], job: dict[str, Any]) -> None:
    fewer = bought_on(make_world(offers[:-1]), job)
    more = bought_on(make_world(offers), job)
    assert not_dearer(cost_of(more), cost_of(fewer))


RELAXED = {
    "deadline": ({"deadline": "6h"}, {"deadline": "10h"}),
    "no deadline": ({"deadline": "6h"}, {}),
    "budget": ({"budget_usd": 12}, {"budget_usd": 40}),
    "max_nodes": ({"max_nodes": 2}, {"max_nodes": 7}),
    "max_accelerators": ({"max_accelerators": 2}, {"max_accelerators": 8}),
    "throughput": ({"min_throughput": {"tokens_per_s": 600_000}}, {"min_throughput": {"tokens_per_s": 200_000}}),
    "memory": ({"min_memory_gib": 30.0}, {"min_memory_gib": 16.0}),
    "total memory": ({"min_total_memory_gib": 100.0}, {"min_total_memory_gib": 40.0}),
    "confidence": (
        {"deadline": "6h", "deadline_confidence": 0.97},
        {"deadline": "6h", "deadline_confidence": 0.6},
    ),
    "providers": ({"providers": ["aws"]}, {"providers": ["aws", "gcp", "azure"]}),
    "regions": ({"regions": ["us-*"]}, {"regions": ["us-*", "eu*"]}),
    "quota": (
        {"quota": [{"provider": "aws", "quota": name, "unit": "vCPU", "limit": 8} for name in ("p3", "g5", "p4d")]},
        {"quota": [{"provider": "aws", "quota": name, "unit": "vCPU", "limit": 96} for name in ("p3", "g5", "p4d")]},
    ),
    "options": ({"purchase_options": ["on_demand"]}, {"purchase_options": ["on_demand", "spot"]}),
    "accelerators": ({"accelerators": {"allow": ["a10*"]}}, {"accelerators": {"allow": ["a1*", "l4*"]}}),
}  # fmt: skip


@pytest.mark.parametrize("limit", RELAXED)
@BLOCK
@given(offers=some_offers(3))
def test_relaxing_a_limit_never_raises_the_optimum(limit: str, offers: list[Offer]) -> None:
    tight, loose = RELAXED[limit]
    if limit == "accelerators":  # a name that nothing on offer matches is refused, not a limit
        assume(any(offer.machine.accelerator.startswith("a10") for offer in offers))
    catalog = make_world(offers)
    before = cost_of(bought_on(catalog, work(constraints=tight)))
    assert not_dearer(cost_of(bought_on(catalog, work(constraints=loose))), before)


@LAW
@given(some_offers(), a_job(), st.sampled_from(["0.25", "2", "3", "1000"]))
def test_scaling_every_price_scales_the_cost(offers: list[Offer], job: dict[str, Any], factor: str) -> None:
    times = Decimal(factor)
    scaled = [replace(offer, price_per_hour=str(Decimal(offer.price_per_hour) * times)) for offer in offers]
    overlay = {"provider": "gcp", "change": "0.5", "note": "agreed"}
    # not scaled: what a machine-hour of packing is assumed to cost, and the cent up to which local disks are preferred
    job = {**job, "prices": {"overlays": [overlay]}, "storage": {"data": "object"}}
    limits = dict(job["constraints"])
    if "budget_usd" in limits:
        limits["budget_usd"] = f"{limits['budget_usd'] * times}"
    scaled_job = {
        **job,
        "constraints": limits,
        "prices": {"overlays": [{**overlay, "change": f"{Decimal('0.5') * times:f}"}]},
    }
    before = bought_on(make_world(offers), job)
    after = bought_on(make_world(scaled), scaled_job, tariffs=ScaledTariffs(times))
    assert before.plan.status == after.plan.status
    assert float(after.plan.total_usd) == pytest.approx(
        float(before.plan.total_usd * times), rel=1e-9, abs=1e-6
    )


@LAW
@given(some_offers(2), a_job(), st.randoms(use_true_random=False))
def test_row_order_changes_nothing(offers: list[Offer], job: dict[str, Any], rng: random.Random) -> None:
    before = plan_on(make_world(offers), job).plan
    mixed = rng.sample(offers, len(offers))
    after = plan_on(make_world(mixed), job).plan
    assert (after.lines, after.total_usd, after.hours) == (before.lines, before.total_usd, before.hours)
    assert after.alternatives == before.alternatives
    assert after.relaxations == before.relaxations


@LAW
@given(some_offers(2), a_job())
def test_renaming_regions_changes_only_labels(offers: list[Offer], job: dict[str, Any]) -> None:
    # regions no tariff table knows: both names get the same (derived) storage and transfer prices
    names = {"us-east-1": "one", "us-central1": "one", "eastus": "one", "ap-southeast-1": "one"}
    first = [replace(offer, region=names.get(offer.region, "two")) for offer in offers]
    job = {**job, "data": {"size": "20GB"}}
    swap = {"one": "zone-z", "two": "alpha"}
    second = [replace(offer, region=swap[offer.region]) for offer in first]
    before, after = bought_on(make_catalog(first), job).plan, bought_on(make_catalog(second), job).plan
    assert (before.status, before.total_usd, before.hours) == (after.status, after.total_usd, after.hours)
    assert [line.instance_type for line in before.lines] == [line.instance_type for line in after.lines]


@LAW
@given(some_offers(), a_job().map(at_quotes), st.data())
def test_a_duplicate_of_an_offer_changes_nothing(
    offers: list[Offer], job: dict[str, Any], data: st.DataObject
) -> None:
    twin = data.draw(st.sampled_from(offers))
    before, after = plan_on(make_world(offers), job).plan, plan_on(make_world([*offers, twin]), job).plan
    assert (after.lines, after.total_usd, after.n_results) == (
        before.lines,
        before.total_usd,
        before.n_results,
    )
    assert after.savings == before.savings


@LAW
@given(some_offers(), a_job().map(at_quotes), st.data())
def test_a_dominated_offer_is_never_chosen(
    offers: list[Offer], job: dict[str, Any], data: st.DataObject
) -> None:
    better = data.draw(st.sampled_from(offers))
    worse = replace(better, zone="dear", price_per_hour=str(Decimal(better.price_per_hour) * Decimal("1.01")))
    plan = bought_on(make_world([worse, *offers]), job).plan
    nodes = {line.offer_id: line.nodes for line in plan.lines}
    if worse.offer_id in nodes:  # only to top up the better one where all of that is taken
        assert nodes.get(better.offer_id) == better.capacity


SCARCE = [  # the cheapest plan takes both nodes owned and tops them up at the same place
    Offer(A10G, "us-east-1", "0.1", "owned", capacity=2.0),
    Offer(A10G, "us-east-1", "3.0"),
]


@LAW
@given(some_offers(), a_job())
@example(SCARCE, work(constraints={"max_nodes": 4, "deadline": "8h"}))
def test_lines_sum_to_the_total_and_the_objective_is_the_repriced_plan(
    offers: list[Offer], job: dict[str, Any]
) -> None:
    answer = plan_on(make_world(offers), job)
    plan = answer.plan
    if plan.status != "planned":
        return
    assert sum((cost.amount_usd for line in plan.lines for cost in line.costs), Decimal(0)) == plan.total_usd
    assert plan.proof is not None
    assert plan.proof.verified
    assert float(plan.total_usd) == pytest.approx(_objective(answer), rel=1e-9)
    assert plan.proof.objective_usd == plan.total_usd
    for alternative in plan.alternatives:
        assert alternative.cost_usd == plan.total_usd + alternative.delta_cost_usd
        assert alternative.hours == pytest.approx(plan.hours + alternative.delta_hours)


def _objective(answer: Answer) -> float:
    """The float cost of the cheapest feasible candidate, which the search compared with all others."""
    assert answer.found is not None
    candidates = answer.found.candidates
    return float(candidates.cost_usd[candidates.bits == 0].min())


@settings(BLOCK)
@given(an_offer(), st.integers(1, 4))
def test_the_probability_to_meet_a_later_deadline_is_not_lower(offer: Offer, nodes: int) -> None:
    catalog, last = make_world([offer]), 0.0
    free = bought_on(catalog, work(constraints={"max_nodes": nodes})).plan
    for times in (1.001, 1.05, 1.1, 1.2, 1.4, 1.8, 2.5, 8.0):
        limits = {"max_nodes": nodes, "deadline": f"{free.hours * times:.5f}h", "deadline_confidence": 1e-6}
        found = bought_on(catalog, work(constraints=limits)).found
        assert found is not None
        made = found.candidates
        mine = made.p_meet[(made.nodes == nodes) & ~np.isnan(made.p_meet)]
        if len(mine):
            assert mine[0] >= last - 1e-9
            last = float(mine[0])
    assert 0.0 <= last <= 1.0


@LAW
@given(some_offers(2), a_job())
def test_the_plan_keeps_its_limits(offers: list[Offer], job: dict[str, Any]) -> None:
    plan = plan_on(make_world(offers), job).plan
    limits = job["constraints"]
    if plan.status != "planned":
        assert plan.relaxations or plan.filters
        return
    assert plan.risk is not None
    assert plan.lines[0].nodes <= limits["max_nodes"]
    if "deadline" in limits:
        assert plan.hours <= float(limits["deadline"].removesuffix("h"))
        assert plan.risk.p_meet_deadline is not None
        assert plan.risk.p_meet_deadline >= limits["deadline_confidence"] - 1e-9
    if "budget_usd" in limits:
        assert sum((month.amount_usd for month in plan.cash), Decimal(0)) <= limits["budget_usd"]
    assert plan.risk.worst_cost_usd >= plan.risk.expected_cost_usd
    assert plan.risk.worst_hours >= plan.risk.expected_hours * (1 - 1e-9)
    assert sum(part.hours for part in plan.timeline) == pytest.approx(plan.hours)


def test_ties_are_decided_by_name_and_alternatives_are_other_decisions() -> None:
    offers = [
        Offer(A10G, region, "1.0", zone=zone) for region in ("us-west-2", "us-east-1") for zone in ("b", "a")
    ]
    offers.append(Offer(L4, "us-central1", "9.0"))
    plan = plan_on(make_catalog(offers), work(constraints={"max_nodes": 1})).plan
    assert plan.lines[0].offer_id == "aws/us-east-1/a/g5.2xlarge/on_demand/-"
    assert [other.instance_type for other in plan.alternatives] == ["g2-standard-8"]


def _growing(nodes: int) -> tuple[Catalog, dict[str, Any]]:
    """A job that meets deadline and budget on exactly `nodes` nodes; its batch divides by `nodes`."""
    training = {
        "samples": 2_000_000_000, "global_batch": nodes * 360, "sequence_length": 128, "precision": "fp16",
    }  # fmt: skip
    catalog = make_catalog([Offer(A10G, "us-east-1", "1.0")])
    found = plan_on(catalog, work(constraints={"max_nodes": nodes}, training=training)).found
    assert found is not None
    made = found.candidates
    at = int(np.flatnonzero(made.nodes == nodes)[0])
    limits = {
        "deadline": f"{made.hours[at] + 0.02:.4f}h", "deadline_confidence": 0.4,
        "budget_usd": f"{made.cash_usd[at] + 0.02:.2f}",
    }  # fmt: skip
    return catalog, work(constraints={**limits, "max_nodes": nodes}, training=training)


@pytest.mark.parametrize("nodes", [8, 9, 11, 17])
def test_only_one_cluster_size_fits_and_is_found(nodes: int) -> None:
    catalog, job = _growing(nodes)
    assert chosen(plan_on(catalog, job)) == [("aws/us-east-1/-/g5.2xlarge/on_demand/-", nodes)]


@pytest.mark.parametrize(
    "nodes",
    [8, 9, 17],
)
def test_a_higher_node_limit_does_not_lose_the_plan(nodes: int) -> None:
    catalog, job = _growing(nodes)
    wider = {**job, "constraints": {**job["constraints"], "max_nodes": 24}}
    assert not_dearer(cost_of(plan_on(catalog, wider)), cost_of(plan_on(catalog, job)))


def test_the_fastest_plan_is_the_cheapest_of_the_fastest() -> None:
    offers = [Offer(V100, "us-east-1", "3.0"), Offer(V100, "eu-west-1", "2.0")]
    plan = plan_on(make_catalog(offers), work(preferences={"objective": "time"})).plan
    assert plan.lines[0].region == "eu-west-1"
    assert plan.objective == "time"
