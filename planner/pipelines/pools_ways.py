"""What machines of one pool come to at a pace by a deadline: asked of the engine, in every way to buy them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.rows import distinct_rows
from planner.candidates.engine import Engine
from planner.candidates.model import IN_TURN, SINGLE
from planner.candidates.sizes import hardware_of_offer
from planner.records import record

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.context import Context
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.wanted import Wanted
    from planner.market.model import Market
    from planner.pipelines.pools_side import Side

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

Size = tuple[int, int]  # of a pool: row of its hardware, and number of machines
Offers = tuple[int, ...]  # rows of what is bought, in the order of its turns


@record(frozen=True)
class By:
    """A pool's own deadline.

    Attributes:
        hours: from the start, for work as fast as predicted.
        level: probability to keep it.
        later_hours: work that takes x times as long as predicted has (x - 1) times so many hours more.
    """

    hours: float
    level: float
    later_hours: float


ELSEWHERE = -1  # bits of offers that are left out
_ENGINES = 8  # kept of each pool, the last ones


def offers_of(side: Side, size: Size) -> IntArray:
    """Offers of a pool's machines."""
    return np.flatnonzero(hardware_of_offer(side.found.context.market) == size[0])


def ways_of(
    side: Side, offers: IntArray, size: Size, *, paced_s: float, by: By, wanted: Wanted,
    beside: FloatArray | None = None,
) -> CandidateSearch:  # fmt: skip
    """What some offers come to.

    Args:
        side: the pool.
        offers: that may be bought, of the machines of `size`.
        size: the machines, and how many.
        paced_s: the least time of a step, s.
        by: the pool's own deadline.
        wanted: what is needed of the ways; they are compared by cost, whatever the workload prefers.
        beside: machines of each offer that the other pool asks for, None: of none.
    """
    # asked at several deadlines, mostly one after another
    more = None if beside is None else beside.tobytes()
    key = (size, paced_s, by.level, by.later_hours, offers.tobytes(), more)
    if key not in side.engines:
        while len(side.engines) >= _ENGINES:
            del side.engines[next(iter(side.engines))]
        side.engines[key] = _engine(side, offers, size, paced_s, by, beside)
    return side.engines[key].at_hours(by.hours, wanted)


def _engine(
    side: Side, offers: IntArray, size: Size, paced_s: float, by: By, beside: FloatArray | None
) -> Engine:
    context = at_level(side, by.level)
    context = replace(context, beside=beside, later_hours=by.later_hours)
    bits = np.full_like(side.found.offer_bits, ELSEWHERE)
    bits[offers] = side.found.offer_bits[offers]
    return Engine(
        context, sizes=[size[1]], shapes=side.shapes_at([size], [paced_s]), offer_bits=bits, admitted_only=True,
    )  # fmt: skip


def at_level(side: Side, level: float) -> Context:
    """The run of a pool whose deadline is kept with a probability, compared by cost whatever the workload prefers."""
    context = side.run
    workload = context.asked.workload
    limits = workload.constraints.model_copy(update={"deadline_confidence": level})
    wishes = workload.preferences.model_copy(update={"objective": "cost"})
    workload = workload.model_copy(update={"constraints": limits, "preferences": wishes})
    return context.with_asked(replace(context.asked, workload=workload))


def open_ways(search: CandidateSearch) -> IntArray:
    """Candidates that keep every limit: one offer, or offers in turn."""
    candidates = search.candidates
    return np.flatnonzero(
        (candidates.bits == 0) & ((candidates.kind == SINGLE) | (candidates.kind == IN_TURN))
    )


def bought(search: CandidateSearch, at: int) -> Offers:
    """Rows of the offers that a candidate buys, in the order of its turns."""
    return each_bought(search, np.asarray([at]))[0]


def each_bought(search: CandidateSearch, at: IntArray) -> list[Offers]:
    """The same of each of `at`, which are one offer or offers in turn."""
    ways, way_of = ways_bought(search, at)
    return [ways[way] for way in way_of.tolist()]


def ways_bought(search: CandidateSearch, at: IntArray) -> tuple[list[Offers], IntArray]:
    """What candidates `at` buy, each way once, and which of these each is, shape `(len(at),)`."""
    candidates = search.candidates
    single = candidates.kind[at] == SINGLE
    if candidates.turns is None:
        rows = candidates.offer[at][:, None]
    else:
        rows = np.full((len(at), candidates.turns.offer.shape[1]), -1, dtype=np.int64)
        rows[single, 0] = candidates.offer[at[single]]
        rows[~single] = candidates.turns.offer[candidates.detail[at[~single]]]
    first, way_of = distinct_rows(*rows.T)
    return [tuple(row for row in own if row >= 0) for own in rows[first].tolist()], way_of


def asked_beside(market: Market, offers: Offers, machines: int) -> FloatArray:
    """Machines that a pool asks for of each of its offers that is not spot, shape `(n_offers,)`.

    Spot comes and goes as its records say, and its interruptions already slow the other pool.
    """
    out = np.zeros(market.offer_set.offers.n_rows)
    rows = np.asarray(offers)
    out[rows[~market.is_spot[rows]]] = machines
    return out


def stretch_of(search: CandidateSearch, at: IntArray) -> FloatArray:
    """Elapsed over work hours, for interruptions, shape `(len(at),)`."""
    found = search.candidates
    return np.asarray(
        (found.hours[at] - found.waiting_hours[at] - found.fixed_hours[at]) / found.work_hours[at],
        dtype=np.float64,
    )
