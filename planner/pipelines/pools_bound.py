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

Rooms are looked at in parts, at first from none (s = 1) to all of it (docs/optimisation/pools.md).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from planner.pipelines.pools_asked import Ask, Asked
from planner.pipelines.pools_prices import RunPrices
from planner.pipelines.pools_together import Together
from planner.pipelines.pools_ways import By, offers_of
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Bools, Floats
    from planner.pipelines.pools_asked import Ways
    from planner.pipelines.pools_side import Side
    from planner.pipelines.pools_ways import Offers, Size


_ROUNDING = 1.0 - 1e-6
_BOTH = (0, 1)
# ends of parts of all the room: over it, and shorter ones over the work; parts of such a part
_FIRST, _ROOMS, _PARTS = (0.5, 0.75, 0.9), 4.0 ** np.arange(-1, 6), 3
_SMALL = 0.997  # of the greatest room is the least of parts that are not split
_OCTAVES = 4  # of a doubling: hours that are taken to be alike
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

    def ending(self, hours: float) -> Work:
        """The same work by another deadline."""
        return replace(self, deadline_hours=hours)


@record(frozen=True)
class Part:
    """Rooms of one pair of sizes: by deadlines after `from_hours` up to that of the work.

    `kept`: pairs of ways, of which another may still be cheaper; None: all.
    """

    work: Work
    from_hours: float
    kept: Sequence[Pair] | None = None

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
        kept = self.kept if pairs is None else pairs
        if self.is_small:
            return [Part(self.work, self.from_hours, kept)]
        low, high = self.from_hours - self.work.hours, self.work.deadline_hours - self.work.hours
        if low > 0:
            inner = np.geomspace(low, high, _PARTS + 1)[1:-1]
        else:
            short = _ROOMS * self.work.hours
            inner = np.append(short[short < high * _FIRST[0] / 1.2], high * np.asarray(_FIRST))
        ends = [self.from_hours, *(self.work.hours + inner).tolist(), self.work.deadline_hours]
        return [Part(self.work.ending(last), first, kept) for first, last in pairwise(ends)]


@record(frozen=True, eq=False)
class Pair:
    """Two ways beside each other: USD at least, or about, what each pool buys, and the codes of both."""

    usd: float
    ways: tuple[Offers, Offers]
    codes: tuple[int, int]


@record(frozen=True, eq=False)
class Slowed:
    """By how much ways slow the other pool: each at least; the least and the most of those that are left."""

    ways: Ways
    of_ways: Floats
    least: float
    most: float

    @property
    def low(self) -> float:
        """The least, also where none is left."""
        return min(self.least, self.most)

    def of(self, ways: Ways) -> Floats:
        """By how much each of other ways slows at least; those that are not here are late, and nothing is known."""
        return np.asarray(np.append(self.of_ways, np.inf)[self.ways.places(ways.codes)], dtype=np.float64)


class Bounds:
    """Lower bounds of pairs of pools."""

    def __init__(self, sides: tuple[Side, Side], level: float, deadline_hours: float, quotas: Floats) -> None:
        """Take the pools, the probability to keep each one's own deadline, the deadline in hours, and quotas."""
        self.together = Together(sides, quotas)
        self.sides, self.level, self.deadline_hours = sides, level, deadline_hours
        self.asked = (Asked(sides[0]), Asked(sides[1]))
        self._is_spot = sides[0].found.context.market.is_spot
        self._run_prices = RunPrices(sides[0].found.context.market.offer_set)
        self._shares: dict[tuple[int, int, int, int], float] = {}

    def in_time(self, number: int, works: Sequence[Work]) -> Bools:
        """Whether a pool is in time in any way, for each of some works; a late one is late beside any other."""
        asks = [Ask(work.sizes[number], work.step_s, work.by(self.level, 1.0), np.inf) for work in works]
        return np.asarray([len(ways.usd) > 0 for ways in self.asked[number].all(asks)], dtype=np.bool_)

    def of_parts(self, parts: Sequence[Part], below_usd: float) -> list[tuple[list[Pair], list[Pair]]]:
        """Pairs of ways of each part that may cost less than `below_usd`, the least first.

        Returns:
            Of each part: what they cost at least (what is not listed costs at least `below_usd`; without an amount only
            the first are listed), and what they cost about by the deadline of its work, of those that are in time then.
        """
        asked = self._asked_of(parts)
        ends = [self._alone(part.work, part.work.deadline_hours, below_usd) for part in parts]
        ends += [self._alone(part.work, part.from_hours, below_usd) for part in parts]
        alone = _answers(asked, ends)
        late, early = alone[: len(parts)], alone[len(parts) :]
        open_ = [n for n, ways in enumerate(late) if _meet(ways)]
        slow = [self._slowed(parts[n], late[n], early[n]) for n in open_]
        floors = _answers(
            asked, [self._within(parts[n].work, own, below_usd) for n, own in zip(open_, slow, strict=True)]
        )
        out: list[tuple[list[Pair], list[Pair]]] = [([], []) for _ in parts]
        for n, own, of_part in zip(open_, slow, floors, strict=True):
            out[n] = self._listed(parts[n], own, of_part, late[n], below_usd)
        return out

    def _asked_of(self, parts: Sequence[Part]) -> tuple[Asked, Asked]:
        """Whom to ask about some parts: of the offers of their ways alone, where these are known."""
        kept = [pair for part in parts for pair in part.kept or ()]
        if not kept or not all(part.kept for part in parts):
            return self.asked
        rows = [sorted({row for pair in kept for row in pair.ways[n]}) for n in _BOTH]
        return self.asked[0].among(np.asarray(rows[0])), self.asked[1].among(np.asarray(rows[1]))

    def _alone(self, work: Work, hours: float, below_usd: float) -> list[list[Ask]]:
        """Both pools at their own pace by their half of the room to `hours`; and as both ask for on-demand together."""
        if hours <= work.hours:
            return [[], []]
        by = work.ending(hours).by(self.level, 1.0)
        return [[self._ask(n, work, by, below_usd, beside) for beside in _besides(n, work)] for n in _BOTH]

    def _slowed(self, part: Part, most: list[list[Ways]], least: list[list[Ways]]) -> list[list[Slowed]]:
        """By how much each way of both pools slows the other in the rooms of a part."""
        work, out = part.work, []
        for number in _BOTH:
            own = []
            for joint, ways in enumerate(most[number]):
                high = ways.stretch
                # an hour less to wait wastes an hour less at most
                low = ways.wasted - (part.work.deadline_hours - part.from_hours) / 2.0 / work.hours
                if least[number]:
                    few = least[number][joint]
                    at = few.places(ways.codes)
                    low = np.maximum(low, np.append(few.wasted, -np.inf)[at])
                    high = np.maximum(high, np.append(few.stretch, 1.0)[at])
                # and changes to on-demand no less often
                low = np.maximum(low + (ways.stretch - ways.wasted), 1.0)
                if part.kept is not None:
                    kept = np.isin(ways.codes, [pair.codes[number] for pair in part.kept])
                    least_of, most_of = low[kept], high[kept]
                else:
                    least_of, most_of = low, high
                own.append(
                    Slowed(ways, low, float(least_of.min(initial=np.inf)), float(most_of.max(initial=1.0)))
                )
            out.append(own)
        return out

    def _within(self, work: Work, slow: list[list[Slowed]], below_usd: float) -> list[list[Ask]]:
        """Every way for the least of the work, with the deadline that it has beside the slowest of the other pool's."""
        out = []
        for number in _BOTH:
            own = []
            for beside, other in zip(_besides(number, work), slow[1 - number], strict=True):
                low = other.low
                by = By(_longest(work, other), self.level, work.hours * (low - 0.5))
                own.append(self._ask(number, work, by, below_usd, beside, low))
            out.append(own)
        return out

    def _listed(
        self, part: Part, slow: list[list[Slowed]], floors: list[list[Ways]], most: list[list[Ways]],
        below_usd: float,
    ) -> tuple[list[Pair], list[Pair]]:  # fmt: skip
        """The two lists of `of_parts` of one part; the second one is empty for parts of the room."""
        work, bounds, about = part.work, list[Pair](), list[Pair]()
        shares = [self._share(n, work) for n in _BOTH]
        for joint, (own, other) in enumerate(zip(*floors, strict=True)):
            least = [ways.usd.min(initial=np.inf) for ways in (own, other)]
            if least[0] * shares[0] + least[1] * shares[1] >= below_usd:
                continue
            of_joint = [slow[n][joint] for n in _BOTH]
            # ways that are late at their own pace cannot be bought
            slowed = [one.of(ways) for one, ways in zip(of_joint, (own, other), strict=True)]
            usd = [
                ways.usd * self.prices(ways, work.hours * beside.low, _longest(work, beside))
                for ways, beside in zip((own, other), of_joint[::-1], strict=True)
            ]
            total = usd[0][:, None] + usd[1]
            total = total + _more(own, (slowed[1] - of_joint[1].low) * work.hours)
            total = total + _more(other, (slowed[0] - of_joint[0].low) * work.hours).T
            bounds += self._pairs(work, (own, other), total, joint, below_usd)
        if bounds and part.is_whole:
            for joint, (own, other) in enumerate(zip(*most, strict=True)):
                total = own.usd[:, None] * other.stretch + own.stretch[:, None] * other.usd
                about += self._pairs(work, (own, other), total, joint, np.inf)
        return sorted(bounds, key=_by_usd), sorted(about, key=_by_usd)

    def _pairs(
        self, work: Work, ways: tuple[Ways, Ways], total: Floats, joint: int, below_usd: float
    ) -> list[Pair]:
        """Pairs in one region below an amount that can be had; `joint`: those that ask for an offer together."""
        a, b = ways
        fits = (a.region[:, None] == b.region) & (self._shared(a, b) == bool(joint))
        had = self.together.of_each((a.rows, b.rows), work.sizes)
        total = np.where(fits if had is None else fits & had, total, np.inf)
        rows, columns = np.nonzero(total < below_usd)
        if not np.isfinite(below_usd) and len(rows) > _MOST_ABOUT:
            kept = np.argpartition(total[rows, columns], _MOST_ABOUT)[:_MOST_ABOUT]
            rows, columns = rows[kept], columns[kept]
        return [
            Pair(usd, (a.offers(i), b.offers(j)), (int(a.codes[i]), int(b.codes[j])))
            for i, j, usd in zip(rows.tolist(), columns.tolist(), total[rows, columns].tolist(), strict=True)
        ]

    def _shared(self, a: Ways, b: Ways) -> Bools:
        """Whether ways of both pools ask for an offer that is then later, shape `(n, m)`; each asks for one at most."""
        starts, firm = self.sides[0].found.context.starts, a.firm[:, None]
        later = (firm >= 0) & starts.has_spread(np.maximum(firm, 0))
        return np.asarray((firm == b.firm) & later, dtype=np.bool_)

    def share_offers(self, ways: tuple[Offers, Offers]) -> bool:
        """Whether both pools buy an offer that is not spot: they then wait for it as if asked for together."""
        return any(not self._is_spot[row] for row in set(ways[0]) & set(ways[1]))

    def _ask(
        self, number: int, work: Work, by: By, below_usd: float, beside: int, slowed: float = 1.0
    ) -> Ask:
        most = (below_usd - work.least_usd[1 - number]) / self._share(number, work)
        return Ask(work.sizes[number], work.step_s * slowed, by, most, beside)

    def _share(self, number: int, work: Work) -> float:
        return self.share(number, work.sizes[number], work.hours, work.deadline_hours)

    def share(self, number: int, size: Size, hours: float, deadline_hours: float) -> float:
        """Least over greatest expected price of any of a pool's offers, in runs of so many hours up to a deadline."""
        # of works within a fifth of each other the shortest, and of deadlines the latest, for fewer to work out
        first, last = (np.log2(one) * _OCTAVES for one in (hours, deadline_hours))
        key = (number, size[0], int(np.floor(first)), int(np.ceil(last)))
        if key not in self._shares:
            side = self.sides[number]
            rows = offers_of(side, size)
            rows = rows[side.found.offer_bits[rows] == 0]
            ends = 2.0 ** (key[2] / _OCTAVES), 2.0 ** (key[3] / _OCTAVES)
            self._shares[key] = self._run_prices.least_share(rows, ends)
        return self._shares[key]

    def prices(self, ways: Ways, low_hours: float, high_hours: float) -> Floats:
        """Least over own expected price of each way in runs of the pair."""
        return self._run_prices.shares(ways, (low_hours, high_hours))


def _besides(number: int, work: Work) -> list[int]:
    """Machines that the other pool asks for of the same on-demand offers: none, and its own where it has the type."""
    return [0] if work.sizes[0][0] != work.sizes[1][0] else [0, work.sizes[1 - number][1]]


def _longest(work: Work, other: Slowed) -> float:
    """The latest own deadline of a pool beside ways of the other, in hours: its run is expected to end before."""
    return min(work.deadline_hours, work.hours * other.most + work.half_hours)


def _answers(asked: tuple[Asked, Asked], asks: list[list[list[Ask]]]) -> list[list[list[Ways]]]:
    """Ways of both pools of each, from one question to each pool."""
    out: list[list[list[Ways]]] = [[[], []] for _ in asks]
    for number in _BOTH:
        ways = iter(asked[number].all([ask for one in asks for ask in one[number]]))
        for one, answers in zip(asks, out, strict=True):
            answers[number] = [next(ways) for _ in one[number]]
    return out


def _meet(ways: list[list[Ways]]) -> bool:
    """Whether some ways of both pools are in one region."""
    return any(len(np.intersect1d(a.region, b.region)) for a, b in zip(*ways, strict=True))


def _by_usd(pair: Pair) -> float:
    return pair.usd


def _more(ways: Ways, hours: Floats) -> Floats:
    """USD at least of the hours that each way of a pool works longer beside each of the other, shape `(n, m)`."""
    paid = np.maximum(hours[None, :] - ways.spare_hours[:, None], 0.0)
    # an hour of a term or block costs nothing; beside what is late there is none
    return np.where(
        np.isfinite(paid), ways.hourly_usd[:, None] * np.where(np.isfinite(paid), paid, 0.0), np.inf
    )
