"""The frontier with spot and a fall-back: each point is what `optimize` answers for its deadline."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.planner.candidates.ways.cases import ONE_ZONE, THREE_ZONES
from tests.planner.job.test_frontier import front_of
from tests.planner.spine_catalogs import Offer, make_catalog, plan_on, work

LIMITS = {"max_nodes": 2, "deadline_confidence": 0.9}


@pytest.mark.parametrize("offers", [ONE_ZONE, THREE_ZONES])
def test_points_with_a_fall_back_are_plans_of_their_deadline(offers: list[Offer]) -> None:
    found = front_of(offers, work(constraints=LIMITS))
    times = [point.deadline_hours for point in found.points]
    costs = [float(point.best.cost_usd) for point in found.points]
    assert times == sorted(times) and np.all(np.diff(costs) < 0)
    turned = [at for at, point in enumerate(found.points) if "else on_demand" in point.best.purchase_option]
    assert len(turned) >= 3
    for at in turned[:: max(len(turned) // 3, 1)]:
        deadline = math.ceil(
            times[at] * 3600
        )  # whole seconds in a workload: a little later is a little cheaper
        plan = plan_on(make_catalog(offers), work(constraints={**LIMITS, "deadline": f"{deadline}s"})).plan
        assert float(plan.total_usd) == pytest.approx(costs[at], rel=2e-3)
        assert float(plan.total_usd) <= costs[at] * (1 + 1e-9)


def test_without_a_fall_back_the_frontier_has_none() -> None:
    found = front_of(ONE_ZONE, work(constraints=LIMITS, spot={"fallback": "none", "zones": "single"}))
    assert all("else" not in point.best.purchase_option for point in found.points)
