"""Exact Pareto fronts of two criteria, both to be small."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def pareto_front(first: Floats, second: Floats) -> Ints:
    """Positions that no other position matches in one criterion and beats in the other.

    Args:
        first: criterion the front is sorted by, shape `(n,)`; infinite and NaN entries never belong to a front.
        second: the other criterion, shape `(n,)`.

    Returns:
        Positions with `first` rising and `second` falling strictly; of equal points the earliest.
    """
    finite = np.flatnonzero(np.isfinite(first) & np.isfinite(second))
    order = finite[np.lexsort((second[finite], first[finite]))]
    value = second[order]
    if not len(order):
        return order
    best = np.minimum.accumulate(value)
    falls = np.r_[True, value[1:] < best[:-1]]
    return order[falls]


def dominated(
    front_first: Floats, front_second: Floats, first: Floats, second: Floats
) -> npt.NDArray[np.bool_]:
    """Which points some point of a front is no worse than in both criteria.

    Args:
        front_first: first criterion of a front, rising, shape `(m,)`.
        front_second: its second criterion, falling, shape `(m,)`.
        first: first criterion of the points, shape `(n,)`.
        second: their second criterion, shape `(n,)`.
    """
    at = np.searchsorted(front_first, first, side="right") - 1
    padded = np.r_[np.inf, front_second]
    return np.asarray(padded[at + 1] <= second, dtype=np.bool_)
