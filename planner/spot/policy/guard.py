"""The hard guard: no deadline is missed while on-demand can be obtained.

A choice for the coming tick is safe if, whatever happens to spot afterwards, on-demand asked for at the next tick
still finishes in time: with `R` the time left now, `w'` the work left after the tick and `d` the time from asking for
on-demand to progress (waiting for it and one restart), the choice is safe when `R - tick >= w' + d`. A zone that is up
stays up for the tick, so a run that goes on with spot makes its progress first. Anything laxer misses; anything
stricter pays for on-demand that was not needed. By induction the on-demand start that the guard asks for is always
still in time, so a run misses its deadline only if the deadline was out of reach at launch.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.spot.policy.view import EPS_HOURS, IDLE, ON_DEMAND, JobView, RunStates


def progress_hours(view: JobView, runs: RunStates, mode: Ints, zone: Ints) -> Floats:
    """Work that the chosen action does in the coming tick, hours, shape `(n,)`."""
    going_on = (mode == runs.mode) & (zone == runs.zone)
    fresh = np.where(mode == ON_DEMAND, view.on_demand_start_hours, view.restart_hours)
    left = np.where(going_on, runs.restart_left_hours, fresh)
    return np.where(mode == IDLE, 0.0, np.maximum(view.tick_hours - left, 0.0))


def is_safe(view: JobView, runs: RunStates, mode: Ints, zone: Ints) -> Bools:
    """Whether on-demand still finishes in time if it is asked for after this tick, shape `(n,)`."""
    remaining = view.deadline_hours - runs.elapsed_hours - view.tick_hours
    work = view.work_hours - runs.done_hours - progress_hours(view, runs, mode, zone)
    finished = work <= EPS_HOURS
    safe: Bools = finished & (remaining >= -EPS_HOURS)
    return safe | (remaining >= work + view.on_demand_start_hours - EPS_HOURS)


def guarded(view: JobView, runs: RunStates, mode: Ints, zone: Ints) -> tuple[Ints, Ints]:
    """The choice, replaced by on-demand where it could no longer be recovered.

    On-demand that runs already is always safe to keep: it needs no further start.
    """
    remaining = view.deadline_hours - runs.elapsed_hours - view.tick_hours
    most = float((view.work_hours - runs.done_hours).max(initial=0.0))
    if remaining >= most + view.on_demand_start_hours - EPS_HOURS:
        return mode, zone  # safe for all, whatever they do in the tick
    unsafe = (mode != ON_DEMAND) & ~is_safe(view, runs, mode, zone)
    if not unsafe.any():
        return mode, zone
    return np.where(unsafe, ON_DEMAND, mode), np.where(unsafe, -1, zone)
