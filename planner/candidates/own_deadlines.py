"""Deadlines of a run's candidates: the run's own, or one of each shape, as pools of many sizes and paces have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.records import record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from planner.candidates.model import Candidates

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

_ALL = slice(None)


@record(frozen=True, eq=False)
class OwnDeadlines:
    """Deadlines of each row of the shapes, shape `(n_shapes,)`.

    Attributes:
        hours: from the start; the run's own deadline is at least the latest of them.
        later_hours: work that takes x times as long as predicted has (x - 1) times so many hours more.
    """

    hours: FloatArray
    later_hours: FloatArray


def hours_of(candidates: Candidates, at: IntArray | slice = _ALL) -> float | FloatArray:
    """Hours from the start to the deadline of candidates `at`: of each, or of all alike."""
    own, hours = candidates.context.own, candidates.context.dates.deadline_hours
    assert hours is not None
    if own is None:
        return hours
    each: FloatArray = own.hours[candidates.shape[at]]
    return each


def later_hours_of(candidates: Candidates, at: IntArray | slice = _ALL) -> float | FloatArray:
    """Hours more that work of candidates `at` has if it takes twice as long as predicted: of each, or of all alike."""
    own = candidates.context.own
    if own is None:
        return candidates.context.later_hours
    each: FloatArray = own.later_hours[candidates.shape[at]]
    return each
