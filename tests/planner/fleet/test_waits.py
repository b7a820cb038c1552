"""On-demand workers of a fleet may come late or never: its chance holds that, and its hours leave time for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.fleet.chance import Progress
from planner.judge.lines import verify_plan
from planner.plan.model import Plan
from tests.planner.fleet.test_spine_fleet import exactly, fleet
from tests.planner.spine_catalogs import A100X8, Offer, loaded, make_catalog

OFFERS = [Offer(A100X8, "us-east-1", "22.00")]
# so often that they rule: eight A100 take 3 h in the mean
WAITED = [
    {"accelerator": "a100*", "purchase_option": "on_demand", "accelerators": 16, "waited_hours": 6}
] * 50

CERTAIN = [{"purchase_option": "*", "hours": 3}]


def limits(deadline: str = "20h", **more: Any) -> dict[str, Any]:
    return {"max_nodes": 2, "deadline": deadline, "waiting": [], **more}


def planned(runs: int, asked: dict[str, Any]) -> Plan:
    return exactly(OFFERS, fleet(runs, asked))


def chance(plan: Plan) -> float:
    assert plan.risk is not None and plan.risk.p_meet_deadline is not None
    return plan.risk.p_meet_deadline


@pytest.mark.parametrize(
    ("confidence", "runs", "too_many"), [(0.8, 120, 130), (0.9, 90, 110), (0.95, 50, 95)]
)
def test_a_fleet_on_demand_meets_its_deadline_with_the_confidence_asked(
    confidence: float, runs: int, too_many: int
) -> None:
    asked = limits("26h", deadline_confidence=confidence, waited=WAITED)
    plan, certain = (planned(runs, {**asked, "waiting": waits}) for waits in ([], CERTAIN))
    assert confidence <= chance(plan) < 1
    assert chance(plan) < chance(certain) or _nodes(plan) > _nodes(certain)
    assert verify_plan(plan.to_dict(), loaded(fleet(runs, asked)).workload, make_catalog(OFFERS).offers) == []
    # as many as are in time after a wait that is certain are not, where it may be longer
    assert planned(too_many, {**asked, "waiting": CERTAIN}).status == "planned"
    late = planned(too_many, asked)
    assert late.status == "infeasible"
    assert {item.constraint for item in late.relaxations} == {"confidence", "deadline"}


def _nodes(plan: Plan) -> int:
    return sum(line.nodes for line in plan.lines)


@pytest.mark.parametrize(("never", "status"), [(0.05, "planned"), (0.2, "infeasible")])
def test_machines_that_may_never_come_bound_the_chance(never: float, status: str) -> None:
    waiting = [{"purchase_option": "*", "hours": 1, "never_ratio": never}]
    plan = planned(10, limits(waiting=waiting))
    assert plan.status == status
    if plan.lines:
        assert 0.9 <= chance(plan) <= 1 - never


def test_the_chance_is_that_of_drawn_waits_and_speeds() -> None:
    """Two lines as lucky as each other: one waits 1 h to 3 h and may never come, the other is there after 1 h."""
    points = np.polynomial.legendre.leggauss(12)
    levels = [
        (0.9 * weight / 2, np.array([1.0 + (node + 1.0), 1.0]))
        for node, weight in zip(*(part.tolist() for part in points), strict=True)
    ]
    levels.append((0.1, np.array([np.inf, 1.0])))
    one = Progress(
        lead=np.array([2.0, 1.0]), most=np.full(2, np.inf), rate=np.array([60.0, 40.0]), sigma=np.full(2, 0.3),
        levels=tuple(levels),
    )  # fmt: skip
    rng = np.random.default_rng(1)
    luck, speed = rng.random(400_000), np.exp(-0.3 * rng.standard_normal(400_000))
    begin = np.where(luck < 0.9, 1.0 + 2.0 * luck / 0.9, np.inf)
    for hours in (8.0, 10.0, 14.0):
        done = speed * (60.0 * np.maximum(hours - begin, 0.0) + 40.0 * (hours - 1.0))
        assert one.chance(hours, 800.0) == pytest.approx(float((done >= 800.0).mean()), abs=0.003)
    assert one.coming().chance(14.0, 800.0) > one.chance(14.0, 800.0)
    assert np.isfinite(one.coming().hours_for(0.9, 800.0))
