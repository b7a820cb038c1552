"""What machines of one pool come to at a pace by a deadline: asked of the engine, in every way to buy them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.engine import Engine
from planner.candidates.model import IN_TURN, SINGLE
from planner.candidates.sizes import hardware_of_offer
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.candidates.context import Context
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.wanted import Wanted
    from planner.market.model import Market
    from planner.pipelines.pools_side import Side


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


def offers_of(side: Side, size: Size) -> Ints:
    """Offers of a pool's machines."""
    return np.flatnonzero(hardware_of_offer(side.found.context.market) == size[0])


def ways_of(
    side: Side, offers: Ints, size: Size, *, paced_s: float, by: By, wanted: Wanted,
    beside: Floats | None = None,
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


def _engine(side: Side, offers: Ints, size: Size, paced_s: float, by: By, beside: Floats | None) -> Engine:
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


def open_ways(search: CandidateSearch) -> Ints:
    """Candidates that keep every limit: one offer, or offers in turn."""
    candidates = search.candidates
    return np.flatnonzero(
        (candidates.bits == 0) & ((candidates.kind == SINGLE) | (candidates.kind == IN_TURN))
    )


def each_bought(search: CandidateSearch, at: Ints) -> list[Offers]:
    """Rows of the offers that each candidate of `at` buys, in the order of its turns; they are one offer or in turn."""
    return [tuple(row for row in own if row >= 0) for own in rows_bought(search, at).tolist()]


def rows_bought(search: CandidateSearch, at: Ints) -> Ints:
    """The same as columns, -1 where there are fewer, shape `(len(at), k)`."""
    candidates = search.candidates
    turns, in_turn = candidates.turns, np.flatnonzero(candidates.kind[at] == IN_TURN)
    out = np.full((len(at), 1 if turns is None else turns.offer.shape[1]), -1, dtype=np.int64)
    out[:, 0] = candidates.offer[at]
    if turns is not None:
        out[in_turn] = turns.offer[candidates.detail[at[in_turn]]]
    return out


def asked_beside(market: Market, offers: Offers, machines: int) -> Floats:
    """Machines that a pool asks for of each of its offers that is not spot, shape `(n_offers,)`.

    Spot comes and goes as its records say, and its interruptions already slow the other pool.
    """
    out = np.zeros(market.offer_set.offers.n_rows)
    rows = np.asarray(offers)
    out[rows[~market.is_spot[rows]]] = machines
    return out


def stretch_of(search: CandidateSearch, at: Ints) -> Floats:
    """Elapsed over work hours, for interruptions, shape `(len(at),)`."""
    found = search.candidates
    return np.asarray(
        (found.hours[at] - found.waiting_hours[at] - found.fixed_hours[at]) / found.work_hours[at],
        dtype=np.float64,
    )
