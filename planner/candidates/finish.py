"""When candidates are done with a given probability: closed for steady capacity at once, else `in_time`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.in_time import finish_quantile, steady_quantile
from planner.candidates.running import steady_hours
from planner.candidates.starts import chance_had, waits_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.model import Candidates

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]


def sure_hours(made: Candidates, at: IntArray, level: float) -> FloatArray:
    """Hours within which candidates end with probability `level`, never less than expected, shape `(len(at),)`."""
    context = made.context
    hours, levels = np.empty(len(at)), level / chance_had(made, at)
    spot = context.market.is_spot[made.offer[at]]
    hours[~spot] = _steady(made, at[~spot], levels[~spot])
    if spot.any():
        hours[spot] = np.maximum(finish_quantile(made, at[spot], levels[spot]), made.hours[at[spot]])
    return hours


def uninterrupted_hours(made: Candidates, at: IntArray, level: float) -> FloatArray:
    """The same if nothing were ever taken away: a quick lower bound of `sure_hours`."""
    return np.maximum(unhindered_hours(made, at, level), made.hours[at])


def unhindered_hours(made: Candidates, at: IntArray, level: float) -> FloatArray:
    """Start-up and work alone: a lower bound for a size of cluster, in however many zones it may run."""
    work = made.work_hours[at] * np.exp(_normal_quantile(level) * made.sigma[at])
    waits = waits_of(made, at)
    return waits.before + waits.at_level(0.0) + made.fixed_hours[at] + work


def _steady(made: Candidates, at: IntArray, level: FloatArray) -> FloatArray:
    """Log-normal step time: the quantile of the work is the quantile of the step."""
    context = made.context
    distinct, own = np.unique(level, return_inverse=True)
    slow = np.asarray([_normal_quantile(one) for one in distinct.tolist()], dtype=np.float64)[own]
    nodes, work = made.nodes[at], made.work_hours[at]
    need = steady_hours(context.asked, nodes, work, made.write_hours[at], made.interval_hours[at])
    sure = made.waiting_hours[at] + made.fixed_hours[at] + need * np.exp(slow * made.sigma[at])
    waits = waits_of(made, at)
    some = np.flatnonzero(waits.has_spread & (level < 1.0))
    if len(some):
        sure[some] = steady_quantile(made, at[some], level[some], waits.take(some))
    # where capacity comes too seldom, no time is enough
    return np.where(level < 1.0, np.maximum(sure, made.hours[at]), np.inf)


def _normal_quantile(level: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(min(level, 1.0 - 1e-12))
