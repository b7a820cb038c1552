"""Spot prices that move while a worker of a fleet is there: what its hours cost at least, and its best hours.

A worker that works h hours is charged at the price to expect in the middle of its run of lead + h hours
(`planner.market.price_path`), which is straight between a few lengths. Its cost is then a parabola of h on each piece:

    C(h) = F + V h + D(lead + h) (fixed + ratio h)       F, V: at the price of the start; D: what the price has moved

The model of a fleet knows costs A + v h. It gets the greatest that lie nowhere above C: where C(h) / h is least at the
longest time H, the line through C(H) with the largest A; else A = 0 and v = min C(h) / h, at the hours that are best.
Workers of a line share its work evenly, so x workers with B hours in all cost x C(B / x) >= A x + v B: what the solver
proves of the lines is a bound for the fleet at its prices.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.fleet.own_ends import after_rate, in_lengths
from planner.fleet.workers import Workers, in_whole_runs
from planner.market.price_path import RUN_HOURS

if TYPE_CHECKING:
    from catalogs.tables.table import Floats
    from planner.fleet.question import FleetInput
    from planner.market.model import Market


_ROUNDING = 1e-12  # relative, towards a lower cost
_SAME = 1e-9  # of the hours


def at_least(workers: Workers, market: Market, work: float) -> Workers:
    """Workers whose cost in the model is the least that their hours can have; no worker does more than `work`."""
    workers, path = in_lengths(workers, market, work), market.offer_set.book.path
    if path is None:
        return workers
    moving = np.flatnonzero(path.place[workers.rows] >= 0)
    if not len(moving):
        return workers
    mine = workers.take(moving)
    longest = np.minimum(mine.hours_limit, work / mine.units_per_hour)
    curve = _Curve(mine, market, longest)
    best, rate = curve.cheapest()
    fixed, rate = _lines(curve, best, rate)
    fixed_usd, usd_per_hour, best_hours = (
        x.copy() for x in (workers.fixed_usd, workers.usd_per_hour, workers.best_hours)
    )
    fixed_usd[moving], usd_per_hour[moving] = fixed, rate
    best_hours[moving] = np.where(best < longest * (1.0 - _SAME), best, mine.hours_limit)
    return replace(workers, fixed_usd=fixed_usd, usd_per_hour=usd_per_hour, best_hours=best_hours)


def at_full_hours(workers: Workers, market: Market, run_units: float = 0.0) -> Workers:
    """Workers at the price of a run of all their hours; behind them, those that stop after their best (whole) runs."""
    sooner = np.flatnonzero(workers.best_hours < workers.hours_limit * (1.0 - _SAME))
    short = workers.take(sooner)
    short = in_whole_runs(replace(short, hours_limit=short.best_hours), run_units)
    short = short.take(np.flatnonzero(short.hours_limit > 0))
    parts = [
        _charged(one, market, _moved(one, market, one.lead_hours + one.hours_limit))
        for one in (workers, short)
    ]
    return Workers.joined(parts)


def at_most(workers: Workers, market: Market) -> Workers:
    """Workers at the dearest price that a run of up to all their hours can have."""
    ends = workers.lead_hours + workers.hours_limit
    runs = [np.clip(hours, workers.lead_hours, ends) for hours in (0.0, *RUN_HOURS, np.inf)]
    moved = np.max([_moved(workers, market, run) for run in runs], axis=0)
    return _charged(workers, market, moved)


def at_their_dearest(question: FleetInput, whole: FleetInput) -> FleetInput:
    """The question with costs as in `whole`, its prices the dearest and data kept to the end: its budget is enough."""
    dear = dict(zip(whole.region_names, whole.region_cost_usd.tolist(), strict=True))
    costs = np.asarray([dear[name] for name in question.region_names], dtype=np.float64)
    question = replace(question, region_cost_usd=np.maximum(question.region_cost_usd, costs))
    if question.keys != whole.keys:  # asked again at the prices of full hours
        return question
    return replace(question, cost_usd=whole.cost_usd, fixed_cost_usd=whole.fixed_cost_usd)


def _moved(workers: Workers, market: Market, run_hours: Floats) -> Floats:
    """What the price of a worker's hour is above that of the start, in the middle of a run."""
    offers, rows = market.offer_set, workers.rows
    return (offers.usd_during(rows, run_hours) - offers.usd_per_hour[rows]) * workers.nodes


def _charged(workers: Workers, market: Market, moved: Floats) -> Workers:
    """Workers at a price, and with what all their hours cost after the end of what the user pays: fewer cost less."""
    hourly = workers.start_usd_per_hour + moved * workers.paid_ratio
    return replace(
        workers,
        fixed_usd=workers.start_fixed_usd + moved * workers.fixed_hours,
        usd_per_hour=hourly + after_rate(workers, market, workers.hours_limit),
    )


class _Curve:
    """Costs of workers as parabolas a + b h + c h^2 of their hours h on pieces, arrays of shape `(n_pieces, n)`."""

    def __init__(self, workers: Workers, market: Market, longest: Floats) -> None:
        """Take workers whose price moves, and the hours that each may work."""
        lead, fixed, ratio = workers.lead_hours, workers.fixed_hours, workers.paid_ratio
        self.longest = longest
        ends = [np.clip(hours - lead, 0.0, longest) for hours in (0.0, *RUN_HOURS, np.inf)]
        moved = np.stack([_moved(workers, market, lead + at) for at in ends])
        hours = np.stack(ends)
        self.low, self.high = hours[:-1], hours[1:]
        width = self.high - self.low
        steps = np.diff(moved, axis=0)
        slope = np.divide(steps, width, out=np.zeros_like(steps), where=width > _SAME * longest)
        level = moved[:-1] - slope * self.low
        self.a = workers.start_fixed_usd + level * fixed
        self.b = workers.start_usd_per_hour + level * ratio + slope * fixed
        self.c = slope * ratio
        self.at_start = workers.start_fixed_usd + moved[0] * fixed
        self.at_longest = workers.start_fixed_usd + workers.start_usd_per_hour * longest
        self.at_longest = self.at_longest + moved[-1] * (fixed + ratio * longest)

    def cheapest(self) -> tuple[Floats, Floats]:
        """Hours at which an hour costs least, the longest of equals, and that cost."""
        inside = np.clip(_root(self.a, self.c), self.low, self.high)
        hours = np.concatenate([self.high[::-1], self.low[::-1], inside])
        safe = np.maximum(hours, _SAME * self.longest)
        a, b, c = (
            np.concatenate([x[::-1], x[::-1], x])
            for x in (self.a, self.b, self.c)
        )  # fmt: skip
        usd = np.where(hours > 0, a / safe + b + c * safe, np.inf)
        usd[0] = self.at_longest / self.longest
        at, columns = usd.argmin(axis=0), np.arange(len(self.longest))
        return hours[at, columns], usd[at, columns]

    def fixed_below(self) -> Floats:
        """Largest A such that A + v h is nowhere above the cost and meets it at the longest hours."""
        most, rate = self.longest, self.at_longest / self.longest
        last = self.high >= most
        nearest, farthest = most - self.high, most - self.low  # from the longest hours
        zeroth = np.where(last, 0.0, self.a + self.b * most + self.c * most**2 - self.at_longest)
        first = -(self.b - rate) - 2.0 * self.c * most
        inside = np.clip(_root(zeroth, self.c), nearest, farthest)
        found = []
        for gap in (nearest, farthest, inside):
            over = np.divide(zeroth, gap, out=np.zeros_like(zeroth), where=gap > 0)
            found.append(np.where(self.high > self.low, most * (over + first + self.c * gap), np.inf))
        return np.asarray(np.concatenate(found).min(axis=0), dtype=np.float64)


def _root(top: Floats, bottom: Floats) -> Floats:
    """Where top / x + bottom x is least, 0 where that is at an end."""
    own = (top > 0) & (bottom > 0)
    return np.where(own, np.sqrt(np.where(own, top, 0.0) / np.where(own, bottom, 1.0)), 0.0)


def _lines(curve: _Curve, best: Floats, rate: Floats) -> tuple[Floats, Floats]:
    """Fixed cost and cost per hour of the greatest line below each curve."""
    most = np.minimum(curve.at_start, curve.at_longest)
    fixed = np.clip(curve.fixed_below() * (1.0 - _ROUNDING), 0.0, np.maximum(most, 0.0))
    whole = best >= curve.longest * (1.0 - _SAME)
    fixed = np.where(whole, fixed, 0.0)
    through = np.where(whole, (curve.at_longest - fixed) / curve.longest, rate)
    return fixed, through * (1.0 - _ROUNDING)
