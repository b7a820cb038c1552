"""Pairs of two sizes and two ways priced by a deadline of theirs, many at once; and the cheapest deadline of a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.pipelines.pools_asked import Ask
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Floats
    from planner.pipelines.pools_asked import Ways
    from planner.pipelines.pools_bound import Bounds, Work
    from planner.pipelines.pools_ways import Offers

    Asked = tuple[Work, tuple[Offers, Offers]]

_BOTH = (0, 1)
_ROOMS = 2.0 ** (
    np.arange(-8, 25) / 2.0
)  # over the work: deadlines that are looked at whatever the deadline is
_FINER = 24  # rooms between the two beside the best


@record(frozen=True)
class Priced:
    """A pair of two sizes and two ways by the deadline of its work, USD."""

    usd: float
    work: Work
    ways: tuple[Offers, Offers]


class Ended:
    """What pairs of ways cost by deadlines of theirs."""

    def __init__(self, bounds: Bounds) -> None:
        """Take the pools."""
        self.bounds, self.level = bounds, bounds.level
        self._asked = list(bounds.asked)

    def at(self, asked: Sequence[Asked], below_usd: float) -> list[Priced | None]:
        """Pairs by the deadlines of their work; None where a pool is late, or costs more than `below_usd` alone."""
        if not asked:
            return []
        kept = [self.are_to_be_had(ways, work) for work, ways in asked]
        # of what these buy alone: the same ways among all others take longer
        rows = [sorted({row for _, ways in asked for row in ways[n]}) for n in _BOTH]
        self._asked = [self.bounds.asked[n].among(np.asarray(rows[n])) for n in _BOTH]
        alone = self._ways([(work, ways, (1.0, 1.0)) for work, ways in asked], below_usd)
        slow = [self._slowed(own, ways) for own, (_, ways) in zip(alone, asked, strict=True)]
        open_ = [n for n, one in enumerate(slow) if one is not None and kept[n]]
        beside = self._ways([(*asked[n], slow[n] or (1.0, 1.0)) for n in open_], below_usd)
        out: list[Priced | None] = [None] * len(asked)
        for n, own in zip(open_, beside, strict=True):
            work, ways = asked[n]
            found = self._places(own, ways)
            if None not in found:
                usd = sum(float(each.usd[at]) for each, at in zip(own, found, strict=True) if at is not None)
                out[n] = Priced(usd, work, ways)
        return out

    def _places(self, own: tuple[Ways, Ways], ways: tuple[Offers, Offers]) -> list[int | None]:
        """Where two ways are among those of both pools, None where one is late."""
        return [self.bounds.asked[n].place(own[n], ways[n]) for n in _BOTH]

    def _slowed(self, own: tuple[Ways, Ways], ways: tuple[Offers, Offers]) -> tuple[float, float] | None:
        """By how much each pool is slowed by the other; None where one is late."""
        found = self._places(own, ways)
        if found[0] is None or found[1] is None:
            return None
        return float(own[1].stretch[found[1]]), float(own[0].stretch[found[0]])

    def _ways(
        self, asked: Sequence[tuple[Work, tuple[Offers, Offers], tuple[float, float]]], below_usd: float
    ) -> list[tuple[Ways, Ways]]:
        """All ways of both pools of each, slowed by so much."""
        each: list[list[Ways]] = []
        for number in _BOTH:
            asks = [
                Ask(
                    work.sizes[number], work.step_s * slow[number], work.by(self.level, slow[number]), below_usd,
                    work.sizes[1 - number][1] if self.bounds.share_offers(ways) else 0,
                )
                for work, ways, slow in asked
            ]  # fmt: skip
            each.append(self._asked[number].all(asks))
        return list(zip(*each, strict=True))

    def are_to_be_had(self, ways: tuple[Offers, Offers], work: Work) -> bool:
        """Whether both pools keep each quota together, and find machines of the offers that both buy."""
        return self.bounds.together.can_be_had(ways, work.sizes)

    def ends(self, work: Work) -> list[Work]:
        """The same work by some deadlines up to the question's."""
        return [work.ending(work.hours + room) for room in self._rooms(work).tolist()]

    def _rooms(self, work: Work) -> Floats:
        """Rooms beside the work that are looked at first; but for the last they do not depend on the deadline."""
        rooms, last = _ROOMS * work.hours, self.bounds.deadline_hours - work.hours
        return np.append(rooms[rooms < last], last)

    def earliest(self, best: Priced) -> Priced:
        """The cheapest of the same pair by deadlines up to the question's, the earlier of those that cost the same.

        The deadlines looked at first do not depend on the question's, but for the last, so a later one leaves them.
        """
        work = best.work
        rooms = distinct_values(np.append(self._rooms(work), work.deadline_hours - work.hours))
        usd = self._by_rooms(best, rooms)
        at = int(np.argmin(usd))
        low, high = rooms[max(at - 1, 0)], rooms[min(at + 1, len(rooms) - 1)]
        between = np.exp(np.linspace(np.log(low), np.log(high), _FINER + 2))[1:-1]
        rooms, usd = np.append(rooms, between), np.append(usd, self._by_rooms(best, between))
        at = int(np.argmin(usd))
        if not usd[at] < best.usd:
            return best
        return Priced(float(usd[at]), work.ending(work.hours + float(rooms[at])), best.ways)

    def _by_rooms(self, best: Priced, rooms: Floats) -> Floats:
        """USD of a pair by deadlines that leave some rooms beside its work, infinite where it is late."""
        works = [best.work.ending(best.work.hours + room) for room in rooms.tolist()]
        # what it costs at the worst of them is not known, and its own ways are few
        priced = self.at([(work, best.ways) for work in works], 1.5 * best.usd)
        return np.asarray([np.inf if one is None else one.usd for one in priced])
