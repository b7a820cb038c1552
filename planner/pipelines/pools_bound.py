"""What two pools by one deadline cost at least, however they are bought and however the room is divided.

A pair may be planned to end before the deadline (`pools_by_deadline`): its room is some R up to all that the deadline
leaves beside its work W (hours at its uninterrupted pace). With the engine's expected cost c(V, A) of a way to buy a
pool for V hours of work within A, a pool a beside a pool b that stretches the work to s W costs at least

    f c(W, A) + max(s W - W - g, 0) h

for every room from R' to R, where A is at least the pool's own deadline with the room R, and s the least that b
stretches the work with the room R'. h: the least price of an hour on any of its offers; g: what billing rounds up to or
charges at least; f: least over greatest expected price of runs of the work to the deadline. With the same luck and
speed, a pool with more work and less room left changes to on-demand no later; so it pays what the smaller one pays, and
each further hour of work on one of its offers. Slow work has (x - 1) W / 2 hours longer here; a pool's own room shrinks
as fast, by (x - 1) W / 2, or faster.

Rooms are looked at in parts, at first from none (s = 1) to all of it (docs/post-training.md).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.starts import allotted_level
from planner.market.price_path import RUN_HOURS
from planner.pipelines.pools_asked import Ask, Asked
from planner.pipelines.pools_ways import By, offers_of
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from planner.pipelines.pools_asked import Ways
    from planner.pipelines.pools_side import Side
    from planner.pipelines.pools_ways import Offers, Size

    BoolArray = npt.NDArray[np.bool_]
    FloatArray = npt.NDArray[np.float64]

_ROUNDING = 1.0 - 1e-6
_BOTH = (0, 1)
_FIRST, _PARTS = (0.5, 0.75, 0.9), 3  # ends of parts of all the room, over it; parts of such a part
_SMALL = 0.997  # of the greatest room is the least of parts that are not split
_MOST_ABOUT = 8  # pairs of ways of a part that are listed without an amount, or by what they cost about


@record(frozen=True)
class Work:
    """Two pools' sizes, the step that they share in s, its work in hours, and the deadline in hours.

    `least_usd`: what each pool costs at least.
    """

    sizes: tuple[Size, Size]
    step_s: float
    hours: float
    deadline_hours: float
    least_usd: tuple[float, float] = (0.0, 0.0)

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

    def ending(self, hours: float) -> Work:
        """The same work by another deadline."""
        return replace(self, deadline_hours=hours)


@record(frozen=True)
class Part:
    """Rooms of one pair of sizes: by deadlines after `from_hours` up to that of the work.

    `kept`: ways of both pools beside which another may still be cheaper; None: all.
    """

    work: Work
    from_hours: float
    kept: tuple[frozenset[Offers], frozenset[Offers]] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether no room is left out below."""
        return self.from_hours <= self.work.hours

    @property
    def is_small(self) -> bool:
        """Whether it is not split."""
        return self.from_hours - self.work.hours > (self.work.deadline_hours - self.work.hours) * _SMALL

    def split(self, pairs: Sequence[Pair] | None) -> list[Part]:
        """Smaller parts, with the pairs of ways that are left; None: with those of this part."""
        kept = self.kept
        if pairs is not None:
            kept = (frozenset(pair.ways[0] for pair in pairs), frozenset(pair.ways[1] for pair in pairs))
        low, high = self.from_hours - self.work.hours, self.work.deadline_hours - self.work.hours
        inner = high * np.asarray(_FIRST) if low <= 0 else np.geomspace(low, high, _PARTS + 1)[1:-1]
        ends = [self.from_hours, *(self.work.hours + inner).tolist(), self.work.deadline_hours]
        return [Part(self.work.ending(last), first, kept) for first, last in pairwise(ends)]


@record(frozen=True, eq=False)
class Pair:
    """Two ways beside each other: USD at least, or about, and what each pool buys."""

    usd: float
    ways: tuple[Offers, Offers]


@record(frozen=True, eq=False)
class Slowed:
    """By how much ways slow the other pool: each at least; the least and the most of those that are left.

    `at_least`: by `Ways.number`.
    """

    at_least: FloatArray
    least: float
    most: float

    @classmethod
    def by(cls, ways: Ways, low: FloatArray, high: FloatArray, kept: BoolArray) -> Slowed:
        """Take what bounds some ways from both sides, and which of them are left, shape `(n,)` each."""
        at_least = np.full(int(ways.number.max(initial=-1)) + 2, np.inf)
        at_least[ways.number] = low
        return cls(at_least, float(low[kept].min(initial=np.inf)), float(high[kept].max(initial=1.0)))

    def of(self, ways: Ways) -> FloatArray:
        """Of each way at least, infinite of those of which nothing is known."""
        return self.at_least[np.minimum(ways.number, len(self.at_least) - 1)]


class Bounds:
    """Lower bounds of pairs of pools."""

    def __init__(self, sides: tuple[Side, Side], level: float, deadline_hours: float) -> None:
        """Take the pools, the probability with which each keeps its own deadline, and the deadline in hours."""
        self.sides, self.level, self.deadline_hours = sides, level, deadline_hours
        self.asked = (Asked(sides[0]), Asked(sides[1]))
        self._is_spot = sides[0].found.context.market.is_spot
        self._shares: dict[tuple[int, int, int], float] = {}
        self._sooner_by: dict[tuple[int, ...], tuple[float, float, float]] = {}

    def in_time(self, number: int, works: Sequence[Work], below_usd: float) -> list[set[int]]:
        """Regions in which a pool is in time for each, and costs less than an amount."""
        asks = [self._ask(number, work, work.by(self.level, 1.0), below_usd) for work in works]
        return [
            set(ways.region[ways.usd * self._share(number, work) < below_usd].tolist())
            for ways, work in zip(self.asked[number].all(asks), works, strict=True)
        ]

    def of_parts(self, parts: Sequence[Part], below_usd: float) -> list[tuple[list[Pair], list[Pair]]]:
        """Pairs of ways of each part that may cost less than `below_usd`, the least first.

        Returns:
            Of each part: what they cost at least (what is not listed costs at least `below_usd`; without an amount only
            the first are listed), and what they cost about by the deadline of its work, of those that are in time then.
        """
        late = self._answers(
            [self._alone(part.work, part.work.deadline_hours, below_usd, 0) for part in parts]
        )
        open_ = [n for n, ways in enumerate(late) if _meet(ways)]
        early = self._answers([self._alone(parts[n].work, parts[n].from_hours, below_usd, 1) for n in open_])
        slow = [self._slowed(parts[n], late[n], ways) for n, ways in zip(open_, early, strict=True)]
        floors = self._answers(
            [self._within(parts[n].work, own, below_usd) for n, own in zip(open_, slow, strict=True)]
        )
        out: list[tuple[list[Pair], list[Pair]]] = [([], []) for _ in parts]
        for n, own, of_part in zip(open_, slow, floors, strict=True):
            out[n] = self._listed(parts[n].work, own, of_part, late[n], below_usd)
        return out

    def _answers(self, asked: list[list[list[Ask]]]) -> list[list[list[Ways]]]:
        """Ways of both pools of each, from one question to each pool."""
        out: list[list[list[Ways]]] = [[[], []] for _ in asked]
        for number in _BOTH:
            ways = iter(self.asked[number].all([ask for one in asked for ask in one[number]]))
            for one, answers in zip(asked, out, strict=True):
                answers[number] = [next(ways) for _ in one[number]]
        return out

    def _alone(self, work: Work, hours: float, below_usd: float, end: int) -> list[list[Ask]]:
        """Both pools at their own pace by their half of the room to `hours`; and as both ask for on-demand together.

        Whoever asks for on-demand beside another asks so much earlier: `end` says whether the least or the most of it
        counts.
        """
        if hours <= work.hours:
            return [[], []]
        by = work.ending(hours).by(self.level, 1.0)
        return [
            [
                self._ask(n, work, replace(by, hours=by.hours - sooner[end]), below_usd)
                for sooner in self._sooner(n, work)
            ]
            for n in _BOTH
        ]

    def _sooner(self, number: int, work: Work) -> list[tuple[float, float, float]]:
        """Hours that on-demand is asked for earlier: by nobody else, and beside the other pool where it has the type.

        Each: the least and the most of any offer, and the most that it comes later in the mean.
        """
        if work.sizes[0][0] != work.sizes[1][0]:
            return [(0.0, 0.0, 0.0)]
        key = (number, *(size[1] for size in work.sizes), work.sizes[0][0])
        if key not in self._sooner_by:
            side, level = self.sides[number], allotted_level(self.level)
            rows = offers_of(side, work.sizes[number])
            rows = rows[~self._is_spot[rows] & (side.found.offer_bits[rows] == 0)]
            own, both = (
                np.full(len(rows), nodes)
                for nodes in (work.sizes[number][1], work.sizes[0][1] + work.sizes[1][1])
            )
            starts = side.found.context.starts
            more = starts.at_level(rows, both, level) - starts.at_level(rows, own, level)
            more = more[
                starts.has_spread(rows)
            ]  # others are there when they are asked for, or at an hour of their own
            mean = starts.hours(rows, both) - starts.hours(rows, own)
            most = float(more.max(initial=0.0))
            least = min(float(more.min(initial=np.inf)), most)
            self._sooner_by[key] = (least, most, float(mean.max(initial=0.0)))
        return [(0.0, 0.0, 0.0), self._sooner_by[key]]

    def _slowed(self, part: Part, most: list[list[Ways]], least: list[list[Ways]]) -> list[list[Slowed]]:
        """By how much each way of both pools slows the other in the rooms of a part."""
        work, out = part.work, []
        for number in _BOTH:
            own = []
            for joint, (sooner, most_sooner, later) in enumerate(self._sooner(number, work)):
                ways, after = most[number][joint], later / work.hours
                high = ways.stretch + ways.p_change * after
                # an hour less to wait wastes an hour less at most
                rooms = part.work.deadline_hours - part.from_hours
                low = ways.wasted - (rooms / 2.0 + most_sooner - sooner) / work.hours
                if least[number]:
                    few = least[number][joint]
                    at = np.full(1 + max(one.number.max(initial=-1) for one in (few, ways)), -1)
                    at[few.number] = np.arange(len(few.number))
                    at = at[ways.number]
                    low = np.maximum(low, np.append(few.wasted, -np.inf)[at])
                    high = np.maximum(high, np.append(few.stretch + few.p_change * after, 1.0)[at])
                # and changes to on-demand no less often
                low = np.maximum(low + (ways.stretch - ways.wasted), 1.0)
                kept = np.ones(len(ways.offers), dtype=np.bool_)
                if part.kept is not None:
                    kept[:] = [one in part.kept[number] for one in ways.offers]
                own.append(Slowed.by(ways, low, high, kept))
            out.append(own)
        return out

    def _within(self, work: Work, slow: list[list[Slowed]], below_usd: float) -> list[list[Ask]]:
        """Every way for the least of the work, with the deadline that it has beside the slowest of the other pool's."""
        out = []
        for number in _BOTH:
            own = []
            for (sooner, _, _), other in zip(self._sooner(number, work), slow[1 - number], strict=True):
                low = min(other.least, other.most)
                hours = min(work.deadline_hours, work.hours * other.most + work.half_hours) - sooner
                by = By(hours, self.level, work.hours * (low - 0.5))
                ask = self._ask(number, work, by, below_usd)
                own.append(replace(ask, paced_s=work.step_s * low))
            out.append(own)
        return out

    def _listed(
        self, work: Work, slow: list[list[Slowed]], floors: list[list[Ways]], most: list[list[Ways]],
        below_usd: float,
    ) -> tuple[list[Pair], list[Pair]]:  # fmt: skip
        """The two lists of `of_parts` of one part."""
        bounds: list[Pair] = []
        about: list[Pair] = []
        for joint in range(len(floors[0])):
            own, other = (ways[joint] for ways in floors)
            # ways that are late at their own pace cannot be bought: nothing is known of them
            slowed = [slow[n][joint].of(ways) for n, ways in enumerate((own, other))]
            usd = [ways.usd * self._share(n, work) for n, ways in enumerate((own, other))]
            low = [min(slow[n][joint].least, slow[n][joint].most) for n in _BOTH]
            total = usd[0][:, None] + usd[1]
            total = total + _more(own, (slowed[1] - low[1]) * work.hours)
            total = total + _more(other, (slowed[0] - low[0]) * work.hours).T
            bounds += self._pairs(own, other, total, joint, below_usd)
            own, other = (ways[joint] for ways in most)
            total = own.usd[:, None] * other.stretch + own.stretch[:, None] * other.usd
            about += self._pairs(own, other, total, joint, np.inf)
        return sorted(bounds, key=_by_usd), sorted(about, key=_by_usd)

    def _pairs(self, a: Ways, b: Ways, total: FloatArray, joint: int, below_usd: float) -> list[Pair]:
        """Pairs in one region below an amount; `joint`: only those that ask for an offer together."""
        shares = self._shared(a, b)
        total = np.where((a.region[:, None] == b.region) & (shares == bool(joint)), total, np.inf)
        rows, columns = np.nonzero(total < below_usd)
        if not np.isfinite(below_usd) and len(rows) > _MOST_ABOUT:
            kept = np.argpartition(total[rows, columns], _MOST_ABOUT)[:_MOST_ABOUT]
            rows, columns = rows[kept], columns[kept]
        return [
            Pair(usd, (a.offers[i], b.offers[j]))
            for i, j, usd in zip(rows.tolist(), columns.tolist(), total[rows, columns].tolist(), strict=True)
        ]

    def _shared(self, a: Ways, b: Ways) -> BoolArray:
        """Whether ways of both pools ask for an offer that is then later, shape `(n, m)`; each asks for one at most."""
        starts, firm = self.sides[0].found.context.starts, a.firm[:, None]
        later = (firm >= 0) & starts.has_spread(np.maximum(firm, 0))
        return np.asarray((firm == b.firm) & later, dtype=np.bool_)

    def share_offers(self, ways: tuple[Offers, Offers]) -> bool:
        """Whether both pools buy an offer that is not spot: they then wait for it as if asked for together."""
        return any(not self._is_spot[row] for row in set(ways[0]) & set(ways[1]))

    def _ask(self, number: int, work: Work, by: By, below_usd: float) -> Ask:
        most = (below_usd - work.least_usd[1 - number]) / self._share(number, work)
        return Ask(work.sizes[number], work.step_s, by, most)

    def _share(self, number: int, work: Work) -> float:
        """Least over greatest expected price of any of a pool's spot offers, in runs of the work to the deadline."""
        # of works within a fifth of each other the shortest, for fewer to work out
        octave = int(np.floor(np.log2(work.hours) * 4.0))
        key = (number, work.sizes[number][0], octave)
        if key not in self._shares:
            self._shares[key] = self._price_share(number, work.sizes[number], 2.0 ** (octave / 4.0))
        return self._shares[key]

    def _price_share(self, number: int, size: Size, hours: float) -> float:
        side = self.sides[number]
        market, rows = side.found.context.market, offers_of(side, size)
        rows = rows[market.is_spot[rows] & (side.found.offer_bits[rows] == 0)]
        if not len(rows):
            return _ROUNDING
        ends = (hours, max(hours, self.deadline_hours))
        lengths = np.unique(np.clip((*RUN_HOURS, *ends), *ends))
        prices = np.stack([market.offer_set.usd_during(rows, np.full(len(rows), one)) for one in lengths])
        return float((prices.min(axis=0) / prices.max(axis=0)).min()) * _ROUNDING


def _meet(ways: list[list[Ways]]) -> bool:
    """Whether some ways of both pools are in one region."""
    return any(len(np.intersect1d(a.region, b.region)) for a, b in zip(*ways, strict=True))


def _by_usd(pair: Pair) -> float:
    return pair.usd


def _more(ways: Ways, hours: FloatArray) -> FloatArray:
    """USD at least of the hours that each way of a pool works longer beside each of the other, shape `(n, m)`."""
    paid = np.maximum(hours[None, :] - ways.spare_hours[:, None], 0.0)
    # an hour of a term or block costs nothing; beside what is late there is none
    return np.where(
        np.isfinite(paid), ways.hourly_usd[:, None] * np.where(np.isfinite(paid), paid, 0.0), np.inf
    )
