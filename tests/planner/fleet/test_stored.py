"""Storage of fleets: what each worker pays, what a place pays once, and the judge beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.plan.ids import CostId
from planner.plan.model import Plan
from planner.plan.storage_words import reason_of
from tests.planner.fleet.test_spine_fleet import POOL, fleet
from tests.planner.spine_catalogs import A10G, L4, Machine, Offer, make_world, plan_on

BIG_DISK = Machine(**{**vars(A10G), "instance_type": "g5.disk", "local_nvme_gib": 8_000.0})
OFFERS = [
    Offer(A10G, "us-east-1", "1.10", capacity=2.0), Offer(BIG_DISK, "us-east-1", "1.30", capacity=6.0),
    Offer(L4, "us-central1", "0.90", capacity=2.0),
]  # fmt: skip


def _plan(way: str, offers: list[Offer] = OFFERS, size: str = "20GB") -> Plan:
    job = {**fleet(6, {"max_nodes": 20}), "storage": {"data": way}, "data": {"size": size}}
    return plan_on(make_world(offers), job).plan


def _ids(plan: Plan, cost_id: CostId) -> list[str]:
    return [line.region for line in plan.lines for cost in line.costs if cost.id == cost_id]


@pytest.mark.parametrize("way", ["auto", "object", "local_nvme", "block", "file_system"])
def test_what_a_place_shares_is_paid_once(way: str) -> None:
    plan = _plan(way)
    regions = sorted({line.region for line in plan.lines})
    assert len(plan.lines) > 1 and sum(line.nodes for line in plan.lines) > len(regions)
    assert sorted(_ids(plan, CostId.DATASET_STORAGE)) == regions
    systems = _ids(plan, CostId.DATASET_FILE_SYSTEM)
    assert len(systems) == len(set(systems)) and bool(systems) == (way == "file_system")
    data = [choice for choice in plan.storage if choice.content == "data"]
    assert [choice.line for choice in data] == [*range(len(plan.lines))]
    paid = sum(
        float(cost.amount_usd)
        for line in plan.lines
        for cost in line.costs
        if cost.id.value.startswith("dataset_") and cost.id != CostId.DATASET_STORAGE
    )
    told = sum(float(choice.chosen.cost_usd) for choice in data)
    assert paid == pytest.approx(told, rel=1e-6) if way != "file_system" else paid <= told * (1 + 1e-9)


@pytest.mark.parametrize(("size", "copies"), [("1GB", True), ("20GB", False)])
def test_each_worker_copies_what_it_reads_to_its_disk_once(size: str, copies: bool) -> None:
    """The runs read 7.7 GB: 1 GB many times, so that each worker has all of it; of 20 GB each its part."""
    plan = _plan("local_nvme", [OFFERS[1]], size)
    (line,) = plan.lines
    reads = next(cost for cost in line.costs if cost.id == CostId.DATASET_READS)
    whole = float(size.removesuffix("GB")) / 0.128 * (line.nodes if copies else 1)
    assert line.nodes > 1 and float(reads.quantity) * 1000 == pytest.approx(whole, abs=1)
    assert plan.storage[0].chosen.kind == "local_nvme" and plan.storage[0].chosen.keeps_rule


def test_a_shared_file_system_holds_what_all_lines_read() -> None:
    plan = _plan("file_system", OFFERS[:2])
    assert len(plan.lines) == 2 and len({line.region for line in plan.lines}) == 1
    assert len(_ids(plan, CostId.DATASET_FILE_SYSTEM)) == 1


@pytest.mark.parametrize("way", ["object", "local_nvme", "block", "file_system"])
def test_a_shared_file_system_is_paid_until_the_last_worker_ends(way: str) -> None:
    """Five runs by workers of which some do two: volumes of their own are paid for their own hours, in the mean."""
    job = {
        **fleet(5, {"max_nodes": 20, "deadline": "20h"}),
        "storage": {"data": way},
        "data": {"size": "20GB"},
    }
    plan = plan_on(make_world([replace(OFFERS[1], capacity=3.0)]), job).plan
    (line,) = plan.lines
    assert line.nodes == 2  # three runs and two
    paid = [cost for cost in line.costs if cost.id in (CostId.DATASET_FILE_SYSTEM, CostId.DATASET_VOLUMES)]
    assert bool(paid) == (way in ("block", "file_system"))
    if way == "file_system":
        way_taken = next(choice for choice in plan.storage if choice.content == "data").chosen
        assert float(paid[0].quantity) == pytest.approx(way_taken.capacity_gib * plan.hours / 730, rel=1e-6)
    # what is said of the same machines beside the plan is what they cost
    assert plan.savings.baseline is not None
    assert float(plan.savings.baseline.cost_usd) == pytest.approx(float(plan.total_usd), rel=1e-4)


@pytest.mark.parametrize("size", ["1GB", "20GB"])
@pytest.mark.parametrize("way", ["object", "local_nvme", "block", "file_system"])
def test_what_is_said_of_one_offer_is_what_its_workers_pay(way: str, size: str) -> None:
    """Whole runs take more workers than the work alone, by whose number the ways are chosen: each has its copy."""
    job = {**fleet(5, {"max_nodes": 20, "deadline": "7h"}), "storage": {"data": way}, "data": {"size": size}}
    plan = plan_on(make_world([OFFERS[1]]), job).plan
    (line,) = plan.lines
    assert line.nodes == 5
    assert plan.savings.baseline is not None
    assert float(plan.savings.baseline.cost_usd) == pytest.approx(float(plan.total_usd), rel=1e-4)


def test_a_cheaper_way_that_was_not_asked_for_says_what_it_would_save() -> None:
    data = _plan("object", [OFFERS[1]]).storage[0]
    cheaper = replace(data.chosen, cost_usd=data.chosen.cost_usd - 5)
    said = reason_of(data, cheaper)
    assert "5.00 USD less" in said and "storage.data" in said and "not cheaper" not in said
    assert reason_of(data, replace(data.chosen)).endswith("; not cheaper")


def test_streams_are_paid_by_the_work_of_a_line() -> None:
    plan = _plan("object", POOL)
    reads = [
        (float(cost.quantity), line.throughput_per_s)
        for line in plan.lines
        for cost in line.costs
        if cost.id == CostId.DATASET_READS
    ]
    whole = sum(speed for _, speed in reads)
    for quantity, speed in reads:
        assert quantity == pytest.approx(sum(q for q, _ in reads) * speed / whole, rel=1e-6)
