"""When spot is scarce, on-demand of the same place is scarcer than usual."""

from __future__ import annotations

import numpy as np
import pytest

from planner.candidates.model import IN_TURN
from planner.candidates.ways.chances import chances_of, in_time_by_either, keep_confidence
from planner.candidates.ways.course import cells_of, frame_of
from planner.plan.launch import Launch
from tests.planner.candidates.ways.cases import ONE_ZONE, answer

LINKS = (0.0, 0.14, 0.43, 1.0)
WAITS = {"waiting": [{"purchase_option": "on_demand", "hours": 1.0, "never_ratio": 0.05}]}


def launched(link: float) -> Launch:
    plan = answer(ONE_ZONE, 24.0, assumptions={"spot_zone_correlation_ratio": link}, constraints=WAITS).plan
    assert plan.launch is not None and plan.launch.strategy == "spot_with_fallback"
    return plan.launch


def test_the_more_both_markets_are_one_the_less_sure_is_a_plan_that_rests_on_both() -> None:
    chances = [launch.p_meet_deadline for launch in map(launched, LINKS)]
    known = [chance for chance in chances if chance is not None]
    assert len(known) == len(LINKS) and known == sorted(known, reverse=True) and known[0] - known[2] > 0.005
    # one market: on-demand comes in none of the worst runs on spot
    last = launched(1.0)
    assert last.p_meet_spot_only_ratio is not None
    late, never = 1.0 - last.p_meet_spot_only_ratio, 1.0 - (last.p_on_demand_had_ratio or 0.0)
    assert 1.0 - known[3] >= min(late, never) - 1e-6


def test_no_plan_is_less_sure_than_by_either_way_alone() -> None:
    grid = np.linspace(0.0, 1.0, 21)
    surely, alone, had = (axis.ravel() for axis in np.meshgrid(grid, grid, grid))
    for link in LINKS:
        either = in_time_by_either(surely, alone, had, link)
        assert (either >= had * surely - 1e-12).all() and (either <= np.maximum(surely, alone) + 1e-12).all()
        slower = alone <= surely
        assert (either[slower] >= alone[slower] - 1e-12).all()
    apart = had * surely + (1.0 - had) * np.minimum(alone, surely)
    np.testing.assert_allclose(in_time_by_either(surely, alone, had, 0.0), apart, atol=1e-12)


@pytest.mark.parametrize("link", LINKS)
def test_what_is_kept_is_what_reaches_the_confidence(link: float) -> None:
    """Ways are kept by the least chance of spot alone, and stated by the chance itself: both are one rule."""
    found = answer(ONE_ZONE, 24.0, assumptions={"spot_zone_correlation_ratio": link}, constraints=WAITS).found
    assert found is not None
    made = found.candidates
    cells = cells_of(made, np.flatnonzero(made.kind == IN_TURN)[:1])
    frame, stated = frame_of(made, cells), chances_of(made, cells.base).meet[0]
    assert keep_confidence(made, cells, frame, stated - 1e-4).all()
    assert not keep_confidence(made, cells, frame, stated + 1e-4).any()
