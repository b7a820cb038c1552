"""A pair that is slower than predicted: the speed is that of both pools, and each has half of what it leaves."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.pipelines.pools_bound import Work
from planner.pipelines.pools_by_deadline import ByDeadline, Timed
from planner.pipelines.pools_ways import offers_of
from planner.spot.distribution import SpotPool, scaled_job
from planner.spot.moments import split_job
from planner.spot.work_error import meet_probability
from tests.planner.pipelines.test_pools_by_deadline import search

pytestmark = pytest.mark.catalog("small")


@given(st.floats(1.0, 40.0), st.floats(1.05, 6.0), st.floats(1.0, 1.3), st.floats(0.5, 3.0))
def test_whatever_the_speed_each_pool_has_half_of_what_the_pair_leaves(
    hours: float, times: float, slowed: float, slower: float
) -> None:
    work = Work(((0, 1), (1, 1)), 100.0, hours, hours * times)
    by = work.by(0.95, slowed)
    own = by.hours + by.later_hours * (slower - 1.0)
    half = (work.deadline_hours - slower * hours) / 2.0
    assert own - slower * hours * slowed <= half + 1e-9
    if hours * slowed + work.half_hours <= work.deadline_hours:  # not beyond the deadline itself
        assert own - slower * hours * slowed == pytest.approx(half)


def test_the_chance_of_a_deadline_that_slow_work_moves_is_the_mean_over_speeds() -> None:
    rng, off, moved = np.random.default_rng(3), [], []
    levels = [NormalDist().inv_cdf((number + 0.5) / 400) for number in range(400)]
    for _ in range(60):
        low, high = (0.01, 0.05, 5.0, 1.05, 0.1, 0.2), (0.5, 4.0, 60.0, 2.0, 0.5, 0.6)
        rate, wait, hours, times, sigma, share = rng.uniform(low, high)
        job = split_job(*(np.asarray([v]) for v in (hours, 0.5, 0.01, 0.2, 0.001)))
        one = np.asarray([rate, wait, 2.0 * wait, 0.3, 2.0])
        deadline, later, slower = (
            hours * times,
            np.asarray([hours * share]),
            np.exp(sigma * np.asarray(levels)),
        )
        pool, many = SpotPool(*one[:, None]), SpotPool(*np.repeat(one[:, None], len(levels), axis=1))
        sd, none = np.asarray([sigma]), np.zeros(len(levels))
        found = meet_probability(job, pool, deadline - later, sd, -later)
        each = meet_probability(scaled_job(job, slower), many, deadline + later * (slower - 1.0), none, none)
        off.append(float(found[0] - each.mean()))
        moved.append(
            float(found[0] - meet_probability(job, pool, np.asarray([deadline]), sd, np.zeros(1))[0])
        )
    assert np.abs(off).max() < 0.05 and np.abs(off).mean() < 0.01
    assert np.abs(moved).mean() > 4.0 * np.abs(off).mean()


def on_demand(pairs: ByDeadline, rows: tuple[int, int]) -> Timed | None:
    """Two sizes bought on demand in a region that has both."""
    ways = []
    for side, size in zip(pairs.sides, pairs.work(rows).sizes, strict=True):
        market = side.found.context.market
        offers = market.offer_set.offers
        own = offers_of(side, size)
        own = own[offers.equals("purchase_option", "on_demand")[own]]
        ways.append({int(market.region_of_offer[row]): (int(row),) for row in own})
    both = sorted(ways[0].keys() & ways[1].keys())
    return pairs.pair(pairs.work(rows), (ways[0][both[0]], ways[1][both[0]])) if both else None


def test_the_error_of_the_speed_is_taken_off_the_deadline_once(tmp_path: Path) -> None:
    far = search(tmp_path, 0, "80d", steps=2000)
    sizes, _ = far._by_bound(400, one_chip=False)
    compared = 0
    for _, rows in sizes[:: max(len(sizes) // 3, 1)]:
        pair = on_demand(far, rows)
        if pair is None:
            continue
        compared += 1
        pools = [(pool.search.candidates, pool.at) for pool in pair.pools]
        sigma = max(float(found.sigma[at]) for found, at in pools)
        work = max(float(found.work_hours[at]) for found, at in pools)
        slowest = float(np.exp(NormalDist().inv_cdf(far.level) * sigma))
        # where each takes the error out of its own half, nothing is left to come and to start
        enough = (2.0 * slowest - 1.0) * work
        assert on_demand(search(tmp_path, 0, f"{enough:.3f}h", steps=2000), rows) is not None
        less = 0.9 * slowest * work
        assert on_demand(search(tmp_path, 0, f"{less:.3f}h", steps=2000), rows) is None
    assert compared > 0
