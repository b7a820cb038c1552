"""A batch that no admitted cluster divides: the answer names the nearest one that has a plan."""

from __future__ import annotations

from typing import Any

from planner.plan.model import Plan
from tests.planner.spine_catalogs import A100X8, V100, Offer, make_catalog, plan_on

EIGHT = Offer(A100X8, "us-east-1", "20.00")


def planned(batch: int, *offers: Offer, **limits: Any) -> Plan:
    """Plan an image model, whose batch is all that divides among accelerators."""
    job = {
        "version": 1,
        "name": "odd",
        "model": {"preset": "resnet50"},
        "training": {"samples": 1e7, "global_batch": batch, "precision": "fp16"},
        "data": {"size": "1GB"},
        "constraints": {"deadline": "100h", "max_nodes": 1} | limits,
    }
    return plan_on(make_catalog(list(offers)), job).plan


def changed(plan: Plan) -> list[tuple[str, str]]:
    return [(one.current, one.needed) for one in plan.relaxations if one.constraint == "layout"]


def test_the_nearest_batch_that_works_is_named_with_its_plan() -> None:
    plan = planned(250, EIGHT)
    assert plan.status == "infeasible" and plan.relaxations[0].constraint == "layout"
    assert changed(plan) == [("training.global_batch 250", "248")]
    best, real = plan.relaxations[0].best, planned(248, EIGHT)
    assert best is not None and real.status == "planned"
    assert float(best.cost_usd) == float(real.total_usd) and best.hours == real.hours


def test_no_batch_is_named_where_one_cluster_divides_it_or_no_batch_helps() -> None:
    slow = planned(250, EIGHT, Offer(V100, "us-east-1", "3.00"), deadline="1h")
    assert slow.status == "infeasible" and not changed(slow)
    assert not changed(planned(250, EIGHT, deadline="10m"))
