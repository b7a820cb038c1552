"""Pairs of pools by a deadline: what the lower bound leaves out is never cheaper, and both pools share the room."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from catalogs.store.load import load_catalog
from planner.asked.options import Options
from planner.candidates.wanted import Scope, Wanted
from planner.inputs.load import load_workload
from planner.pipelines.pools import PoolsQuestion
from planner.pipelines.pools_by_deadline import ByDeadline, Timed
from planner.pipelines.pools_ways import asked_beside, bought, offers_of, open_ways, ways_of
from tests.cli.test_pools import WORKLOAD

EVERY = Wanted(Scope.PLACES, one_region=True, up_to=np.inf)
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
pytestmark = pytest.mark.catalog("small")


def search(folder: Path, ahead: int, deadline: str, steps: int = 200) -> ByDeadline:
    path = folder / "grpo.yaml"
    few = WORKLOAD.replace("AHEAD", str(ahead)).replace("max_nodes: 8", "max_nodes: 2")
    few = few.replace("steps: 200", f"steps: {steps}")
    path.write_text(f"{few}  deadline: {deadline}\n", encoding="utf-8")
    question = PoolsQuestion(load_workload(path), load_catalog(None), Options(now=NOON))
    assert question.by_deadline is not None
    return question.by_deadline


def some_pairs(pairs: ByDeadline, rows: tuple[int, int], most: int) -> dict[Any, Timed]:
    """Two sizes in pairs of ways of one region drawn from all, by the code that prices the answer."""
    work = pairs.work(rows)
    if work.half_hours <= 0:
        return {}
    ways = []
    for side, size in zip(pairs.sides, work.sizes, strict=True):
        by = work.by(pairs.level, 1.0)
        found = ways_of(side, offers_of(side, size), size, paced_s=work.step_s, by=by, wanted=EVERY)
        region = found.context.market.region_of_offer
        ways.append(
            [(bought(found, at), region[found.candidates.offer[at]]) for at in open_ways(found).tolist()]
        )
    same = [(a, b) for a, place in ways[0] for b, other in ways[1] if place == other]
    priced = {both: pairs.pair(rows, both) for both in random.Random(1).sample(same, min(len(same), most))}
    return {both: pair for both, pair in priced.items() if pair is not None}


@pytest.mark.parametrize(("ahead", "deadline"), [(0, "3d"), (1, "40h"), (0, "2d")])
def test_bounds_hold_for_pairs_of_sizes_and_ways(tmp_path: Path, ahead: int, deadline: str) -> None:
    pairs = search(tmp_path, ahead, deadline)
    sizes, beyond = pairs._by_bound(400, one_chip=False)
    assert np.isinf(beyond)
    pairs.bounds.expect(pairs.work(rows) for _, rows in sizes)
    least, compared = np.inf, 0
    for first, rows in sizes[:: max(len(sizes) // 4, 1)]:
        every, work = some_pairs(pairs, rows, 10), pairs.work(rows)
        cheapest = min((pair.cost_usd for pair in every.values()), default=np.inf)
        least = min(least, cheapest)
        assert first <= cheapest
        assert pairs.bounds.of_sizes(work, np.inf) <= cheapest
        some = 1.2 * cheapest if every else 1e6
        bounds = {ways: usd for usd, ways in pairs.bounds.of_ways(work, some)}
        for ways, pair in every.items():
            compared += 1
            assert bounds.get(ways, some) <= pair.cost_usd * (1 + 1e-9), (rows, ways)
            assert_both_are_in_time(pairs, pair)
    assert compared > 2
    found = pairs.cheapest(np.inf)
    assert found.pair is not None and found.bound_usd <= least * (1 + 1e-9)
    assert found.pair.cost_usd <= 1.1 * found.bound_usd


def assert_both_are_in_time(pairs: ByDeadline, pair: Timed) -> None:
    """Each pool's own room for outages and errors of its speed adds up to what the deadline leaves."""
    work = pairs.terms.hours_per_step_s * pair.step_s
    room = pairs.terms.deadline_hours - work
    for pool, other in zip(pair.pools, pair.pools[::-1], strict=True):
        assert pool.paced_s == pytest.approx(pair.step_s * other.stretch)
        own = pool.deadline_hours - work * other.stretch
        assert own <= room / 2.0 * (1 + 1e-9)
        assert pool.deadline_hours <= pairs.terms.deadline_hours


def test_what_is_not_spot_is_waited_for_as_if_both_pools_asked_for_it_together(tmp_path: Path) -> None:
    pairs = search(tmp_path, 0, "3d")
    market = pairs.sides[0].found.context.market
    firm = np.flatnonzero(market.offer_set.offers.equals("purchase_option", "on_demand"))[:1]
    spot = np.flatnonzero(market.is_spot)[:1]
    beside = asked_beside(market, (int(spot[0]), int(firm[0])), 3)
    assert beside[firm] == 3 and beside.sum() == 3
    alone = pairs.sides[0].found.context.starts
    both = replace(pairs.sides[0].found.context, beside=beside).starts
    for rows, more in ((firm, 3), (spot, 0)):
        for name in ("hours", "had"):
            one = getattr(both, name)(rows, np.asarray([2]))
            assert one == getattr(alone, name)(rows, np.asarray([2 + more]))
        assert both.at_level(rows, np.asarray([2]), 0.9) == alone.at_level(rows, np.asarray([2 + more]), 0.9)
    assert both.had(firm, np.asarray([2])) < alone.had(firm, np.asarray([2]))


def test_a_better_pair_that_is_known_ends_the_search(tmp_path: Path) -> None:
    pairs = search(tmp_path, 0, "3d")
    found = pairs.cheapest(np.inf)
    assert found.pair is not None
    less = pairs.cheapest(found.pair.cost_usd / 3.0)
    assert less.pair is None and less.bound_usd <= found.pair.cost_usd / 3.0


def test_pools_of_one_type_are_no_cheaper(tmp_path: Path) -> None:
    pairs = search(tmp_path, 1, "3d")
    any_type, one = pairs.cheapest(np.inf).pair, pairs.cheapest(np.inf, one_chip=True).pair
    assert any_type is not None and one is not None
    assert any_type.cost_usd <= one.cost_usd
    market = pairs.sides[0].found.context.market
    chips = {market.accelerator_of_offer[p.search.candidates.offer[p.at]] for p in one.pools}
    assert len(chips) == 1
