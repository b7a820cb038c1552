"""When spot is scarce, on-demand of the same place is scarcer than usual."""

from __future__ import annotations

import numpy as np
import pytest

from catalogs.tables.table import Floats
from planner.candidates.model import IN_TURN
from planner.candidates.ways.chances import chances_of, in_time_by_either, keep_confidence, least_alone
from planner.candidates.ways.course import cells_of, frame_of
from planner.plan.launch import Launch
from planner.spot.zones import comes_given
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


def drawn(count: int = 20_000) -> tuple[Floats, ...]:
    """Chances of on-demand in time, of spot alone, of on-demand to come, and links; a fifth of each at an end."""
    rng = np.random.default_rng(0)
    return tuple(np.clip(rng.uniform(-0.125, 1.125, count), 0.0, 1.0) for _ in range(4))


@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.9, 0.99, 1.0])
def test_the_least_chance_of_spot_alone_is_where_the_confidence_is_reached(confidence: float) -> None:
    surely, _, had, link = drawn()
    least = least_alone(confidence, surely, had, link)
    can = surely >= confidence
    assert (least[~can] == 1.0).all()
    assert (in_time_by_either(surely, least, had, link)[can] >= confidence - 1e-9).all()
    short = can & (least > 1e-5)
    assert (in_time_by_either(surely, least - 1e-6, had, link)[short] < confidence + 1e-9).all()


@pytest.mark.parametrize(("argument", "step"), [(0, 0.01), (1, 0.01), (2, 0.01), (3, -0.01)])
def test_better_luck_in_anything_makes_no_plan_less_sure(argument: int, step: float) -> None:
    before = drawn()
    after = [np.clip(x + step, 0.0, 1.0) if at == argument else x for at, x in enumerate(before)]
    assert (in_time_by_either(*after) >= in_time_by_either(*before) - 1e-12).all()


@pytest.mark.parametrize(("usual", "where_late", "elsewhere"), [(0.0, 0.4585, 0.05), (1.0, 0.05, 0.0285)])
def test_on_demand_is_scarce_with_spot_where_a_plan_knows_spot_as_never_or_always_late(
    usual: float, where_late: float, elsewhere: float
) -> None:
    late = np.arange(100) < 30
    comes = comes_given(late, 0.95, 0.43, usual)
    assert 1.0 - comes[late] == pytest.approx(where_late)  # 0.05 + 0.43 (1 - 0.05), and 0.05
    assert 1.0 - comes[~late] == pytest.approx(elsewhere)  # 0.05, and 0.05 (1 - 0.43)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("had", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("link", LINKS)
def test_in_futures_on_demand_comes_as_often_as_stated_and_seldom_where_spot_is_late(
    share: float, had: float, link: float
) -> None:
    late = np.arange(100) < 100 * share
    comes = comes_given(late, had, link)
    assert comes.mean() == pytest.approx(had) and (comes >= -1e-12).all() and (comes <= 1.0 + 1e-12).all()
    in_time = np.where(late, comes, 1.0).mean()
    assert in_time == pytest.approx(in_time_by_either(np.ones(1), 1.0 - share, np.asarray([had]), link)[0])
