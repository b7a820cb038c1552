"""From days and amounts as they come to a series without gaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.errors import InputError
from planner.records import record

Floats = NDArray[np.float64]
Days = NDArray[np.datetime64]
MIN_DAYS = 7
_NEIGHBOUR_WEEKS = 2


@record(frozen=True, eq=False)
class Series:
    """A series without gaps.

    Attributes:
        days: (n,) datetime64[D], one after the other.
        cost: (n,).
        filled: how many days were absent and are filled in.
    """

    days: Days
    cost: Floats
    filled: int


def regular_series(days: ArrayLike, cost: ArrayLike) -> Series:
    """Sort, check and fill.

    Days before the first cost are cut off: the service did not run yet. An absent day is unknown, not 0: it becomes the
    median of the same weekday in the weeks around it, or of all days.

    Raises:
        InputError: unequal lengths, a day twice, a number that is none, fewer than 7 days.
    """
    when = np.asarray(days, dtype="datetime64[D]").ravel()
    amount = np.asarray(cost, dtype=float).ravel()
    if len(when) != len(amount):
        raise InputError(f"forecast: {len(when)} days but {len(amount)} costs; give one cost per day")
    if np.isnat(when).any() or not np.isfinite(amount).all():
        raise InputError("forecast: a day or a cost is no number; leave such days out")
    order = np.argsort(when, kind="stable")
    when, amount = when[order], amount[order]
    if (twice := np.flatnonzero(when[1:] == when[:-1])).size:
        raise InputError(f"forecast: {when[twice[0]]} is given twice; add its costs up first")
    started = np.flatnonzero(amount)
    first = int(started[0]) if started.size else 0
    first = max(min(first, len(when) - MIN_DAYS), 0)
    when, amount = when[first:], amount[first:]
    if not len(when) or (when[-1] - when[0]).astype(int) + 1 < MIN_DAYS:
        raise InputError(f"forecast: at least {MIN_DAYS} days of cost are needed, there are {len(when)}")
    return _filled(when, amount)


def _filled(when: Days, amount: Floats) -> Series:
    at = (when - when[0]).astype(int)
    cost = np.full(at[-1] + 1, np.nan)
    cost[at] = amount
    absent = np.flatnonzero(np.isnan(cost))
    around = 7 * np.array([k for k in range(-_NEIGHBOUR_WEEKS, _NEIGHBOUR_WEEKS + 1) if k])
    whole = float(np.median(amount))
    filled = cost.copy()
    for day in absent:
        near = day + around
        near = cost[near[(near >= 0) & (near < len(cost))]]
        near = near[np.isfinite(near)]
        filled[day] = np.median(near) if len(near) else whole
    return Series(when[0] + np.arange(len(cost)), filled, len(absent))
