"""Pairs of pools by a deadline, bought in every way of the engine: spot with a fall-back, reservations, blocks.

Both pools of such a pair are in one region. A pair is planned to end by some hour D' up to the deadline. What D' leaves
beside the pair's work W is shared, so that the pair is in time with the confidence asked where each pool is with
1 - (1 - confidence) / 2, however much the two have to do with each other. A pool works at the pace of the pair, slowed
by what the other loses on average:

    deadline of a pool = min(D', W s + (D' - W) / 2)        s: elapsed over work hours of the other pool

A pair that takes x times as long as predicted takes x W, and this slows both pools at once: each has half of the
D' - x W that is left, so its deadline is later by (x - 1) (s - 1/2) W.
The pair is in time where each keeps its own half, whatever x.

With more room spot is waited for longer, while the other pool is paid: the cheapest D' may be before the deadline, and
so a later deadline costs no more, but for what the search leaves out (`_CLOSE`).

Sizes of pairs are looked at in the order of a lower bound, the work at the least price of each type in the region.
Those that may be cheaper by the bounds of `pools_bound` are split by their room and by pairs of ways, the least bound
first, until none is left that may be cheaper; what comes out about cheapest is priced.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.model import SINGLE
from planner.candidates.wanted import Wanted
from planner.normal.arrays import normal_quantile
from planner.performance.inference.pool import handover_s
from planner.pipelines.pool_pairs import Points, Terms, find_pairs, least_refit_s, step_of
from planner.pipelines.pools_bound import Bounds, Part, Work
from planner.pipelines.pools_ended import Ended, Priced
from planner.pipelines.pools_ways import asked_beside, each_bought, open_ways, stretch_of, ways_of
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from planner.candidates.engine import CandidateSearch
    from planner.pipelines.pools_bound import Pair
    from planner.pipelines.pools_side import Side
    from planner.pipelines.pools_ways import Offers, Size

    FloatArray = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]
    Rows = tuple[int, int]  # of both pools' points

_LOOKED_AT = (400, 16_000)  # cheapest pairs by the first lower bound: at first, and of what may be cheaper
_FIRST, _AT_ONCE = 8, 128  # sizes and parts of their room that are looked at together: at first, and at most
_TRIED = 4  # pairs of ways of these that are priced
_MOST = (
    1_500,
    300,
)  # sizes and parts in all; the same of pools of one type of accelerator, only compared with
_CLOSE = 1.0 - 5e-3  # of the best pair: what is known to cost as much is not looked at
_CHANCE_SLACK = 0.01  # of the level, in what no pair keeps
_LEAST_SHARE = 0.999  # of the least cost, for rounding


@record(frozen=True)
class Paced:
    """One pool of a pair as it is bought.

    Attributes:
        search, at: candidates at the pair's pace by the pool's own deadline, and the one bought.
        own_at: the machines at their own pace: position among the pool's candidates without a deadline.
        paced_s: the step that both share, slowed by the other's outages; stretch: elapsed over work hours.
        deadline_hours: within which the pool keeps its part with the level asked.
    """

    search: CandidateSearch
    at: int
    own_at: int
    paced_s: float
    stretch: float
    deadline_hours: float


@record(frozen=True)
class Timed:
    """A pair by a deadline: its pools, the parts of its step in seconds, and its cost without cents, USD.

    `ends_by`: hours from the start by which it is planned to end.
    """

    pools: tuple[Paced, Paced]
    step_s: float
    refit_s: float
    cost_usd: float
    ends_by: float


@record(frozen=True)
class Found:
    """The cheapest pair, None without any, and what no pair in one region costs less than, USD."""

    pair: Timed | None
    bound_usd: float


class ByDeadline:
    """The search for pairs of two pools by one deadline."""

    def __init__(self, sides: tuple[Side, Side], terms: Terms, level: float) -> None:
        """Bound what pairs cost.

        Args:
            sides: trainer and rollouts, searched without a deadline.
            terms: what the pools share, the deadline included.
            level: probability with which each pool keeps its own deadline.
        """
        self.sides, self.level = sides, level
        self.bounds = Bounds(sides, level, terms.deadline_hours)
        self.ended = Ended(self.bounds, terms.quotas)
        places: dict[str, int] = {}
        bounds = [_least(side, places, level) for side in sides]
        self._points, self._sizes = [points for points, _ in bounds], [sizes for _, sizes in bounds]
        apart = np.full((len(places), len(places)), np.inf)
        np.fill_diagonal(apart, 0.0)
        self.terms = replace(terms, moved_usd=apart, gbps=np.full_like(apart, np.inf))
        self._works: dict[Rows, Work] = {}
        self._hourly = [
            _least_by_size(sizes, points.usd_per_hour)
            for sizes, points in zip(self._sizes, self._points, strict=True)
        ]

    def cheapest(self, known_usd: float, *, one_chip: bool = False) -> Found:
        """The cheapest pair that costs less than one that is known.

        Args:
            known_usd: what the known pair costs.
            one_chip: both pools have the same type of accelerator.
        """
        best, size, left = None, _FIRST, _MOST[one_chip]
        # a few sizes are priced first: without an amount, which pairs may be cheaper is not known
        queue, _ = self._queue(_LOOKED_AT[0], (), one_chip=one_chip)
        some = [part for usd, _, part in queue[:size] if usd < known_usd * _CLOSE]
        best, limit = self._better(some, self.bounds.of_parts(some, known_usd), (best, known_usd))
        queue, beyond = self._queue(_LOOKED_AT[1], self._kept(limit), one_chip=one_chip)
        number, closed = count(len(queue)), np.inf
        while left > 0:
            some = []
            while queue and len(some) < min(size, left) and queue[0][0] < limit * _CLOSE:
                some.append(heapq.heappop(queue)[2])
            if not some:
                break
            left, size = left - len(some), min(2 * size, _AT_ONCE)
            looked_at = self.bounds.of_parts(some, limit)
            is_whole = bool(np.isfinite(limit))
            best, limit = self._better(some, looked_at, (best, limit))
            for part, (least, _) in zip(some, looked_at, strict=True):
                if least and part.is_small:
                    closed = min(closed, least[0].usd)
                elif least:
                    for one in part.split(least if is_whole else None):
                        heapq.heappush(queue, (least[0].usd, next(number), one))
        beyond = min(beyond, closed, queue[0][0] if queue else np.inf)
        if best is not None:
            best = self.ended.earliest(best)
            limit = min(limit, best.usd)
        pair = None if best is None else self.pair(best.work, best.ways)
        return Found(pair, min(beyond, limit))

    def _better(
        self,
        parts: list[Part],
        looked_at: list[tuple[list[Pair], list[Pair]]],
        known: tuple[Priced | None, float],
    ) -> tuple[Priced | None, float]:
        """The cheapest of a known pair and of some of these, and what it costs, USD."""
        best, limit = known
        for priced in self._priced(parts, looked_at, limit):
            if priced.usd < limit:
                best, limit = priced, priced.usd
        return best, limit

    def _priced(
        self, parts: list[Part], looked_at: list[tuple[list[Pair], list[Pair]]], below_usd: float
    ) -> list[Priced]:
        """What some pairs of ways that come out about cheapest cost by the deadlines of their parts."""
        about, asked = [], []
        for part, (least, each) in zip(parts, looked_at, strict=True):
            if least and part.is_whole:
                about += [(pair.usd, part.work, pair.ways) for pair in each[:_TRIED] if pair.usd < below_usd]
            elif least and part.is_small:
                asked += [(part.work, pair.ways) for pair in least[:_TRIED]]
        about.sort(key=lambda one: one[0])
        asked += [(work, ways) for _, work, ways in about[:_TRIED]]
        return [one for one in self.ended.at(asked, below_usd) if one is not None]

    def _kept(self, below_usd: float) -> list[Ints]:
        """Rows of both pools' points that may be part of a cheaper pair: most are late or too dear beside any other."""
        return [self._may_be_cheaper(number, below_usd) for number in (0, 1)]

    def _may_be_cheaper(self, number: int, below_usd: float) -> Ints:
        """Rows of a pool's points that are in time, and cost less than an amount, beside the fastest of the other pool.

        Beside any other there is more work and less room for it.
        """
        own, other = self._points[number], self._points[1 - number]
        refit = least_refit_s(self._points[0], self._points[1], self.terms)[number]
        step = step_of(self.terms, own.step_s, other.step_s.min(initial=np.inf), refit)
        hours = self.terms.hours_per_step_s * step
        beside = hours * other.usd_per_hour.min(initial=np.inf)
        open_ = np.flatnonzero(
            (hours * own.usd_per_hour + beside < below_usd) & (hours < self.terms.deadline_hours)
        )
        works: dict[Size, Work] = {}
        for row in open_.tolist():
            size = self._sizes[number][row]
            least = (float(beside[row]), float(beside[row]))  # of the other pool
            works.setdefault(
                size,
                Work((size, size), float(step[row]), float(hours[row]), self.terms.deadline_hours, least),
            )
        region_of = self.sides[number].found.context.market.region_of_offer
        kept = self.bounds.in_time(number, list(works.values()), below_usd)
        regions = dict(zip(works, kept, strict=True))
        return np.asarray(
            [
                row
                for row in open_.tolist()
                if int(region_of[own.offer[row]]) in regions[self._sizes[number][row]]
            ],
            dtype=np.int64,
        )

    def _queue(
        self, most: int, kept: Sequence[Ints], *, one_chip: bool
    ) -> tuple[list[tuple[float, int, Part]], float]:
        """All rooms of the sizes of the pairs of the least bound, in order, and the bound of others, USD.

        `kept`: rows of both pools' points to look at; all where it is empty.
        """
        sizes, beyond = self._by_bound(most, kept, one_chip=one_chip)
        works = [(usd, self.work(rows)) for usd, rows in sizes]
        parts = [(usd, Part(work, work.hours)) for usd, work in works if work.half_hours > 0]
        return [(usd, n, part) for n, (usd, part) in enumerate(parts)], beyond

    def _by_bound(
        self, count: int, kept: Sequence[Ints] = (), *, one_chip: bool
    ) -> tuple[list[tuple[float, Rows]], float]:
        """Pairs of sizes, the least lower bound first: USD and the row of each pool's size; and the bound of others.

        `count`: pairs looked at, of many regions each; `kept`: as of `_queue`.
        """
        own = kept or [np.arange(len(points.at)) for points in self._points]
        points = [one.take(rows) for one, rows in zip(self._points, own, strict=True)]
        # a size may be bought in another way than the cheapest, which draws on another quota
        terms = replace(self.terms, one_chip=one_chip, quotas=np.full_like(self.terms.quotas, np.inf))
        pairs = find_pairs(points[0], points[1], terms, count)
        first: dict[tuple[Size, Size], tuple[float, Rows]] = {}
        rows = zip(own[0][pairs.trainer].tolist(), own[1][pairs.rollouts].tolist(), strict=True)
        for row, usd in zip(rows, pairs.usd.tolist(), strict=True):
            first.setdefault((self._sizes[0][row[0]], self._sizes[1][row[1]]), (usd, row))
        return list(first.values()), np.inf if len(pairs.usd) < count else float(pairs.usd[-1])

    def work(self, rows: Rows) -> Work:
        """What two sizes do together."""
        if rows not in self._works:
            t, r = (points.step_s[[row]] for points, row in zip(self._points, rows, strict=True))
            step = float(step_of(self.terms, t, r, np.asarray([self._refit_s(rows)]))[0])
            hours = self.terms.hours_per_step_s * step
            sizes = (self._sizes[0][rows[0]], self._sizes[1][rows[1]])
            least = (self._hourly[0][sizes[0]] * hours, self._hourly[1][sizes[1]] * hours)
            self._works[rows] = Work(sizes, step, hours, self.terms.deadline_hours, least)
        return self._works[rows]

    def _refit_s(self, rows: Rows) -> float:
        rates = (points.rate[[row]] for points, row in zip(self._points, rows, strict=True))
        copies = self._points[1].copies[[rows[1]]]
        return float(handover_s(self.terms.weights, copies, np.minimum(*rates), np.asarray(np.inf))[0])

    def pair(self, work: Work, ways: tuple[Offers, Offers]) -> Timed | None:
        """Two sizes bought in two ways by the deadline of their work, as the engine prices one pool after the other.

        Each is at the pace that it has beside the other; None where one is late at it.
        """
        if not self.ended.are_to_be_had(ways, work):
            return None
        alone = [self._bought(number, work, ways, 1.0) for number in (0, 1)]
        rows = self._rows_of(work)
        pools: list[Paced] = []
        for number in (0, 1):
            own, other = alone[number], alone[1 - number]
            if own is None or other is None:
                return None
            slowed, stretch = (float(stretch_of(search, np.asarray([at]))[0]) for search, at in (other, own))
            found = self._bought(number, work, ways, slowed)
            if found is None:
                return None
            at = int(self._points[number].at[rows[number]])
            pools.append(Paced(*found, at, work.step_s * slowed, stretch, work.by(self.level, slowed).hours))
        usd = sum(float(pool.search.candidates.cost_usd[pool.at]) for pool in pools)
        return Timed((pools[0], pools[1]), work.step_s, self._refit_s(rows), usd, work.deadline_hours)

    def _rows_of(self, work: Work) -> Rows:
        """The first row of each size: what is asked of it does not depend on the region."""
        a, b = (sizes.index(size) for sizes, size in zip(self._sizes, work.sizes, strict=True))
        return a, b

    def _bought(
        self, number: int, work: Work, ways: tuple[Offers, Offers], slowed: float
    ) -> tuple[CandidateSearch, int] | None:
        """A pool bought so, slowed by the other, by its own deadline: candidates and the one; None where it is late.

        What is not spot is waited for as if the machines of both were asked for together.
        """
        offers, market = ways[number], self.sides[number].found.context.market
        beside = asked_beside(market, ways[1 - number], work.sizes[1 - number][1])
        search = ways_of(
            self.sides[number], np.asarray(offers), work.sizes[number],
            paced_s=work.step_s * slowed, by=work.by(self.level, slowed), wanted=Wanted(one_region=True),
            beside=beside,
        )  # fmt: skip
        at = open_ways(search)
        same = [one for one, rows in zip(at.tolist(), each_bought(search, at), strict=True) if rows == offers]
        return (search, same[0]) if same else None


def _least(side: Side, places: dict[str, int], level: float) -> tuple[Points, list[Size]]:
    """Bounds of every size of a pool in every region, and the sizes: never interrupted, at the region's least price.

    Each pool has half of D - x W whatever the speed x, so none is in time with the level asked where D is less than the
    work at the speed of that level; half of it is each pool's, in case their speeds are known less and more closely.
    """
    found = side.found
    candidates, market = found.candidates, found.context.market
    offers = market.offer_set.offers
    at = np.flatnonzero((candidates.bits == 0) & (candidates.kind == SINGLE))
    rows, nodes, shape = candidates.offer[at], candidates.nodes[at], candidates.shape[at]
    hardware = candidates.shapes["hardware_row"].astype(np.int64)[shape]
    names = zip(offers["provider"][rows].tolist(), offers["region"][rows].tolist(), strict=True)
    place = np.asarray([places.setdefault(f"{p}/{r}", len(places)) for p, r in names], dtype=np.int64)
    hourly = nodes * market.offer_set.least_usd_per_hour[rows] * _LEAST_SHARE
    order = np.lexsort((hourly, nodes, place, hardware))
    key = np.stack([hardware, place, nodes])[:, order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
    kept = order[new]
    one, none = np.ones(len(kept)), np.zeros(len(kept))
    step = np.asarray(candidates.shapes["step_time_s"])[shape[kept]]
    sure = np.exp(candidates.sigma[at[kept]] * _slowest(level) / 2.0)
    points = Points(
        at=at[kept], step_s=step, stretch=one, held=one, before_hours=none, fixed_usd=none,
        usd_per_hour=hourly[kept], sure=sure, nodes=nodes[kept], place=place[kept], offer=rows[kept],
        most_nodes=np.full(len(kept), np.inf),  # a size may be bought in several ways
        **side.of_machines(at[kept]),
    )  # fmt: skip
    return points, list(zip(hardware[kept].tolist(), nodes[kept].tolist(), strict=True))


def _least_by_size(sizes: list[Size], hourly: FloatArray) -> dict[Size, float]:
    """USD per hour of each size in its cheapest region."""
    out: dict[Size, float] = {}
    for size, usd in zip(sizes, hourly.tolist(), strict=True):
        out[size] = min(out.get(size, np.inf), usd)
    return out


def _slowest(level: float) -> float:
    """Standard deviations of the speed that are in time at least; a little less, as chances of spot are calibrated."""
    return max(float(normal_quantile(np.asarray([level - _CHANCE_SLACK]))[0]), 0.0)
