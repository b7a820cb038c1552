"""Pairs of pools by a deadline: what the lower bound leaves out is never cheaper, and both pools share the room."""

from __future__ import annotations

import functools
import random
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from benchmarks.pools_check import cheapest_of_all
from catalogs.store.load import load_catalog
from planner.asked.options import Options
from planner.candidates.wanted import Scope, Wanted
from planner.inputs.load import load_workload
from planner.pipelines.pools import PoolsQuestion
from planner.pipelines.pools_asked import Ask
from planner.pipelines.pools_bound import Part, Work
from planner.pipelines.pools_by_deadline import ByDeadline, Found, Timed
from planner.pipelines.pools_ways import (
    By,
    Offers,
    asked_beside,
    each_bought,
    offers_of,
    open_ways,
    stretch_of,
    ways_of,
)
from tests.cli.test_pools import CLOSE, WORKLOAD

EVERY = Wanted(Scope.PLACES, one_region=True, up_to=np.inf)
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
pytestmark = pytest.mark.catalog("small")


@functools.cache
def searched(ahead: int, hours: int, steps: int = 200) -> tuple[Found, ByDeadline, list[tuple[Part, Part]]]:
    """What a search finds, itself, and each part that it split with the first of the smaller ones.

    No test changes them; several look at the same ones.
    """
    seen, split = list[tuple[Part, Part]](), Part.split

    def spied(part: Part, pairs_of_ways: Any) -> list[Part]:
        out = split(part, pairs_of_ways)
        seen.append((part, out[0]))
        return out

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(Part, "split", spied):
        pairs = search(Path(folder), ahead, f"{hours}h", steps)
        return pairs.cheapest(np.inf), pairs, seen


def answer(ahead: int, hours: int, steps: int = 200) -> Found:
    """What it finds."""
    return searched(ahead, hours, steps)[0]


def search(folder: Path, ahead: int, deadline: str, steps: int = 200) -> ByDeadline:
    return question(folder, ahead, f"  deadline: {deadline}\n", steps).by_deadline


def question(folder: Path, ahead: int, limits: str, steps: int) -> PoolsQuestion:
    path = folder / "grpo.yaml"
    few = WORKLOAD.replace("AHEAD", str(ahead)).replace("max_nodes: 8", "max_nodes: 2")
    few = few.replace("steps: 200", f"steps: {steps}")
    path.write_text(few + limits, encoding="utf-8")
    return PoolsQuestion(load_workload(path), load_catalog(None), Options(now=NOON))


def some_ways(pairs: ByDeadline, work: Work, most: int) -> list[tuple[Offers, Offers]]:
    """Pairs of ways of one region, drawn from all of two sizes."""
    ways = []
    for side, size in zip(pairs.sides, work.sizes, strict=True):
        by = work.by(pairs.level, 1.0)
        found = ways_of(side, offers_of(side, size), size, paced_s=work.step_s, by=by, wanted=EVERY)
        region = found.context.market.region_of_offer
        rows = open_ways(found)
        ways.append([*zip(each_bought(found, rows), region[found.candidates.offer[rows]], strict=True)])
    same = [(a, b) for a, place in ways[0] for b, other in ways[1] if place == other]
    return random.Random(1).sample(same, min(len(same), most))


@pytest.mark.parametrize(("ahead", "hours"), [(0, 72), (1, 30)])
def test_bounds_hold_for_pairs_of_sizes_and_ways(tmp_path: Path, ahead: int, hours: int) -> None:
    pairs = search(tmp_path, ahead, f"{hours}h")
    sizes, beyond = pairs._by_bound(400, one_chip=False)
    assert np.isinf(beyond)
    least, compared = np.inf, 0
    for first, rows in sizes[:: max(len(sizes) // 4, 1)]:
        work = pairs.work(rows)
        if work.half_hours <= 0:
            continue
        asked = [(work, ways) for ways in some_ways(pairs, work, 10)]
        every = [one for one in pairs.ended.at(asked, np.inf) if one is not None]
        cheapest = min((one.usd for one in every), default=np.inf)
        least = min(least, cheapest)
        assert first <= cheapest
        if not every:
            continue
        some, whole = 1.2 * cheapest, Part(work, work.hours)
        ((listed, _),) = pairs.bounds.of_parts([whole], some)
        bounds = {pair.ways: pair.usd for pair in listed}
        for one in every:
            compared += 1
            assert bounds.get(one.ways, some) <= one.usd * (1 + 1e-9), (rows, one.ways)
        for one in every[:2]:
            pair = pairs.pair(work, one.ways)
            assert pair is not None and pair.cost_usd == pytest.approx(one.usd, rel=1e-9)
            assert_both_are_in_time(pairs, pair)
    assert compared > 2
    found = answer(ahead, hours)
    assert found.pair is not None and found.bound_usd <= least * (1 + 1e-9)
    assert found.pair.cost_usd <= 1.1 * found.bound_usd


@pytest.mark.parametrize(("ahead", "hours"), [(0, 72), (1, 30)])
def test_bounds_hold_for_every_part_of_the_room(tmp_path: Path, ahead: int, hours: int) -> None:
    pairs, found = search(tmp_path, ahead, f"{hours}h"), answer(ahead, hours).pair
    assert found is not None
    works = [pairs.work(rows) for _, rows in pairs._by_bound(400, one_chip=False)[0][::9]]
    whole = [Part(work, work.hours) for work in works if work.half_hours > 0]
    some, parts, asked, bounds = 1.5 * found.cost_usd, list[Part](), [], list[tuple[float, Part]]()
    tried = []
    for part, (listed, about) in zip(whole, pairs.bounds.of_parts(whole, some), strict=True):
        halves = part.split(listed)
        halves += [smaller for half in halves[2:] for smaller in half.split(listed)]
        parts += halves
        tried += [about[:6]] * len(halves)
    for part, about, (least, _) in zip(parts, tried, pairs.bounds.of_parts(parts, some), strict=True):
        usd = {pair.ways: pair.usd for pair in least}
        for share in (0.02, 0.6, 1.0):  # of the part's rooms
            end = part.from_hours + share * (part.work.deadline_hours - part.from_hours)
            for pair in about:
                asked.append((part.work.ending(end), pair.ways))
                bounds.append((usd.get(pair.ways, some), part))
    compared = 0
    for priced, (bound, part) in zip(pairs.ended.at(asked, some), bounds, strict=True):
        if priced is not None and priced.usd < some:
            compared += 1
            assert bound <= priced.usd * (1 + 1e-9), (priced, part)
    assert compared > 20


@pytest.mark.parametrize(("ahead", "hours"), [(0, 72), (1, 30)])
def test_parts_keep_every_pair_of_ways_that_may_be_cheaper(ahead: int, hours: int) -> None:
    found, pairs, seen = searched(ahead, hours)
    assert found.pair is not None
    whole = [(part, inner.kept) for part, inner in seen if part.kept is None]
    assert whole
    limit = found.pair.cost_usd * (1 - 1e-9)
    for (_, kept), (least, _) in zip(
        whole, pairs.bounds.of_parts([part for part, _ in whole], limit), strict=True
    ):
        assert kept is None or all(
            pair.codes[n] in {one.codes[n] for one in kept} for pair in least for n in (0, 1)
        )


@pytest.mark.parametrize(("ahead", "deadline"), [(0, "3d"), (1, "2d"), (0, "30d")])
def test_floors_of_sizes_hold_for_pairs_of_ways_at_every_end(
    tmp_path: Path, ahead: int, deadline: str
) -> None:
    pairs = search(tmp_path, ahead, deadline)
    sizes, _ = pairs._by_bound(400, one_chip=False)
    first, floors = {rows: usd for usd, rows in sizes}, pairs._by_floor(sizes, 1e5)
    assert {rows for _, rows in floors} == {*first}
    assert sum(usd > 1.1 * first[rows] for usd, rows in floors) > 10
    compared = 0
    for floor, rows in [floors[0], *floors[:120:20]]:
        assert floor >= first[rows] * (1 - 1e-9)
        work = pairs.work(rows)
        if work.half_hours <= 0:
            continue
        ((_, about),) = pairs.bounds.of_parts([Part(work, work.hours)], 1e5)
        asked = [(one, pair.ways) for pair in about[:3] for one in pairs.ended.ends(work)[::4]]
        for priced in pairs.ended.at(asked, 1e5):
            if priced is not None:
                compared += 1
                assert floor <= priced.usd * (1 + 1e-9), (rows, priced)
    assert compared > 5


def test_floors_hold_where_one_pool_sets_the_pace_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = WORKLOAD.replace("llama-3.1-8b", "qwen2.5-1.5b").replace(
        "mean: 870, p95: 1740", "mean: 3000, p95: 3500"
    )
    monkeypatch.setattr("tests.planner.pipelines.test_pools_by_deadline.WORKLOAD", slow)
    pairs, paces = search(tmp_path, 1, "10d"), []
    for floor, rows in pairs._by_floor(pairs._by_bound(400, one_chip=False)[0], 1e6):
        work = pairs.work(rows)
        by = By(work.deadline_hours, pairs.level, work.hours / 2.0)  # the whole deadline, slowed by nothing
        asks = [Ask(size, work.step_s, by, 1e6) for size in work.sizes]
        ways = [pairs.bounds.asked[n].all([ask])[0] for n, ask in enumerate(asks)]
        least = (
            sum(float(one.usd[one.region == place].min()) for one in ways)
            for place in np.intersect1d(ways[0].region, ways[1].region)
        )
        assert floor <= min(least, default=np.inf) * (1 + 1e-9), rows
        paces.append(max(own.step_s[row] for own, row in zip(pairs._points, rows, strict=True)) / work.step_s)
    assert sum(own > 0.9 for own in paces) > 10


def test_prices_of_runs_are_counted_at_the_least_of_any_length(tmp_path: Path) -> None:
    pairs = search(tmp_path, 0, "30d")
    work = pairs.work(pairs._by_bound(1, one_chip=False)[0][0][1])
    (ways,) = pairs.bounds.asked[0].all([Ask(work.sizes[0], work.step_s, work.by(pairs.level, 1.0), 1e5)])
    book = pairs.sides[0].found.context.market.offer_set.book
    assert book.path is not None
    for ends in ((20.0, 720.0), (100.0, 150.0), (7.0, 7.0), (2_000.0, 30_000.0)):
        shares, least = pairs.bounds.prices(ways, *ends), np.full(len(ways.usd), np.inf)
        for hours in np.linspace(*ends, 60):
            for at, own in enumerate(ways.hours.tolist()):
                rows = np.asarray(ways.offers(at))
                ratio = book.growth(rows, np.full(len(rows), hours)) / book.growth(
                    rows, np.full(len(rows), own)
                )
                least[at] = min(least[at], 1.0, float(ratio.min()))
        assert (shares <= least * (1 + 1e-9)).all()
        assert shares == pytest.approx(least, rel=2e-3)


def test_sizes_asked_together_cost_what_each_costs_alone(tmp_path: Path) -> None:
    pairs = search(tmp_path, 0, "3d")
    works = [pairs.work(rows) for _, rows in pairs._by_bound(400, one_chip=False)[0][::12]]
    works = [work for work in works if work.half_hours > 0]
    compared = 0
    for number, side in enumerate(pairs.sides):
        for beside in (0, 2):
            asks = [
                Ask(work.sizes[number], work.step_s, by, 1e4, beside)
                for work in works for by in (work.by(pairs.level, 1.0), work.ending(0.9 * 72.0).by(pairs.level, 1.1))
            ]  # fmt: skip
            market = side.found.context.market
            more = np.where(market.is_spot, 0.0, float(beside))
            for ask, ways in zip(asks, pairs.bounds.asked[number].all(asks), strict=True):
                alone = ways_of(
                    side, offers_of(side, ask.size), ask.size, paced_s=ask.paced_s, by=ask.by,
                    wanted=replace(EVERY, up_to=1e4), beside=more,
                )  # fmt: skip
                at = open_ways(alone)
                stretch, usd = stretch_of(alone, at), alone.candidates.cost_usd[at]
                known = dict(zip(each_bought(alone, at), zip(usd, stretch, strict=True), strict=True))
                offers_of_ways = [ways.offers(at) for at in range(len(ways.usd))]
                assert {*offers_of_ways} == {*known}
                compared += len(known)
                for offers, *figures in zip(offers_of_ways, ways.usd, ways.stretch, strict=True):
                    assert figures == pytest.approx(known[offers], rel=1e-9)
    assert compared > 100


@pytest.mark.parametrize("ahead", [0, 1])
def test_pairs_priced_together_cost_what_the_engine_says_of_each(tmp_path: Path, ahead: int) -> None:
    pairs = search(tmp_path, ahead, "3d")
    compared = 0
    for _, rows in pairs._by_bound(400, one_chip=False)[0][:40:8]:
        work = pairs.work(rows)
        ((_, about),) = pairs.bounds.of_parts([Part(work, work.hours)], 1e6)
        asked = [(work.ending(hours), pair.ways) for pair in about[:3] for hours in (72.0, 60.0)]
        for (own, ways), priced in zip(asked, pairs.ended.at(asked, 1e6), strict=True):
            alone = pairs.pair(own, ways)
            assert (priced is None) == (alone is None)
            if priced is not None and alone is not None:
                compared += 1
                assert priced.usd == pytest.approx(alone.cost_usd, rel=1e-9)
    assert compared > 4


def assert_both_are_in_time(pairs: ByDeadline, pair: Timed) -> None:
    """Each pool's own room for outages and errors of its speed adds up to what the deadline leaves."""
    work = pairs.terms.hours_per_step_s * pair.step_s
    room = pair.ends_by - work
    for pool, other in zip(pair.pools, pair.pools[::-1], strict=True):
        assert pool.paced_s == pytest.approx(pair.step_s * other.stretch)
        own = pool.deadline_hours - work * other.stretch
        assert own <= room / 2.0 * (1 + 1e-9)
        assert pool.deadline_hours <= pair.ends_by <= pairs.terms.deadline_hours


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
    pairs, found = search(tmp_path, 0, "3d"), answer(0, 72)
    assert found.pair is not None
    less = pairs.cheapest(found.pair.cost_usd / 3.0)
    assert less.pair is None and less.bound_usd <= found.pair.cost_usd / 3.0


def test_pools_of_one_type_are_no_cheaper(tmp_path: Path) -> None:
    pairs = search(tmp_path, 1, "30h")
    any_type, one = answer(1, 30).pair, pairs.cheapest(np.inf, one_chip=True).pair
    assert any_type is not None and one is not None
    assert any_type.cost_usd <= one.cost_usd
    market = pairs.sides[0].found.context.market
    chips = {market.accelerator_of_offer[p.search.candidates.offer[p.at]] for p in one.pools}
    assert len(chips) == 1


@pytest.mark.parametrize(("ahead", "steps"), [(0, 200), (1, 800)])
def test_a_later_deadline_never_costs_more_nor_does_none(tmp_path: Path, ahead: int, steps: int) -> None:
    last, first = np.inf, np.inf
    for days in (1, 2, 3, 8, 30):
        found = answer(ahead, 24 * days, steps)
        usd = np.inf if found.pair is None else found.pair.cost_usd
        assert usd <= last * (1 + 1e-5), days
        assert found.bound_usd <= usd
        if found.pair is not None:
            assert found.pair.ends_by <= 24 * days
        last, first = usd, min(first, usd) if np.isinf(first) else first
    assert last < first < np.inf
    best, _, _ = question(tmp_path, ahead, "", steps)._cheapest()
    assert best is not None and float(best["cost_usd"]) <= last * (1 + CLOSE)


@pytest.mark.parametrize(("ahead", "hours"), [(0, 48), (1, 30)])
def test_no_pair_of_all_sizes_ways_and_ends_is_cheaper(tmp_path: Path, ahead: int, hours: int) -> None:
    pairs, found = search(tmp_path, ahead, f"{hours}h"), answer(ahead, hours)
    assert found.pair is not None
    least = cheapest_of_all(pairs, 1.001 * found.pair.cost_usd, shares=(0.35, 0.55, 0.8, 1.0))
    assert found.bound_usd <= least * (1 + 1e-9)
    assert found.pair.cost_usd * (1 - 6e-3) <= least < np.inf
