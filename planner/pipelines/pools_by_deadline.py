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

from planner.candidates.wanted import Wanted
from planner.performance.inference.pool import handover_s
from planner.pipelines.pool_pairs import Terms, find_pairs, least_refit_s, step_of
from planner.pipelines.pools_bound import Bounds, Part, Work
from planner.pipelines.pools_ended import Ended, Priced
from planner.pipelines.pools_floors import floors
from planner.pipelines.pools_sizes import sizes_of
from planner.pipelines.pools_ways import asked_beside, each_bought, open_ways, stretch_of, ways_of
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Floats, Ints
    from planner.candidates.engine import CandidateSearch
    from planner.pipelines.pools_bound import Pair
    from planner.pipelines.pools_side import Side
    from planner.pipelines.pools_ways import Offers

    Rows = tuple[int, int]  # of both pools' points

_LOOKED_AT = (400, 16_000)  # cheapest pairs by the first lower bound: at first, and of what may be cheaper
# sizes and parts of their room that are looked at together, to find a first pair and then: a question takes
# milliseconds however little is asked
_FIRST, _AT_ONCE = 8, 256
_TRIED, _TRIED_FIRST = 4, 16  # pairs of ways of these that are priced; where none is known yet
_MOST = (
    1_500,
    300,
)  # sizes and parts in all; the same of pools of one type of accelerator, only compared with
_CLOSE = 1.0 - 5e-3  # of the best pair: what is known to cost as much is not looked at


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
        self.bounds = Bounds(sides, level, terms.deadline_hours, terms.quotas)
        self.ended = Ended(self.bounds)
        self._sizes = [sizes_of(side, level) for side in sides]
        self._points = [own.points for own in self._sizes]
        here = np.zeros((1, 1))
        self.terms = replace(terms, moved_usd=here, gbps=np.full_like(here, np.inf))
        self._works: dict[Rows, Work] = {}

    def cheapest(self, known_usd: float, *, one_chip: bool = False) -> Found:
        """The cheapest pair that costs less than one that is known.

        Args:
            known_usd: what the known pair costs.
            one_chip: both pools have the same type of accelerator.
        """
        best, left = None, _MOST[one_chip]
        # a few sizes are priced first: without an amount, which pairs may be cheaper is not known
        sizes, _ = self._by_bound(_LOOKED_AT[0], one_chip=one_chip)
        some = self._whole(self._by_floor(sizes, known_usd)[::-1], known_usd, _FIRST)
        best, limit = self._better(some, self.bounds.of_parts(some, known_usd), (best, known_usd))
        sizes, beyond = self._by_bound(_LOOKED_AT[1], self._kept(limit), one_chip=one_chip)
        if beyond < limit * _CLOSE:  # too many for so high an amount: the best of them lower it
            some = self._whole(self._by_floor(sizes, limit)[::-1], limit, _FIRST)
            best, limit = self._better(some, self.bounds.of_parts(some, limit), (best, limit))
            sizes, beyond = self._by_bound(_LOOKED_AT[1], self._kept(limit), one_chip=one_chip)
        sizes = self._by_floor(sizes, limit)[::-1]
        parts: list[tuple[float, int, Part]] = []
        number, closed = count(), list[tuple[float, Part]]()
        while left > 0:
            # all rooms of every size before parts of them, of which few ways are left
            some = self._whole(sizes, limit, min(_AT_ONCE, left))
            most = 0 if some else min(_AT_ONCE, left)
            while parts and len(some) < most and parts[0][0] < limit * _CLOSE:
                some.append(heapq.heappop(parts)[2])
            if not some:
                break
            left -= len(some)
            looked_at = self.bounds.of_parts(some, limit)
            before = limit
            best, limit = self._better(some, looked_at, (best, limit))
            for part, (least, _) in zip(some, looked_at, strict=True):
                fewer = np.isfinite(before) and (part.kept is None or len(least) < len(part.kept))
                if least and part.is_small and not fewer:  # beside fewer ways a bound is closer
                    closed.append((least[0].usd, part))
                elif least:
                    for one in part.split(least if np.isfinite(before) else None):
                        heapq.heappush(parts, (least[0].usd, next(number), one))
            if limit < before:  # of what was not split any further, fewer ways may be left
                for usd, part in closed:
                    heapq.heappush(parts, (usd, next(number), part))
                closed.clear()
        left_usd = [*(part[0] for part in parts[:1]), *(size[0] for size in sizes[-1:])]
        beyond = min([beyond, *(usd for usd, _ in closed), *left_usd])
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
        # the best end of a pair may be long before the deadline
        tried = _TRIED if np.isfinite(below_usd) else _TRIED_FIRST
        for _, work, ways in about[:tried]:
            asked += [(one, ways) for one in self.ended.ends(work)]
        return [one for one in self.ended.at(asked, below_usd) if one is not None]

    def _whole(self, sizes: list[tuple[float, Rows]], limit: float, most: int) -> list[Part]:
        """All rooms of the last sizes of a list, which are taken from it, up to a bound and a number."""
        out: list[Part] = []
        while sizes:
            usd, rows = sizes[-1]
            work = self.work(rows)
            if work.half_hours > 0:
                if len(out) >= most or usd >= limit * _CLOSE:
                    break
                out.append(Part(work, work.hours))
            sizes.pop()
        return out

    def _kept(self, below_usd: float) -> list[Ints]:
        """Rows of both pools' points that may be part of a cheaper pair in time, beside the fastest and cheapest other.

        Beside any other there is more work and less room for it.
        """
        out = []
        refits = least_refit_s(self._points[0], self._points[1], self.terms)
        for number, refit in enumerate(refits):
            own, other = self._points[number], self._points[1 - number]
            step = step_of(self.terms, own.step_s, other.step_s.min(initial=np.inf), refit)
            hours = self.terms.hours_per_step_s * step
            usd = hours * (own.usd_per_hour + other.usd_per_hour.min(initial=np.inf))
            rows = np.flatnonzero((usd < below_usd) & (hours < self.terms.deadline_hours))
            if not np.isfinite(below_usd):  # all sizes may be late, and their pairs are many
                works = [self._beside_itself(number, row, step, hours) for row in rows.tolist()]
                rows = rows[self.bounds.in_time(number, works)]
            out.append(rows)
        return out

    def _beside_itself(self, number: int, row: int, step: Floats, hours: Floats) -> Work:
        size = self._sizes[number].sizes[row]
        return Work((size, size), float(step[row]), float(hours[row]), self.terms.deadline_hours)

    def _by_bound(
        self, count: int, kept: Sequence[Ints] = (), *, one_chip: bool
    ) -> tuple[list[tuple[float, Rows]], float]:
        """Pairs of sizes, the least lower bound first: USD and the row of each pool's size; and the bound of others.

        `count`: pairs looked at; `kept`: rows of both pools' points, all where it is empty.
        """
        own = kept or [np.arange(len(points.at)) for points in self._points]
        points = [one.take(rows) for one, rows in zip(self._points, own, strict=True)]
        # a size may be bought in another way than the cheapest, which draws on another quota
        terms = replace(self.terms, one_chip=one_chip, quotas=np.full_like(self.terms.quotas, np.inf))
        pairs = find_pairs(points[0], points[1], terms, count)
        rows = zip(own[0][pairs.trainer].tolist(), own[1][pairs.rollouts].tolist(), strict=True)
        sizes = list(zip(pairs.usd.tolist(), rows, strict=True))
        return sizes, np.inf if len(sizes) < count else sizes[-1][0]

    def _by_floor(self, sizes: list[tuple[float, Rows]], below_usd: float) -> list[tuple[float, Rows]]:
        """The same pairs of sizes by what they cost at least with all waits and losses, but those with no room."""
        if not sizes:
            return []
        usd = np.asarray([one for one, _ in sizes])
        a, b = np.asarray([rows for _, rows in sizes]).T
        train, generate = self._points[0].take(a), self._points[1].take(b)
        rate = np.minimum(train.rate, generate.rate)
        refit = handover_s(self.terms.weights, generate.copies, rate, np.full(len(a), np.inf))
        step = step_of(self.terms, train.step_s, generate.step_s, refit)
        hours = self.terms.hours_per_step_s * step
        open_ = np.flatnonzero((hours < self.terms.deadline_hours) & (usd < below_usd * _CLOSE))
        floor = usd.copy()
        floor[open_] = np.maximum(
            usd[open_],
            floors(self.bounds, self._sizes, (a[open_], b[open_]), step[open_], hours[open_], below_usd),
        )
        floor = np.minimum(floor, below_usd)  # beyond the amount nothing more is known
        return [
            (float(floor[at]), (int(a[at]), int(b[at]))) for at in np.argsort(floor, kind="stable").tolist()
        ]

    def work(self, rows: Rows) -> Work:
        """What two sizes do together."""
        if rows not in self._works:
            t, r = (points.step_s[[row]] for points, row in zip(self._points, rows, strict=True))
            step = float(step_of(self.terms, t, r, np.asarray([self._refit_s(rows)]))[0])
            hours = self.terms.hours_per_step_s * step
            (a, b), (first, second) = rows, self._sizes
            least = (first.points.usd_per_hour[a] * hours, second.points.usd_per_hour[b] * hours)
            both = (first.sizes[a], second.sizes[b])
            self._works[rows] = Work(both, step, hours, self.terms.deadline_hours, least)
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
        """Numbers of both sizes."""
        a, b = (own.sizes.index(size) for own, size in zip(self._sizes, work.sizes, strict=True))
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
