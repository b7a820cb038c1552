"""Pairs of pools by a deadline, bought in every way of the engine: spot with a fall-back, reservations, blocks.

Both pools of such a pair are in one region. What the deadline D leaves beside the pair's work W is shared, so that
the pair is in time with the confidence asked where each pool is with 1 - (1 - confidence) / 2, however much the two
have to do with each other. A pool works at the pace of the pair, slowed by what the other loses on average:

    deadline of a pool = min(D, W s + (D - W) / 2)        s: elapsed over work hours of the other pool

A pair that takes x times as long as predicted takes x W, and this slows both pools at once: each has half of the
D - x W that is left, so its deadline is later by (x - 1) (s - 1/2) W.
The pair is in time where each keeps its own half, whatever x.

Sizes of pairs are looked at in the order of a lower bound, the work at the least price of each type in the region.
Those that may be cheaper by the bounds of `pools_bound` are priced in the ways that are cheapest at the pace of
uninterrupted pools, and then in every pair of ways that may still be cheaper.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.model import SINGLE
from planner.candidates.wanted import Scope, Wanted
from planner.performance.inference.pool import handover_s
from planner.pipelines.pool_pairs import Points, Terms, find_pairs, step_of, within
from planner.pipelines.pools_bound import Bounds, Work
from planner.pipelines.pools_ways import asked_beside, each_bought, offers_of, open_ways, stretch_of, ways_of
from planner.records import record

if TYPE_CHECKING:
    from planner.candidates.engine import CandidateSearch
    from planner.pipelines.pools_side import Side
    from planner.pipelines.pools_ways import Offers, Size

    Rows = tuple[int, int]  # of both pools' points

_LOOKED_AT = (400, 4_000)  # cheapest pairs by the first lower bound; more where the first do not suffice
_MOST = (600, 48)  # sizes of pairs that the engine bounds at most, and of these prices
_COMPARED = (96, 12)  # the same of pools of one type of accelerator, which are only compared with
_TRIED = 4  # pairs of ways of one size that are tried first
_WAYS = 16  # pairs of ways that are tried in the end, of all sizes
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
    """A pair by a deadline: its pools, the parts of its step in seconds, and its cost without cents, USD."""

    pools: tuple[Paced, Paced]
    step_s: float
    refit_s: float
    cost_usd: float


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
        self.bounds = Bounds(sides, level)
        places: dict[str, int] = {}
        bounds = [_least(side, places) for side in sides]
        self._points, self._sizes = [points for points, _ in bounds], [sizes for _, sizes in bounds]
        apart = np.full((len(places), len(places)), np.inf)
        np.fill_diagonal(apart, 0.0)
        self.terms = replace(terms, moved_usd=apart, gbps=np.full_like(apart, np.inf))
        self._known: dict[tuple[Rows, tuple[Offers, Offers]], Timed | None] = {}
        self._works: dict[Rows, Work] = {}

    def cheapest(self, known_usd: float, *, one_chip: bool = False) -> Found:
        """The cheapest pair that costs less than one that is known.

        Args:
            known_usd: what the known pair costs.
            one_chip: both pools have the same type of accelerator.
        """
        best: Timed | None = None
        limit, beyond = known_usd, np.inf
        most_bounded, most_priced = _COMPARED if one_chip else _MOST
        looked: set[Rows] = set()
        likely: list[Rows] = []
        for count in _LOOKED_AT:
            sizes, beyond = self._by_bound(count, one_chip=one_chip)
            self.bounds.expect(self.work(rows) for _, rows in sizes)
            for least, rows in sizes:
                if rows in looked:
                    continue
                if least >= limit or len(looked) == most_bounded or len(likely) == most_priced:
                    beyond = min(beyond, least)
                    break
                looked.add(rows)
                if self._may_be_cheaper(rows, limit):
                    likely.append(rows)
                    pair = self._first(rows)
                    if pair is not None and pair.cost_usd < limit:
                        best, limit = pair, pair.cost_usd
            if beyond >= limit or len(looked) == most_bounded or len(likely) == most_priced:
                break
        pairs = [
            (usd, rows, ways) for rows in likely for usd, ways in self.bounds.of_ways(self.work(rows), limit)
        ]
        for tried, (usd, rows, ways) in enumerate(sorted(pairs)):
            if usd >= limit or tried == _WAYS:
                beyond = min(beyond, usd)
                break
            pair = self.pair(rows, ways)
            if pair is not None and pair.cost_usd < limit:
                best, limit = pair, pair.cost_usd
        return Found(best, min(beyond, limit))

    def _by_bound(self, count: int, *, one_chip: bool) -> tuple[list[tuple[float, Rows]], float]:
        """Pairs of sizes, the least lower bound first: USD and the row of each pool's size; and the bound of others.

        `count`: pairs looked at, of many regions each.
        """
        # a size may be bought in another way than the cheapest, which draws on another quota
        terms = replace(self.terms, one_chip=one_chip, quotas=np.full_like(self.terms.quotas, np.inf))
        pairs = find_pairs(self._points[0], self._points[1], terms, count)
        first: dict[tuple[Size, Size], tuple[float, Rows]] = {}
        rows = zip(pairs.trainer.tolist(), pairs.rollouts.tolist(), strict=True)
        for row, usd in zip(rows, pairs.usd.tolist(), strict=True):
            first.setdefault((self._sizes[0][row[0]], self._sizes[1][row[1]]), (usd, row))
        return list(first.values()), np.inf if len(pairs.usd) < count else float(pairs.usd[-1])

    def _may_be_cheaper(self, rows: Rows, limit_usd: float) -> bool:
        """Whether some pair of ways of two sizes may cost less, by what is known at once and then way by way."""
        work = self.work(rows)
        if not self.bounds.of_sizes(work, limit_usd) < limit_usd:
            return False
        return np.isinf(limit_usd) or bool(self.bounds.of_ways(work, limit_usd))

    def work(self, rows: Rows) -> Work:
        """What two sizes do together."""
        if rows not in self._works:
            t, r = (points.step_s[[row]] for points, row in zip(self._points, rows, strict=True))
            step = float(step_of(self.terms, t, r, np.asarray([self._refit_s(rows)]))[0])
            self._works[rows] = Work(
                (self._sizes[0][rows[0]], self._sizes[1][rows[1]]), step, self.terms.hours_per_step_s * step,
                self.terms.deadline_hours,
            )  # fmt: skip
        return self._works[rows]

    def _refit_s(self, rows: Rows) -> float:
        rates = (points.rate[[row]] for points, row in zip(self._points, rows, strict=True))
        copies = self._points[1].copies[[rows[1]]]
        return float(handover_s(self.terms.weights, copies, np.minimum(*rates), np.asarray(np.inf))[0])

    def _first(self, rows: Rows) -> Timed | None:
        """A pair of two sizes: the first of the cheapest ways that is in time, None without any."""
        work = self.work(rows)
        if work.half_hours <= 0:
            return None
        whole = Wanted(Scope.PLACES, one_region=True)
        first = [
            ways_of(
                side, offers_of(side, size), size, paced_s=work.step_s,
                by=work.by(self.level, 1.0), wanted=whole,
            )
            for side, size in zip(self.sides, work.sizes, strict=True)
        ]  # fmt: skip
        for ways in self._together(first):
            pair = self.pair(rows, ways)
            if pair is not None:
                return pair
        return None

    def pair(self, rows: Rows, ways: tuple[Offers, Offers]) -> Timed | None:
        """Two sizes bought in two ways, at the pace that each has beside the other; None where one is late at it."""
        key = (rows, ways)
        if key not in self._known:
            self._known[key] = self._at_pace(rows, ways)
        return self._known[key]

    def _together(self, first: list[CandidateSearch]) -> list[tuple[Offers, Offers]]:
        """Ways of trainer and rollouts in one region: those of the least cost beside each other, cheapest first.

        A pool is paid while it waits for the other, so the cost of each counts times the stretch of the other.
        """
        found: list[tuple[float, int, int, tuple[Offers, Offers]]] = []
        ways = []
        for side, search in zip(self.sides, first, strict=True):
            candidates, at = search.candidates, open_ways(search)
            offers, region = (
                each_bought(search, at),
                search.context.market.region_of_offer[candidates.offer[at]],
            )
            # what runs in turn is not in use together
            uses = [
                (side.units[list(rows)] * nodes).max(axis=0)
                for rows, nodes in zip(offers, candidates.nodes[at].tolist(), strict=True)
            ]
            ways.append(
                (at, offers, region, candidates.cost_usd[at], stretch_of(search, at), np.asarray(uses))
            )
        (
            (at_t, offers_t, region_t, usd_t, slow_t, uses_t),
            (at_r, offers_r, region_r, usd_r, slow_r, uses_r),
        ) = ways
        for region in np.intersect1d(region_t, region_r).tolist():
            t, r = np.flatnonzero(region_t == region), np.flatnonzero(region_r == region)
            usd = np.outer(usd_t[t], slow_r[r]) + np.outer(slow_t[t], usd_r[r])
            usd = np.where(within(self.terms.quotas, uses_t[t][:, None] + uses_r[r]), usd, np.inf)
            for place in np.argsort(usd, axis=None, kind="stable")[:_TRIED].tolist():
                a, b = divmod(place, len(r))
                if np.isfinite(usd[a, b]):
                    pair = offers_t[t[a]], offers_r[r[b]]
                    found.append((float(usd[a, b]), int(at_t[t[a]]), int(at_r[r[b]]), pair))
        return [pair for *_, pair in sorted(found)[:_TRIED]]

    def _at_pace(self, rows: Rows, ways: tuple[Offers, Offers]) -> Timed | None:
        work = self.work(rows)
        if not self._are_to_be_had(ways, work):
            return None
        alone = [self._bought(number, work, ways, 1.0) for number in (0, 1)]
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
        return Timed((pools[0], pools[1]), work.step_s, self._refit_s(rows), usd)

    def _are_to_be_had(self, ways: tuple[Offers, Offers], work: Work) -> bool:
        """Whether both pools keep each quota together, and find machines of the offers that both buy.

        What runs in turn is not in use together.
        """
        uses = [
            (side.units[list(offers)] * size[1]).max(axis=0)
            for side, offers, size in zip(self.sides, ways, work.sizes, strict=True)
        ]
        both, nodes = list(set(ways[0]) & set(ways[1])), sum(size[1] for size in work.sizes)
        held = self.sides[0].most_nodes[both]
        return bool(within(self.terms.quotas, uses[0] + uses[1]) and (nodes <= held).all())

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


def _least(side: Side, places: dict[str, int]) -> tuple[Points, list[Size]]:
    """Bounds of every size of a pool in every region, and the sizes: never interrupted, at the region's least price."""
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
    points = Points(
        at=at[kept], step_s=step, stretch=one, held=one, before_hours=none, fixed_usd=none,
        usd_per_hour=hourly[kept], sure=one, nodes=nodes[kept], place=place[kept], offer=rows[kept],
        most_nodes=np.full(len(kept), np.inf),  # a size may be bought in several ways
        **side.of_machines(at[kept]),
    )  # fmt: skip
    return points, list(zip(hardware[kept].tolist(), nodes[kept].tolist(), strict=True))
