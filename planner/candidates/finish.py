"""When candidates are done with a given probability: in closed form for steady capacity, by bisection for spot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.running import finish_quantile, steady_hours

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.model import Candidates

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]


def sure_hours(made: Candidates, at: IntArray, level: float) -> FloatArray:
    """Hours within which candidates end with probability `level`, never less than expected, shape `(len(at),)`."""
    context = made.context
    hours = np.empty(len(at))
    spot = context.market.is_spot[made.offer[at]]
    hours[~spot] = _steady(made, at[~spot], level)
    if spot.any():
        hours[spot] = np.maximum(finish_quantile(made, at[spot], level), made.hours[at[spot]])
    return hours


def uninterrupted_hours(made: Candidates, at: IntArray, level: float) -> FloatArray:
    """The same if nothing were ever taken away: a quick lower bound of `sure_hours`."""
    return np.maximum(unhindered_hours(made, at, level), made.hours[at])


def unhindered_hours(made: Candidates, at: IntArray, level: float) -> FloatArray:
    """Start-up and work alone: a lower bound for a size of cluster, in however many zones it may run."""
    work = made.work_hours[at] * np.exp(_normal_quantile(level) * made.sigma[at])
    return made.waiting_hours[at] + made.fixed_hours[at] + work


def _steady(made: Candidates, at: IntArray, level: float) -> FloatArray:
    """Log-normal step time: the quantile of the work is the quantile of the step."""
    context = made.context
    nodes, work = made.nodes[at], made.work_hours[at]
    need = steady_hours(context.asked, nodes, work, made.write_hours[at], made.interval_hours[at])
    sure = (
        made.waiting_hours[at]
        + made.fixed_hours[at]
        + need * np.exp(_normal_quantile(level) * made.sigma[at])
    )
    return np.maximum(sure, made.hours[at])


def _normal_quantile(level: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(min(level, 1.0 - 1e-12))
