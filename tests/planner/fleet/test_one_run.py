"""A fleet of one run on one node, where nothing is shared, is the job: the same evidence, the same ways, the same cost.

A job has more ways: several zones in turn, and on-demand to fall back on. So a fleet never costs less than the job, and
as much where both may buy one offer alone.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from benchmarks.instances.drawn_workloads import draw_workload
from planner.judge.lines import verify_plan
from planner.plan.model import Plan
from tests.planner.fleet.test_spine_fleet import fleet
from tests.planner.real_catalog import OPTIONS, compared
from tests.planner.spine_catalogs import A10G, V100, Offer, loaded, make_catalog, plan_on

WAIT = Decimal("0.01")  # of the cost: checkpoints are kept in a job's first wait for spot, not in a worker's
SEEDS = (2, 5, 8, 9, 11, 12)  # with a deadline, and possible on one node
UNRECORDED = Offer(A10G, "us-east-1", "0.30", "spot")
CATALOG = make_catalog([UNRECORDED, Offer(A10G, "us-east-1", "1.10"), Offer(V100, "us-east-1", "3.00")])


@pytest.mark.catalog("whole")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_fleet_of_one_run_costs_what_the_job_costs(seed: int) -> None:
    job, one = both(seed, purchase_options=["on_demand"])
    assert job.status == one.status == "planned"
    assert [line.offer_id for line in job.lines] == [line.offer_id for line in one.lines]
    assert abs(job.total_usd - one.total_usd) < Decimal("0.01")


@pytest.mark.catalog("whole")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_fleet_of_one_run_never_costs_less_than_the_job(seed: int) -> None:
    job, one = both(seed)
    assert job.status == one.status == "planned"
    assert one.total_usd >= job.total_usd * (1 - WAIT)


def both(seed: int, **limits: Any) -> tuple[Plan, Plan]:
    """A drawn job on one node, and the same as a fleet of one run."""
    sections = draw_workload(seed)
    free = {
        name: limit
        for name, limit in sections["constraints"].items()
        if name not in ("budget_usd", "quota", "purchase_options")
    }
    job = {**sections, "constraints": {**free, "max_nodes": 1, **limits}}
    exact = replace(OPTIONS, gap=0.0)
    return (
        compared(job, options=exact),
        compared({**job, "kind": "fleet", "fleet": {"runs": 1}}, options=exact),
    )


def test_workers_on_spot_alone_by_a_deadline_rest_on_records() -> None:
    wanted = fleet(6, {"max_nodes": 20, "deadline": "60h"})
    admitted = plan_on(CATALOG, wanted).plan
    assert "spot" in {line.purchase_option for line in admitted.lines}
    assert verify_plan(admitted.to_dict(), loaded(wanted).workload, CATALOG.offers) == []

    careful = {name: section for name, section in wanted.items() if name != "spot"}
    held = plan_on(CATALOG, careful).plan
    assert held.launch is not None and held.launch.strategy == "spot_with_fallback"
    assert admitted.total_usd < held.total_usd
    careful["fleet"] = {
        **careful["fleet"],
        "max_share_per_offer": 0.99,
    }
    kept = plan_on(CATALOG, careful).plan
    assert kept.launch is not None and kept.launch.in_parts and kept.total_usd > held.total_usd
    faults = verify_plan(admitted.to_dict(), loaded(careful).workload, CATALOG.offers)
    assert any("spot alone by a deadline without recorded availability" in fault for fault in faults)
    careful["fleet"] = {**careful["fleet"], "runs": 1}  # mixes alone, which have no fall-back
    kept = plan_on(CATALOG, careful).plan
    assert {line.purchase_option for line in kept.lines} == {"on_demand"}
    assert next(item for item in kept.filters if item.name == "unrecorded").removed == 1
    words = (
        "spot without recorded interruptions is used only with a fall-back (offers: 1); "
        "spot.fallback: none allows it alone"
    )
    assert words in kept.warnings
    assert not any("without recorded interruptions" in text for text in admitted.warnings)


def test_without_a_deadline_or_on_demand_spot_needs_no_record() -> None:
    careful = {name: section for name, section in fleet(6).items() if name != "spot"}
    for limits in ({"max_nodes": 20}, {"max_nodes": 20, "deadline": "60h", "purchase_options": ["spot"]}):
        plan = plan_on(CATALOG, {**careful, "constraints": limits}).plan
        assert {line.purchase_option for line in plan.lines} == {"spot"}
        assert verify_plan(plan.to_dict(), loaded({**careful, "constraints": limits}).workload) == []
