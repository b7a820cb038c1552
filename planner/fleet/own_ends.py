"""Workers on commitments of the user that end, in several lengths: what they pay after it is no line of their hours.

A worker works h hours in the mean and is done, in the mean, before the end. What slower runs pay after it
(`planner.market.ends`) is G(h), which is convex with G(0) = 0, so G(h) / h rises. A worker that works between l and u
hours costs at least v h more, v = G(l) / l, and at most G(u) / u h more. A worker of each length u is an option that
shares the commitment's machines: with the first prices the solver proves a bound for all fleets, with the second
(`planner.fleet.moving_price`) it finds one, which is billed by the hours of its workers. As G is convex, workers of one
commitment cost least if they share their work evenly. Where runs are whole and few, each number of them is a length,
and the first prices are those billed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.fleet.workers import Workers

if TYPE_CHECKING:
    from catalogs.tables.table import Floats
    from planner.fleet.mix import Mix
    from planner.market.model import Market


LENGTHS = 40  # of the hours of one worker
_RATIO = 0.9  # of what an hour costs after the end, from one length to the next shorter one
_POINTS = 400  # hours at which that is worked out
_HAIR = 1e-6  # of a run


def in_lengths(workers: Workers, market: Market, work: float) -> Workers:
    """Workers on what ends in several lengths, each at the least that its hours cost; none does more than `work`."""
    ends = np.isfinite(workers.left_hours)
    if not ends.any():
        return workers
    parts = [_lengths(workers.take(np.asarray([at])), market, work) for at in np.flatnonzero(ends).tolist()]
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
    points = np.linspace(0.0, most, _POINTS + 1)[1:]
    rate = after_rate(one.take(np.zeros(_POINTS, dtype=np.int64)), market, points)
    high = np.interp(rate[-1] * _RATIO ** np.arange(LENGTHS)[::-1], rate, points)
    high[-1] = most
    if np.isfinite(runs):
        each = float(one.hours_limit[0]) / runs
        last = int(np.floor(most / each + _HAIR))
        number = np.unique(np.ceil(high / each - _HAIR)) if last > LENGTHS else np.arange(1.0, last + 1)
        low, high, limit = (np.append(0, number[:-1]) + 1) * each, number * each, number
    else:
        high = np.unique(high)
        low, limit = np.append(0.0, high[:-1]), np.full(len(high), np.inf)
    out = replace(
        one.take(np.zeros(len(high), dtype=np.int64)), hours_limit=high, best_hours=high, runs_limit=limit
    )
    return replace(out, usd_per_hour=out.usd_per_hour + after_rate(out, market, low))


def evenly(mix: Mix, workers: Workers, units: float) -> Mix:
    """The mix whose workers of one commitment that ends share their work evenly, as one line: it costs no more.

    Args:
        mix: as the model divides the work.
        workers: all that were asked about; a line is one of them that has the hours of its workers.
        units: tokens or samples of one run, 0 where work divides freely.
    """
    ending = np.flatnonzero(np.isfinite(mix.workers.left_hours))
    number, count, hours = mix.numbers.copy(), mix.count.copy(), mix.hours.copy()
    left = np.ones(len(number), dtype=np.bool_)
    for at in dict.fromkeys(mix.workers.at[ending].tolist()):
        lines = ending[mix.workers.at[ending] == at]
        first, together = lines[0], int(count[lines].sum())
        each = float(count[lines] @ hours[lines]) / together
        need = each
        if units:
            of_run = units / float(mix.workers.units_per_hour[first])
            need = np.ceil(each / of_run - _HAIR) * of_run
        ways = np.flatnonzero((workers.at == at) & (workers.hours_limit >= need * (1.0 - _HAIR)))
        if len(lines) > 1 and len(ways):
            number[first] = ways[np.argmin(workers.hours_limit[ways])]
            count[first], hours[first], left[lines[1:]] = together, each, False
    order = np.flatnonzero(left)[np.argsort(number[left], kind="stable")]
    return replace(
        mix,
        numbers=number[order],
        workers=workers.take(number[order]),
        count=count[order],
        hours=hours[order],
    )
