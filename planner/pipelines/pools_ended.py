"""Pairs of two sizes and two ways priced by a deadline of theirs, many at once; and the cheapest deadline of a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.pipelines.pool_pairs import within
from planner.pipelines.pools_asked import Ask
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from planner.pipelines.pools_asked import OneWay
    from planner.pipelines.pools_bound import Bounds, Work
    from planner.pipelines.pools_ways import Offers

    FloatArray = npt.NDArray[np.float64]
    Asked = tuple[Work, tuple[Offers, Offers]]

_BOTH = (0, 1)
_ROOMS = 2.0 ** (
    np.arange(-8, 25) / 2.0
)  # over the work: deadlines that are looked at whatever the deadline is
_FINER, _TIMES = 8, 2  # rooms between the two beside the best, and how often they are looked at more closely


@record(frozen=True)
class Priced:
    """A pair of two sizes and two ways by the deadline of its work, USD."""

    usd: float
    work: Work
    ways: tuple[Offers, Offers]


class Ended:
    """What pairs of ways cost by deadlines of theirs."""

    def __init__(self, bounds: Bounds, quotas: FloatArray) -> None:
        """Take the pools, and the limit of each declared quota."""
        self.bounds, self.sides, self.level, self.quotas = bounds, bounds.sides, bounds.level, quotas

    def at(self, asked: Sequence[Asked], below_usd: float) -> list[Priced | None]:
        """Pairs by the deadlines of their work; None where a pool is late, or costs more than `below_usd` alone."""
        if not asked:
            return []
        kept = [self.are_to_be_had(ways, work) for work, ways in asked]
        alone = self._pools([(work, ways, (1.0, 1.0)) for work, ways in asked], below_usd)
        open_ = [n for n, own in enumerate(alone) if own is not None and kept[n]]
        slow = [(own[1].stretch, own[0].stretch) for own in (alone[n] for n in open_) if own is not None]
        beside = self._pools([(*asked[n], slower) for n, slower in zip(open_, slow, strict=True)], below_usd)
        out: list[Priced | None] = [None] * len(asked)
        for n, own in zip(open_, beside, strict=True):
            if own is not None:
                out[n] = Priced(own[0].usd + own[1].usd, *asked[n])
        return out

    def _pools(
        self, asked: Sequence[tuple[Work, tuple[Offers, Offers], tuple[float, float]]], below_usd: float
    ) -> list[tuple[OneWay, OneWay] | None]:
        """Both pools of each pair, slowed by so much; None where one is late."""
        each = []
        for number in _BOTH:
            asks = [
                (
                    Ask(
                        work.sizes[number], work.step_s * slow[number], work.by(self.level, slow[number]),
                        below_usd, work.sizes[1 - number][1] if self.bounds.share_offers(ways) else 0,
                    ),
                    ways[number],
                )
                for work, ways, slow in asked
            ]  # fmt: skip
            each.append(self.bounds.asked[number].each(asks))
        return [None if a is None or b is None else (a, b) for a, b in zip(*each, strict=True)]

    def are_to_be_had(self, ways: tuple[Offers, Offers], work: Work) -> bool:
        """Whether both pools keep each quota together, and find machines of the offers that both buy.

        What runs in turn is not in use together.
        """
        uses = [
            (side.units[list(offers)] * size[1]).max(axis=0)
            for side, offers, size in zip(self.sides, ways, work.sizes, strict=True)
        ]
        both, nodes = list(set(ways[0]) & set(ways[1])), sum(size[1] for size in work.sizes)
        held = self.sides[0].most_nodes[both]
        return bool(within(self.quotas, uses[0] + uses[1]) and (nodes <= held).all())

    def earliest(self, best: Priced) -> Priced:
        """The cheapest of the same pair by deadlines up to the question's, the earlier of those that cost the same.

        The deadlines looked at first do not depend on the question's, but for the last, so a later one leaves them.
        """
        work, last = best.work, self.bounds.deadline_hours - best.work.hours
        rooms = _ROOMS * work.hours
        rooms = np.unique([*rooms[rooms < last], last, work.deadline_hours - work.hours])
        usd = self._by_rooms(best, rooms)
        for _ in range(_TIMES):
            at = int(np.argmin(usd))
            low, high = rooms[max(at - 1, 0)], rooms[min(at + 1, len(rooms) - 1)]
            between = np.exp(np.linspace(np.log(low), np.log(high), _FINER + 2))[1:-1]
            rooms, usd = np.append(rooms, between), np.append(usd, self._by_rooms(best, between))
            order = np.argsort(rooms, kind="stable")
            rooms, usd = rooms[order], usd[order]
        at = int(np.argmin(usd))
        if not usd[at] < best.usd:
            return best
        return Priced(float(usd[at]), work.ending(work.hours + float(rooms[at])), best.ways)

    def _by_rooms(self, best: Priced, rooms: FloatArray) -> FloatArray:
        """USD of a pair by deadlines that leave some rooms beside its work, infinite where it is late."""
        works = [best.work.ending(best.work.hours + room) for room in rooms.tolist()]
        # what it costs at the worst of them is not known, and its own ways are few
        priced = self.at([(work, best.ways) for work in works], 1.5 * best.usd)
        return np.asarray([np.inf if one is None else one.usd for one in priced])
