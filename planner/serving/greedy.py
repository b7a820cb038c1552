"""A first serving fleet without a solver, and what every fleet costs at least: known however early a search must end.

Each bucket goes to the kind that serves it at the least cost. A kind beyond its limit gives away what costs least to
serve elsewhere. From the dearest machine on, each kind loses its last, partly used one where that costs less than the
part that is not used. Then kinds lose another machine, or all, as long as the fleet gets cheaper.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Floats
    from planner.serving.question import ServingInput


_WHOLE = 1e-9  # of a machine: rounding of sums
_ROUNDS = 4  # of looking at all kinds again
# What each machine counts beside its price, times the dearest: with a limit of nodes, few large ones are worth more.
_DEARER = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)


@record(frozen=True, eq=False)
class FirstFleet:
    """Machines of each kind, shape `(n_kinds,)`, shares, shape `(n_kinds, n_buckets)`, and what they cost an hour."""

    counts: Floats
    shares: Floats
    usd_per_hour: float


def least_usd_per_hour(question: ServingInput) -> float:
    """What no fleet costs less than: each bucket at its least cost, parts of machines counted as such.

    It is the linear relaxation without limits, a little lower for rounding.
    """
    cost = _usd(question.machines, question.usd_per_hour)
    return float(cost.min(axis=0).sum()) * (1.0 - 1e-12)


def first_fleet(question: ServingInput) -> FirstFleet | None:
    """A fleet within all limits; None where this does not find one, which proves nothing."""
    dearest = float(question.usd_per_hour.max(initial=0.0)) or 1.0
    for more in _DEARER if math.isfinite(question.max_nodes) else _DEARER[:1]:
        price = question.usd_per_hour + more * dearest
        room = _whole(question, price)
        fleets = [_fleet(question, price, most) for most in (room, question.limit)]
        known = [fleet for fleet in fleets if fleet is not None]
        if known:
            return _improved(question, price, min(known, key=lambda fleet: fleet.usd_per_hour))
    return None


def _whole(question: ServingInput, price: Floats) -> Floats:
    """Most machines of each kind, shape `(n_kinds,)`: its load rounded down where the rest is cheaper elsewhere."""
    needed, room = np.where(np.isfinite(question.machines), question.machines, 0.0), question.limit.copy()
    shares = _shares(question.machines, price, room)
    for kind in np.argsort(-price, kind="stable").tolist():
        if shares is None:
            break
        load = (shares * needed).sum(axis=1)
        down, up = math.floor(load[kind] + _WHOLE), math.ceil(load[kind] - _WHOLE)
        before, room[kind] = room[kind], down
        fewer = _shares(question.machines, price, room) if down < up else shares
        less = np.inf if fewer is None else float(price @ ((fewer * needed).sum(axis=1) - load))
        if less <= price[kind] * (up - load[kind]) + _WHOLE:
            shares = fewer
        else:
            room[kind] = min(before, up)
    return room


def _improved(question: ServingInput, price: Floats, best: FirstFleet) -> FirstFleet:
    """The same with fewer machines of single kinds, as long as that is cheaper."""
    room = question.limit.copy()
    for _ in range(_ROUNDS):
        before = best.usd_per_hour
        for kind in np.flatnonzero(best.counts).tolist():
            for count in {0.0, float(best.counts[kind]) - 1.0}:
                less = room.copy()
                less[kind] = count
                fleet = _fleet(question, price, less)
                if fleet is not None and fleet.usd_per_hour < best.usd_per_hour:
                    best, room = fleet, less
        if best.usd_per_hour >= before:
            break
    return best


def _fleet(question: ServingInput, price: Floats, room: Floats) -> FirstFleet | None:
    """Each bucket where it costs least at these prices, with at most `room` machines of each kind."""
    shares = _shares(question.machines, price, room)
    if shares is None:
        return None
    load = (shares * np.where(shares > 0, question.machines, 0.0)).sum(axis=1)
    counts = np.ceil(load - _WHOLE)
    if counts.sum() > question.max_nodes or (counts > question.limit).any():
        return None
    return FirstFleet(counts, shares, float(counts @ question.usd_per_hour))


def _shares(needed: Floats, price: Floats, room: Floats) -> Floats | None:
    """Shares of the buckets by kind, shape `(n_kinds, n_buckets)`; None where a kind finds nobody for what is too much.

    A kind that gave something away is full: nothing is given to it later.
    """
    buckets = np.arange(needed.shape[1])
    finite, usd = np.where(np.isfinite(needed), needed, 0.0), _usd(needed, price)
    shares = np.zeros(needed.shape)
    shares[usd.argmin(axis=0), buckets] = 1.0
    full = np.zeros(len(needed), dtype=np.bool_)
    for _ in range(len(needed)):
        load = (shares * finite).sum(axis=1)
        over = np.where(full, 0.0, load - room)
        kind = int(over.argmax())
        if over[kind] <= _WHOLE:
            break
        full[kind] = True
        elsewhere = np.where(full[:, None], np.inf, usd)
        to, own = elsewhere.argmin(axis=0), shares[kind] * finite[kind]
        own_usd, per = np.where(own > 0, usd[kind], 0.0), np.where(own > 0, finite[kind], 1.0)
        more = np.where(own > 0, (elsewhere.min(axis=0) - own_usd) / per, np.inf)
        order = np.argsort(more, kind="stable")
        before = np.cumsum(own[order]) - own[order]
        given = np.clip(over[kind] - before, 0.0, own[order])
        order, given = order[given > 0], given[given > 0]
        if not np.isfinite(more[order]).all() or given.sum() < over[kind] - _WHOLE:
            return None
        part = given / finite[kind, order]
        shares[kind, order] -= part
        shares[to[order], order] += part
    return np.clip(shares, 0.0, 1.0)


def _usd(needed: Floats, price: Floats) -> Floats:
    """What the whole of each bucket costs with each kind, infinity where it cannot, shape `(n_kinds, n_buckets)`."""
    can = np.isfinite(needed)
    return np.where(can, price[:, None] * np.where(can, needed, 0.0), np.inf)
