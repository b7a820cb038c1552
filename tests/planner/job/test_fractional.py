"""Shares of an accelerator: planned with their share's speed and memory, one process each, and verified."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.judge.lines import verify_plan
from tests.planner.spine_catalogs import A10G, Offer, loaded, make_catalog, plan_on, work

HALF = replace(
    A10G, instance_type="half", accelerator_count=0.5, accelerator_memory_gib=11.0, internode_gbps=5.0
)
JOB = work(training={"samples": 1_000_000, "global_batch": 32, "sequence_length": 128, "precision": "fp16"})


@pytest.mark.parametrize("nodes", [1, 4])
def test_a_share_is_planned_and_verified(nodes: int) -> None:
    limits = {"include_fractional": True, "max_nodes": nodes, "min_total_memory_gib": 11.0 * nodes}
    job = {**JOB, "constraints": limits}
    catalog = make_catalog([Offer(HALF, "us-east-1", "0.2")])
    plan = plan_on(catalog, job).plan
    assert plan.status == "planned"
    assert plan.lines[0].nodes == nodes
    assert verify_plan(plan.to_dict(), loaded(job).workload, catalog.offers) == []


def test_a_share_is_slower_by_its_share() -> None:
    whole = plan_on(
        make_catalog([Offer(A10G, "us-east-1", "1")]), {**JOB, "constraints": {"max_nodes": 1}}
    ).plan
    limits = {"include_fractional": True, "max_nodes": 1}
    part = plan_on(make_catalog([Offer(HALF, "us-east-1", "1")]), {**JOB, "constraints": limits}).plan
    assert whole.performance is not None and part.performance is not None
    assert 1.5 < whole.performance.throughput_per_s / part.performance.throughput_per_s < 3
