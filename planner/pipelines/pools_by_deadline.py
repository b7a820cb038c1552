"""Pairs of pools by a deadline, bought in every way of the engine: spot with a fall-back, reservations, blocks.

Both pools of such a pair are in one region. What the deadline D leaves beside the pair's work W is shared, so that
the pair is in time with the confidence asked where each pool is with 1 - (1 - confidence) / 2, however much the two
have to do with each other. A pool works at the pace of the pair, slowed by what the other loses on average:

    deadline of a pool = min(D, W s + (D - W) / 2)        s: elapsed over work hours of the other pool

Sizes of pairs are priced in the order of a lower bound, the work at the least price of each type in the region, until
that exceeds the cheapest pair found. Each size has the ways that are cheapest at the pace of uninterrupted pools.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.engine import Engine
from planner.candidates.model import IN_TURN, SINGLE
from planner.candidates.sizes import estimate_for, hardware_of_offer
from planner.candidates.wanted import Scope, Wanted
from planner.performance.inference.pool import handover_s
from planner.pipelines.pool_pairs import Points, Terms, find_pairs, step_of, within
from planner.records import record

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.engine import CandidateSearch
    from planner.pipelines.pools_side import Side

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

_LOOKED_AT = 400  # cheapest pairs by the lower bound; of many regions each
_PRICED = 24  # sizes of pairs that the engine prices at most
_TRIED = 4  # pairs of ways of one size that are tried
_LEAST_SHARE = 0.999  # of the least cost, for rounding
_ELSEWHERE = -1  # bits of offers that are left out


Size = tuple[int, int]  # of a pool: row of its hardware, and number of machines


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
    """The cheapest pair, None without any, and what no pair of sizes that were not priced costs less than, USD."""

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
        places: dict[str, int] = {}
        bounds = [_least(side, places) for side in sides]
        self._points, self._sizes = [points for points, _ in bounds], [sizes for _, sizes in bounds]
        apart = np.full((len(places), len(places)), np.inf)
        np.fill_diagonal(apart, 0.0)
        self.terms = replace(terms, moved_usd=apart, gbps=np.full_like(apart, np.inf))

    def cheapest(self, known_usd: float, *, one_chip: bool = False) -> Found:
        """The cheapest pair that costs less than one that is known.

        Args:
            known_usd: what the known pair costs.
            one_chip: both pools have the same type of accelerator.
        """
        best: Timed | None = None
        limit = known_usd
        sizes, beyond = self._by_bound(one_chip=one_chip)
        for priced, (least, rows) in enumerate(sizes):
            if least >= limit or priced == _PRICED:
                return Found(best, min(least, limit))
            pair = self._priced(rows)
            if pair is not None and pair.cost_usd < limit:
                best, limit = pair, pair.cost_usd
        return Found(best, min(beyond, limit))

    def _by_bound(self, *, one_chip: bool) -> tuple[list[tuple[float, tuple[int, int]]], float]:
        """Pairs of sizes, the least lower bound first: USD and the row of each pool's size; and the bound of others."""
        # a size may be bought in another way than the cheapest, which draws on another quota
        terms = replace(self.terms, one_chip=one_chip, quotas=np.full_like(self.terms.quotas, np.inf))
        pairs = find_pairs(self._points[0], self._points[1], terms, _LOOKED_AT)
        first: dict[tuple[Size, Size], tuple[float, tuple[int, int]]] = {}
        rows = zip(pairs.trainer.tolist(), pairs.rollouts.tolist(), strict=True)
        for row, usd in zip(rows, pairs.usd.tolist(), strict=True):
            first.setdefault((self._sizes[0][row[0]], self._sizes[1][row[1]]), (usd, row))
        return list(first.values()), np.inf if len(pairs.usd) < _LOOKED_AT else float(pairs.usd[-1])

    def _priced(self, rows: tuple[int, int]) -> Timed | None:
        """The cheapest pair of two sizes, None where none is in time."""
        t, r = (points.take(np.asarray([row])) for points, row in zip(self._points, rows, strict=True))
        sizes = (self._sizes[0][rows[0]], self._sizes[1][rows[1]])
        refit = float(
            handover_s(self.terms.weights, r.copies, np.minimum(t.rate, r.rate), np.asarray(np.inf))[0]
        )
        step = float(step_of(self.terms, t.step_s, r.step_s, np.asarray([refit]))[0])
        work = self.terms.hours_per_step_s * step
        half = (self.terms.deadline_hours - work) / 2.0
        if half <= 0:
            return None
        whole = Wanted(Scope.PLACES, one_region=True)
        first = [
            self._ways(side, self._offers(side, size), size, step, work + half, whole)
            for side, size in zip(self.sides, sizes, strict=True)
        ]
        own = (int(t.at[0]), int(r.at[0]))
        for chosen in self._together(first):
            pools = self._at_pace(first, chosen, sizes, step, work, half, own)
            if pools is not None:
                usd = sum(float(pool.search.candidates.cost_usd[pool.at]) for pool in pools)
                return Timed(pools, step, refit, usd)
        return None

    def _together(self, first: list[CandidateSearch]) -> list[tuple[int, int]]:
        """Ways of trainer and rollouts in one region: those of the least cost beside each other, cheapest first.

        A pool is paid while it waits for the other, so the cost of each counts times the stretch of the other.
        """
        found: list[tuple[float, int, int]] = []
        ways = []
        for side, search in zip(self.sides, first, strict=True):
            candidates = search.candidates
            at = np.flatnonzero((candidates.bits == 0) & np.isin(candidates.kind, (SINGLE, IN_TURN)))
            region = search.context.market.region_of_offer[candidates.offer[at]]
            # what runs in turn is not in use together
            uses = [
                (side.units[list(_bought(search, one))] * candidates.nodes[one]).max(axis=0)
                for one in at.tolist()
            ]
            ways.append((at, region, candidates.cost_usd[at], stretch_of(search, at), np.asarray(uses)))
        (at_t, region_t, usd_t, slow_t, uses_t), (at_r, region_r, usd_r, slow_r, uses_r) = ways
        for region in np.intersect1d(region_t, region_r).tolist():
            t, r = np.flatnonzero(region_t == region), np.flatnonzero(region_r == region)
            usd = np.outer(usd_t[t], slow_r[r]) + np.outer(slow_t[t], usd_r[r])
            usd = np.where(within(self.terms.quotas, uses_t[t][:, None] + uses_r[r]), usd, np.inf)
            for place in np.argsort(usd, axis=None, kind="stable")[:_TRIED].tolist():
                a, b = divmod(place, len(r))
                if np.isfinite(usd[a, b]):
                    found.append((float(usd[a, b]), int(at_t[t[a]]), int(at_r[r[b]])))
        return [(a, b) for _, a, b in sorted(found)[:_TRIED]]

    def _at_pace(
        self, first: list[CandidateSearch], chosen: tuple[int, int], sizes: tuple[Size, Size], step: float,
        work: float, half: float, own: tuple[int, int],
    ) -> tuple[Paced, Paced] | None:  # fmt: skip
        """Two ways at the pace that each has beside the other; None where one is late at it."""
        stretch = [
            float(stretch_of(search, np.asarray([at]))[0]) for search, at in zip(first, chosen, strict=True)
        ]
        pools: list[Paced] = []
        for number, (side, size) in enumerate(zip(self.sides, sizes, strict=True)):
            slowed = stretch[1 - number]
            deadline = min(self.terms.deadline_hours, work * slowed + half)
            offers = _bought(first[number], chosen[number])
            search = self._ways(
                side, np.asarray(offers), size, step * slowed, deadline, Wanted(one_region=True)
            )
            bits = search.candidates.bits
            same = [at for at in np.flatnonzero(bits == 0).tolist() if _bought(search, at) == offers]
            if not same:
                return None
            pools.append(Paced(search, same[0], own[number], step * slowed, stretch[number], deadline))
        return pools[0], pools[1]

    def _offers(self, side: Side, size: Size) -> IntArray:
        """Offers of a pool's machines."""
        return np.flatnonzero(hardware_of_offer(side.found.context.market) == size[0])

    def _ways(
        self, side: Side, offers: IntArray, size: Size, paced_s: float, deadline_hours: float, wanted: Wanted
    ) -> CandidateSearch:
        """What some offers come to at a pace, by a deadline with the level asked."""
        context = side.at_pace(paced_s)
        workload = context.asked.workload
        limits = workload.constraints.model_copy(update={"deadline_confidence": self.level})
        context = context.with_asked(
            replace(context.asked, workload=workload.model_copy(update={"constraints": limits}))
        )
        bits = np.full_like(side.found.offer_bits, _ELSEWHERE)
        bits[offers] = side.found.offer_bits[offers]
        engine = Engine(
            context, sizes=[size[1]], shapes=estimate_for(context.asked, context.market, offers, [size[1]]),
            offer_bits=bits, admitted_only=True,
        )  # fmt: skip
        return engine.at_hours(deadline_hours, wanted)


def stretch_of(search: CandidateSearch, at: IntArray) -> FloatArray:
    """Elapsed over work hours, for interruptions, shape `(len(at),)`."""
    found = search.candidates
    return np.asarray(
        (found.hours[at] - found.waiting_hours[at] - found.fixed_hours[at]) / found.work_hours[at],
        dtype=np.float64,
    )


def _bought(search: CandidateSearch, at: int) -> tuple[int, ...]:
    """Rows of the offers that a candidate buys, in the order of its turns."""
    return tuple(part.row for part in search.candidates.parts(at))


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
        usd_per_hour=hourly[kept], sure=one, nodes=nodes[kept], place=place[kept],
        **side.of_machines(at[kept]),
    )  # fmt: skip
    return points, list(zip(hardware[kept].tolist(), nodes[kept].tolist(), strict=True))
