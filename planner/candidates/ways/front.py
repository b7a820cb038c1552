"""Spot with a fall-back on the cost/time frontier.

What it costs depends on the deadline, so it is asked deadline by deadline.
Asked are the deadlines of all other points of the frontier, and some between and before them in equal steps of the
logarithm. At each of them the answer is the one that `planner optimize` gives; between two of them it is not better
than at the later and not worse than at the earlier.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.candidates.ways.build import (
    append_turns,
    judged_turns,
    on_demand_partners,
    set_cells,
    single_cells,
)
from planner.candidates.ways.build import spot_candidates as candidates_on_spot
from planner.spot.distribution import SpotPool

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.context import Context
    from planner.candidates.grid import Candidates, Turns

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

_BETWEEN = 16
Found = tuple[dict[str, Any], "Turns"]


def add_turn_points(
    context: Context, made: Candidates, offer_bits: IntArray, front: IntArray, times: FloatArray
) -> tuple[Candidates, FloatArray]:
    """Append the best way to run in turn of each deadline, where it is cheaper than what the front has by then.

    Args:
        context: the run without deadline and budget.
        made: all other candidates.
        offer_bits: filter bits per offer.
        front: positions on the frontier so far.
        times: hours they are kept from, rising.

    Returns:
        The candidates with the ways found behind them, and the deadline of each way, hours.
    """
    partner = on_demand_partners(context, offer_bits)
    elsewhere = on_demand_partners(context, offer_bits, anywhere=True)
    if context.workload.spot.fallback == "none":
        partner, elsewhere = np.full_like(partner, -1), np.full_like(partner, -1)
    at = candidates_on_spot(context, made)
    if not len(at) or not len(times):
        return made, np.zeros(0)
    found: list[Found] = []
    asked: list[float] = []
    for deadline in _deadlines(made, at, times).tolist():
        known = made.cost_usd[front[times <= deadline]]
        best = float(known.min()) if len(known) else np.inf
        way = _best_way(context, made, at, (partner, elsewhere), deadline, best)
        if way is not None:
            found.append(way)
            asked.append(deadline)
    return (append_turns(made, found) if found else made), np.asarray(asked)


def _deadlines(made: Candidates, at: IntArray, times: FloatArray) -> FloatArray:
    """Hours at which the question is asked."""
    work = made.waiting_hours[at] + made.fixed_hours[at] + made.work_hours[at]
    first, last = min(float(work.min()), float(times[0])), float(times[-1])
    between = np.exp(np.linspace(np.log(first), np.log(max(last, first * 1.001)), _BETWEEN))
    return np.sort(np.asarray(list(dict.fromkeys([*times.tolist(), *between.tolist()]))))


def _best_way(
    context: Context,
    made: Candidates,
    at: IntArray,
    partners: tuple[IntArray, ...],
    deadline: float,
    best: float,
) -> Found | None:
    """The cheapest way to run in turn by a deadline if it is cheaper than `best`."""
    soon = made.waiting_hours[at] + made.fixed_hours[at] + made.work_hours[at] <= deadline
    floor = made.nodes[at] * context.offer_set.usd_per_hour[made.offer[at]] * made.work_hours[at]
    in_time, at = at[soon], at[soon & (floor < best)]
    if not len(at):
        return None
    single = None
    for partner in partners:
        cells = single_cells(context, at, made, partner)
        single = _cheapest(judged_turns(context, made, cells, deadline), best) or single
        if single is not None:
            best = float(single[0]["cost_usd"][0])
    if context.workload.spot.zones != "any":
        return single
    sets = judged_turns(context, made, set_cells(context, made, in_time, partners[0], best), deadline)
    return _cheapest(sets, best) or single


def _cheapest(found: Found | None, best: float) -> Found | None:
    if found is None:
        return None
    columns, turns = found
    cost = np.where(columns["bits"] == 0, columns["cost_usd"], np.inf)
    one = np.asarray([int(np.argmin(cost))])
    if not cost[one[0]] < best:
        return None
    names = (f.name for f in fields(turns) if f.name not in ("first", "pool"))
    own = {name: getattr(turns, name)[one] for name in names}
    pool = SpotPool(**{f.name: getattr(turns.pool, f.name)[one] for f in fields(SpotPool)})
    return {name: column[one] for name, column in columns.items()}, replace(turns, pool=pool, **own)
