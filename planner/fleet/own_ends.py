"""Workers on commitments of the user that end: in several lengths, for what they cost after the end is no straight line.

A worker works h hours in the mean and is done, in the mean, before the end. What slower runs pay after it
(`planner.market.ends`) is G(h), with G(0) = 0 and G(h) / h rising. So a worker that works between l and u hours costs
at least v h more, v = G(l) / l, and at most G(u) / u h more. A worker of each length u is an option that shares the
commitment's machines: with the first prices the solver proves a bound for all fleets, with the second
(`planner.fleet.moving_price`) it finds one, which is billed by the hours of its workers. Where runs are whole and few,
each number of them is a length, and the first prices are those billed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.fleet.workers import Workers

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.market.model import Market


LENGTHS = 16  # of the hours of one worker, closest together where they are long and the cost is steepest
_HAIR = 1e-6  # of a run


def in_lengths(workers: Workers, market: Market, work: float) -> Workers:
    """Workers on what ends in several lengths, each at the least that its hours cost; no worker does more than `work`."""
    ends = np.isfinite(workers.left_hours)
    if not ends.any():
        return workers
    parts = [_lengths(workers.take(at[None]), market, work) for at in np.flatnonzero(ends)]
    return Workers.joined([workers.take(np.flatnonzero(~ends)), *parts])


def after_rate(workers: Workers, market: Market, hours: Floats) -> Floats:
    """What each of `hours` of work costs in the mean after the end of what the user pays, USD per hour of a worker."""
    if np.isinf(workers.left_hours).all():
        return np.zeros(len(hours))
    more = market.costs.after_usd(workers.rows, workers.after_hours(hours), workers.lead_hours + hours)
    return np.divide(more, hours, out=np.zeros(len(hours)), where=more > 0)


def _lengths(one: Workers, market: Market, work: float) -> Workers:
    """One worker in all its lengths."""
    most, runs = float(min(one.hours_limit[0], work / one.units_per_hour[0])), float(one.runs_limit[0])
    if np.isfinite(runs):
        each = float(one.hours_limit[0]) / runs
        number = _spread(int(np.floor(most / each + _HAIR)))
        low, high, limit = (np.append(0, number[:-1]) + 1) * each, number * each, number.astype(np.float64)
    else:
        share = 1.0 - (1.0 - np.arange(LENGTHS + 1) / LENGTHS) ** 2
        low, high, limit = share[:-1] * most, share[1:] * most, np.full(LENGTHS, np.inf)
    out = replace(
        one.take(np.zeros(len(high), dtype=np.int64)), hours_limit=high, best_hours=high, runs_limit=limit
    )
    return replace(out, usd_per_hour=out.usd_per_hour + after_rate(out, market, low))


def _spread(most: int) -> Ints:
    """Whole numbers from 1 to `most`, all where they are few."""
    share = 1.0 - (1.0 - np.arange(1, LENGTHS + 1) / LENGTHS) ** 2
    number = np.arange(1, most + 1) if most <= LENGTHS else np.rint(share * most)
    return np.flatnonzero(np.bincount(number.astype(np.int64))[1:]) + 1
