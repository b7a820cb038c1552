"""Where the time of a run went: steps that count, checkpoints, work done twice, waits, and steps waiting for data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.calibration.steps import MAD_TO_SD
from planner.tracking.model import Split

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats
    from planner.tracking.model import Intervals, Progress

# A step is slow beyond so many deviations and this ratio of the usual one.
_DEVIATIONS, _SLOW_RATIO = 6.0, 0.3
# Slow steps are checkpoints where they come as regularly as this (deviation of their distances over the mean).
_REGULAR = 0.35
_FEW = 3


def split_time(progress: Progress, intervals: Intervals) -> Split:
    """Split the time between the first row and the last."""
    seconds, working = intervals.seconds, intervals.working
    needed = intervals.steps * intervals.step_s
    stood = np.where(intervals.fell_back, seconds, np.where(intervals.gap, seconds - needed, 0.0))
    stood = np.where(~intervals.fell_back & ~intervals.gap & (intervals.steps == 0), seconds, stood)
    ran = seconds - stood
    lost = ran * intervals.repeated
    counted = ran - lost
    share = 1.0 - intervals.repeated
    loader = _logged(progress, "loader_s", counted, intervals.steps * share)
    written = progress.measures.get("checkpoint_s")
    if written is not None:
        checkpoint, stalls = _logged(progress, "checkpoint_s", counted - loader, share), 0.0
    else:
        excess, regular = slow_steps(intervals)
        extra = np.where(working, excess, 0.0) * share
        checkpoint, stalls = (extra, 0.0) if regular else (np.zeros_like(extra), float(extra.sum()))
    logged = {"loader": "loader_s" in progress.measures, "checkpoint": written is not None}
    components = tuple(name for name, is_logged in logged.items() if is_logged)
    whole = float(seconds.sum())
    written_s, lost_s, stood_s, loader_s = (float(part.sum()) for part in (checkpoint, lost, stood, loader))
    stood_s += stalls
    compute = max(whole - written_s - lost_s - stood_s - loader_s, 0.0)
    hours = 1.0 / 3600.0
    return Split(
        whole * hours,
        compute * hours,
        written_s * hours,
        lost_s * hours,
        stood_s * hours,
        loader_s * hours,
        components,
    )


def _logged(progress: Progress, name: str, most: Floats, times: Floats) -> Floats:
    """A logged figure of each interval, at most what there is."""
    values = progress.measures.get(name)
    if values is None:
        return np.zeros_like(most)
    return np.clip(np.nan_to_num(values[1:], nan=0.0) * times, 0.0, np.maximum(most, 0.0))


def slow_steps(intervals: Intervals) -> tuple[Floats, bool]:
    """Seconds by which single intervals are longer than usual, and whether they come as regularly as checkpoints."""
    slow, per_step = _slow(intervals)
    at = np.flatnonzero(slow)
    excess = np.where(slow, (per_step - intervals.step_s) * intervals.steps, 0.0)
    if len(at) < _FEW:
        return excess, False
    apart = np.diff(np.cumsum(intervals.steps)[at])
    return excess, bool(apart.std() <= _REGULAR * apart.mean())


def _slow(intervals: Intervals) -> tuple[Bools, Floats]:
    working = intervals.working
    per_step = np.divide(
        intervals.seconds, intervals.steps, out=np.zeros_like(intervals.seconds), where=intervals.steps > 0
    )
    deviation = (
        MAD_TO_SD * float(np.median(np.abs(per_step[working] - intervals.step_s))) if working.any() else 0.0
    )
    limit = intervals.step_s + max(_DEVIATIONS * deviation, _SLOW_RATIO * intervals.step_s)
    return working & (per_step > limit), per_step
