"""What two pools by one deadline cost at least, however they are bought and however the room is divided.

Pool a does the pair's work W (hours at its uninterrupted pace), slowed by the other's outages to s W, and has at most
the whole deadline D for it. With c(V, D) the engine's expected cost of a way to buy it for V hours of work,

    cost of a beside b >= f c(V, D) + max(s W - V - g, 0) h        V <= W

h: the least price of an hour on any of its offers; g: what billing rounds up to or charges at least; f: least over
greatest expected price of runs of V to D hours. With the same luck and speed, a pool with more work and less room left
changes to on-demand no later; so it pays what the smaller one pays, and each further hour of work on one of its offers.
Slow work has (x - 1) V / 2 hours longer here; a pool's own room shrinks as fast, by (x - 1) W / 2, or faster.

Sizes are bounded by the cheapest ways of each region, at a pace known already where that suffices; pairs of ways one by
one (docs/post-training.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.model import IN_TURN
from planner.candidates.wanted import Scope, Wanted
from planner.market.price_path import RUN_HOURS
from planner.pipelines.pools_ways import (
    By,
    asked_beside,
    each_bought,
    offers_of,
    open_ways,
    stretch_of,
    ways_of,
)
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from planner.candidates.engine import CandidateSearch
    from planner.pipelines.pools_side import Side
    from planner.pipelines.pools_ways import Offers, Size

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]
    BoolArray = npt.NDArray[np.bool_]

_ROUNDING = 1.0 - 1e-6
_TIMED = ("on_demand", "spot")  # bought by the hour


@record(frozen=True)
class Work:
    """Two pools' sizes, the step that they share in s, its work in hours, and the deadline in hours."""

    sizes: tuple[Size, Size]
    step_s: float
    hours: float
    deadline_hours: float

    @property
    def half_hours(self) -> float:
        """Half of the room that the deadline leaves beside the work."""
        return (self.deadline_hours - self.hours) / 2.0

    def by(self, level: float, slowed: float) -> By:
        """The own deadline of a pool that the other slows down: whatever the speed, it has half of the room left."""
        hours = self.hours * slowed
        return By(min(self.deadline_hours, hours + self.half_hours), level, hours - self.hours / 2.0)

    def by_whole(self, level: float) -> By:
        """The whole deadline, for a pool that is slowed by nothing; what slow work has longer is the same."""
        return By(self.deadline_hours, level, self.hours / 2.0)


@record(frozen=True, eq=False)
class Floors:
    """What the ways to buy a pool cost at least, each shape `(n,)`; all that cost up to `up_to` USD are here.

    Attributes:
        offers: rows of what each buys, all in its `region`.
        usd: for `hours` of work; hourly_usd, spare_hours: of each further hour, and hours of these that may be free.
    """

    hours: float
    up_to: float
    offers: tuple[Offers, ...]
    region: IntArray
    usd: FloatArray
    hourly_usd: FloatArray
    spare_hours: FloatArray

    def at(self, work_hours: float | FloatArray) -> FloatArray:
        """USD at least for more work."""
        return self.usd + self.hourly_usd * np.maximum(work_hours - self.hours - self.spare_hours, 0.0)

    def take(self, numbers: IntArray) -> Floors:
        """Those of `numbers`."""
        columns = (
            self.region[numbers],
            self.usd[numbers],
            self.hourly_usd[numbers],
            self.spare_hours[numbers],
        )
        return Floors(self.hours, self.up_to, tuple(self.offers[n] for n in numbers.tolist()), *columns)

    def of_regions(self, work_hours: float) -> dict[int, float]:
        """The least of each region."""
        out: dict[int, float] = {}
        for region, usd in zip(self.region.tolist(), self.at(work_hours).tolist(), strict=True):
            out[region] = min(out.get(region, np.inf), usd)
        return out


class Bounds:
    """Lower bounds of pairs of pools."""

    def __init__(self, sides: tuple[Side, Side], level: float) -> None:
        """Take the pools, and the probability with which each keeps its own deadline."""
        self.sides, self.level = sides, level
        self._paces: list[dict[Size, float]] = [{}, {}]
        self._floors: dict[tuple[int, Size], dict[float, Floors]] = {}  # by pace in s

    def expect(self, works: Iterable[Work]) -> None:
        """Note at which pace each size will be asked for at least."""
        for work in works:
            for own, size in zip(self._paces, work.sizes, strict=True):
                own[size] = min(own.get(size, np.inf), work.step_s)

    def of_sizes(self, work: Work, below_usd: float) -> float:
        """What no pair of these sizes in one region costs less than, where that is below `below_usd`; USD.

        Else what is known to be no less than `below_usd`; infinite where no pair is in time.
        """
        if work.half_hours <= 0:
            return np.inf
        least = -np.inf
        # by what is known of each size first, then at the pair's own pace
        for exact in ((False, False), (True, False), (True, True)):
            trainer, rollouts = (
                self._at(number, work, below_usd, exact=own).of_regions(work.hours)
                for number, own in enumerate(exact)
            )
            both = [usd + rollouts[region] for region, usd in trainer.items() if region in rollouts]
            least = max(least, min(both, default=np.inf))
            if least >= below_usd:
                break
        return least

    def of_ways(self, work: Work, below_usd: float) -> list[tuple[float, tuple[Offers, Offers]]]:
        """Pairs of ways that may cost less than `below_usd`, the least first: USD at least, what each pool buys.

        What is not listed costs at least `below_usd`.
        """
        if work.half_hours <= 0:
            return []
        floors = [self._at(number, work, below_usd, exact=True) for number in (0, 1)]
        if not _near(floors, below_usd).any():
            return []
        slow = [self._stretch(number, work, None) for number in (0, 1)]
        together = self._asked_by_others(work)
        # where both ask for it, they change to on-demand earlier and lose less to outages; more where it never comes
        joint = [self._stretch(number, work, more) for number, more in enumerate(together)]
        least, greatest = (
            [
                {offers: one(own, beside.get(offers, own)) for offers, own in each.items()}
                for each, beside in zip(slow, joint or slow, strict=True)
            ]
            for one in (min, max)
        )
        pairs = _beside(floors, least, work, below_usd)
        if not pairs:
            return []
        # a pool has no more than its half of the room, beside the slowest of the others that are left
        slowest = [max(greatest[1 - number][ways[1 - number]] for ways in pairs) for number in (0, 1)]
        works = [
            replace(work, deadline_hours=min(work.deadline_hours, work.hours * most + work.half_hours))
            for most in slowest
        ]
        left = _beside([self._ask(n, own, below_usd) for n, own in enumerate(works)], least, work, below_usd)
        left = {ways: max(usd, pairs[ways]) for ways, usd in left.items() if ways in pairs}
        shared = {ways for ways in left if self._share_offers(ways)}
        if shared:
            asked = [self._ask(n, own, below_usd, together[n]) for n, own in enumerate(works)]
            both = _beside(asked, joint, work, below_usd)  # others are late or dearer
            left = {
                ways: max(usd, both[ways]) if ways in shared else usd
                for ways, usd in left.items()
                if ways in both or ways not in shared
            }
        return sorted((usd, ways) for ways, usd in left.items())

    def _asked_by_others(self, work: Work) -> list[FloatArray]:
        """Machines of each offer but spot that the other pool may ask for, by pool; none where they differ in type."""
        if work.sizes[0][0] != work.sizes[1][0]:
            return []
        return [
            asked_beside(side.found.context.market, tuple(offers_of(side, size).tolist()), other[1])
            for side, size, other in zip(self.sides, work.sizes, work.sizes[::-1], strict=True)
        ]

    def _share_offers(self, ways: tuple[Offers, Offers]) -> bool:
        """Whether both pools buy an offer that is not spot."""
        is_spot = self.sides[0].found.context.market.is_spot
        return any(not is_spot[row] for row in set(ways[0]) & set(ways[1]))

    def _at(self, number: int, work: Work, up_to: float, *, exact: bool) -> Floors:
        """The floors of a pool at the pair's pace; else at the nearest pace below it that is known, or the least."""
        size = work.sizes[number]
        known = self._floors.setdefault((number, size), {})
        paces = [pace for pace, floors in known.items() if pace <= work.step_s and floors.up_to >= up_to]
        if paces and (max(paces) == work.step_s or not exact):
            return known[max(paces)]
        paced_s = work.step_s if exact else self._paces[number].get(size, work.step_s)
        hours = work.hours * paced_s / work.step_s
        known[paced_s] = self._ask(number, replace(work, step_s=paced_s, hours=hours), up_to)
        return known[paced_s]

    def _ask(self, number: int, work: Work, up_to: float, beside: FloatArray | None = None) -> Floors:
        """Every way of a pool that costs up to `up_to` with the whole deadline, and the cheapest of each region."""
        machines, share = work.sizes[number][1], self._price_share(number, work)
        search = self._ways(number, work, work.by_whole(self.level), up_to / share, beside)
        candidates, market = search.candidates, search.context.market
        offer_set, at = market.offer_set, open_ways(search)
        offers = tuple(each_bought(search, at))
        timed = np.isin(offer_set.offers["purchase_option"], _TIMED)
        hourly = np.where(timed, offer_set.least_usd_per_hour, 0.0) * (machines * _ROUNDING)
        granules = np.asarray(
            [max(rule.billing_granularity_s or 1, rule.minimum_charge_s) for rule in offer_set.rules]
        )
        return Floors(
            hours=work.hours, up_to=up_to, offers=offers, region=market.region_of_offer[candidates.offer[at]],
            usd=candidates.cost_usd[at] * share,
            hourly_usd=np.asarray([hourly[list(rows)].min() for rows in offers]),
            # hours in turn are means, and not rounded up
            spare_hours=np.where(
                candidates.kind[at] == IN_TURN, 0.0, granules[offer_set.rule_of_offer[candidates.offer[at]]] / 3600.0
            ),
        )  # fmt: skip

    def _stretch(self, number: int, work: Work, beside: FloatArray | None) -> dict[Offers, float]:
        """Elapsed over work hours of all ways that are in time at their own pace, as they slow the other pool."""
        search = self._ways(number, work, work.by(self.level, 1.0), np.inf, beside)
        at = open_ways(search)
        slow = stretch_of(search, at).tolist()
        return dict(zip(each_bought(search, at), slow, strict=True))

    def _ways(
        self, number: int, work: Work, by: By, up_to: float, beside: FloatArray | None
    ) -> CandidateSearch:
        side, size = self.sides[number], work.sizes[number]
        return ways_of(
            side, offers_of(side, size), size, paced_s=work.step_s, by=by,
            wanted=Wanted(Scope.PLACES, one_region=True, up_to=up_to), beside=beside,
        )  # fmt: skip

    def _price_share(self, number: int, work: Work) -> float:
        """Least over greatest expected price of any of a pool's spot offers, in runs of the work to the deadline."""
        side = self.sides[number]
        market, rows = side.found.context.market, offers_of(side, work.sizes[number])
        rows = rows[market.is_spot[rows] & (side.found.offer_bits[rows] == 0)]
        if not len(rows):
            return _ROUNDING
        ends = (work.hours, work.deadline_hours)
        hours = np.unique(np.clip((*RUN_HOURS, *ends), *ends))
        prices = np.stack([market.offer_set.usd_during(rows, np.full(len(rows), one)) for one in hours])
        return float((prices.min(axis=0) / prices.max(axis=0)).min()) * _ROUNDING


def _near(floors: list[Floors], below_usd: float) -> BoolArray:
    """Whether ways of both pools in one region may cost less than an amount together, shape `(n, m)`."""
    own, other = floors
    same = own.region[:, None] == other.region
    return np.asarray(same & (own.usd[:, None] + other.usd < below_usd), dtype=np.bool_)


def _beside(
    floors: list[Floors], slow: list[dict[Offers, float]], work: Work, below_usd: float
) -> dict[tuple[Offers, Offers], float]:
    """Pairs of ways that may cost less than an amount, slowed by each other's outages: USD at least."""
    own, other = floors
    # ways that are late at their own pace cannot be bought
    slow_a, slow_b = (
        np.asarray([each.get(offers, np.inf) for offers in one.offers])
        for each, one in zip(slow, floors, strict=True)
    )
    a, b = np.nonzero(_near(floors, below_usd) & np.isfinite(slow_a)[:, None] & np.isfinite(slow_b))
    usd = own.take(a).at(slow_b[b] * work.hours) + other.take(b).at(slow_a[a] * work.hours)
    found = zip(a.tolist(), b.tolist(), usd.tolist(), strict=True)
    return {(own.offers[i], other.offers[j]): least for i, j, least in found if least < below_usd}
