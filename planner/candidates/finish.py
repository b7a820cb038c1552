"""When candidates are done with a given probability: closed for steady capacity at once, else `in_time`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct
from planner.candidates.in_time import finish_quantile, steady_quantile
from planner.candidates.running import steady_hours
from planner.candidates.starts import chance_had, waits_of

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.candidates.model import Candidates


def sure_hours(candidates: Candidates, at: Ints, level: float) -> Floats:
    """Hours within which candidates end with probability `level`, never less than expected, shape `(len(at),)`."""
    context = candidates.context
    hours, levels = np.empty(len(at)), level / chance_had(candidates, at)
    spot = context.market.is_spot[candidates.offer[at]]
    hours[~spot] = _steady(candidates, at[~spot], levels[~spot])
    if spot.any():
        hours[spot] = np.maximum(
            finish_quantile(candidates, at[spot], levels[spot]), candidates.hours[at[spot]]
        )
    return hours


def uninterrupted_hours(candidates: Candidates, at: Ints, level: float) -> Floats:
    """The same if nothing were ever taken away: a quick lower bound of `sure_hours`."""
    return np.maximum(unhindered_hours(candidates, at, level), candidates.hours[at])


def unhindered_hours(candidates: Candidates, at: Ints, level: float) -> Floats:
    """Start-up and work alone: a lower bound for a size of cluster, in however many zones it may run."""
    work = candidates.work_hours[at] * np.exp(_normal_quantile(level) * candidates.sigma[at])
    waits = waits_of(candidates, at)
    return waits.before + waits.at_level(0.0) + candidates.fixed_hours[at] + work


def _steady(candidates: Candidates, at: Ints, level: Floats) -> Floats:
    """Log-normal step time: the quantile of the work is the quantile of the step."""
    context = candidates.context
    levels, own = distinct(level)[::2]
    slow = np.asarray([_normal_quantile(one) for one in levels.tolist()], dtype=np.float64)[own]
    nodes, work = candidates.nodes[at], candidates.work_hours[at]
    need = steady_hours(context.asked, nodes, work, candidates.write_hours[at], candidates.interval_hours[at])
    sure = (
        candidates.waiting_hours[at] + candidates.fixed_hours[at] + need * np.exp(slow * candidates.sigma[at])
    )
    waits = waits_of(candidates, at)
    some = np.flatnonzero(waits.has_spread & (level < 1.0))
    if len(some):
        sure[some] = steady_quantile(candidates, at[some], level[some], waits.take(some))
    # where capacity comes too seldom, no time is enough
    return np.where(level < 1.0, np.maximum(sure, candidates.hours[at]), np.inf)


def _normal_quantile(level: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(min(level, 1.0 - 1e-12))
