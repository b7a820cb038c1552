"""Seconds per step from now on: what the log shows, as sure as its steps are independent, beside the plan's own.

A slow step is often followed by another slow one. The standard error of their mean is that of `n / tau` independent
steps, tau = 1 + 2 * (sum of autocorrelations), summed over pairs of lags while they stay positive
(Geyer 1992, initial positive sequence, doi:10.1214/ss/1177011137). The plan's interval is the prior, in the logarithm;
what changes from one stretch of a run to the next (other machines, other data) stays as a spread of its own. Until the
log covers a few checkpoint intervals, what comes between steps is the plan's, with the spread of whole runs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats
from planner.calibration.steps import warm_up
from planner.tracking.model import Intervals, Speed

if TYPE_CHECKING:
    from planner.tracking.planned import Planned

# From one start of a run to the next, standard deviation of the log step time: MLPerf cells, as in docs/calibration.md.
DRIFT_SD = 0.026
_MOST_LAGS, _MOST_POINTS = 200, 20_000
_FEW = 3
# checkpoints and evaluations count as logged once the log covers so many of their intervals
_INTERVALS_SEEN = 3.0


def measure_speed(intervals: Intervals, planned: Planned | None) -> Speed:
    """Seconds per step from now on.

    Args:
        intervals: of the log.
        planned: the plan; None: the log alone.
    """
    prior = None if planned is None else planned.pace_s
    least = None if planned is None else planned.step_s * (1.0 + planned.overhead_ratio)
    working = np.flatnonzero(intervals.working & (intervals.seconds > 0))
    per_step = intervals.seconds[working] / intervals.steps[working]
    steps = intervals.steps[working]
    left_out = warm_up(per_step.tolist()) if len(per_step) <= _MOST_POINTS else 0
    per_step, steps = per_step[left_out:], steps[left_out:]
    if len(per_step) < _FEW:
        sd = 0.3 if planned is None else math.hypot(planned.step_log_sd, planned.run_log_sd)
        return Speed(prior or intervals.step_s, sd, len(per_step), 0.0, None, prior, least)
    mean, log_error, effective = _mean(per_step, steps)
    if planned is None or prior is None:
        return Speed(mean, math.hypot(log_error, DRIFT_SD), len(per_step), effective, mean, None)
    covered = float(intervals.seconds[working].sum()) / 3600.0
    if covered < _INTERVALS_SEEN * planned.checkpoint_hours:
        return _of_steps_alone(planned, float(np.median(per_step)), log_error, (len(per_step), effective))
    prior_sd = math.hypot(planned.step_log_sd, planned.run_log_sd)
    log_mean, sd = _posterior(math.log(mean), log_error, math.log(prior), prior_sd)
    return Speed(math.exp(log_mean), math.hypot(sd, DRIFT_SD), len(per_step), effective, mean, prior, least)


def _of_steps_alone(planned: Planned, step_s: float, log_error: float, seen: tuple[int, float]) -> Speed:
    """What a log says that has steps alone yet: what comes between them is the plan's, and as unsure as there."""
    log_mean, sd = _posterior(math.log(step_s), log_error, math.log(planned.step_s), planned.step_log_sd)
    logged = 1.0 + planned.overhead_ratio
    pace = math.exp(log_mean) * planned.pace_s / planned.step_s
    spread = math.hypot(sd, DRIFT_SD, planned.run_log_sd)
    least = planned.step_s * logged
    return Speed(pace, spread, *seen, step_s * logged, least, least)


def _posterior(measured: float, error: float, prior: float, prior_sd: float) -> tuple[float, float]:
    """Mean and standard deviation of a normal figure from a measurement and a prior."""
    precision, prior_precision = 1.0 / max(error, 1e-6) ** 2, 1.0 / max(prior_sd, 1e-6) ** 2
    return (precision * measured + prior_precision * prior) / (precision + prior_precision), (
        precision + prior_precision
    ) ** -0.5


def _mean(per_step: Floats, steps: Floats) -> tuple[float, float, float]:
    """Mean seconds per step, standard error of its logarithm, and independent steps behind it."""
    mean = float((per_step * steps).sum() / steps.sum())
    thin = max(1, -(-len(per_step) // _MOST_POINTS))
    seen = per_step[: len(per_step) // thin * thin].reshape(-1, thin).mean(axis=1)
    effective = len(seen) / correlation_time(seen)
    sd = float(seen.std(ddof=1)) if len(seen) > 1 else 0.0
    # a few values say little of their own spread: Student's t at 80 % over the normal's
    few = 1.0 + 1.0 / max(effective - 1.0, 0.5)
    return mean, few * sd / mean / math.sqrt(effective), effective


def correlation_time(values: Floats) -> float:
    """Steps that say as much as one independent step, at least 1 and at most half of all."""
    n = len(values)
    centred = values - values.mean()
    power = float(centred @ centred)
    if n < 4 or not power > 0:
        return 1.0
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, size)
    lags = np.fft.irfft(spectrum * np.conj(spectrum), size)[: min(n // 2, _MOST_LAGS) + 1] / power
    total, at = 0.0, 1
    while at + 1 < len(lags):
        pair = float(lags[at] + lags[at + 1])
        if pair <= 0:
            break
        total += pair
        at += 2
    return min(max(1.0 + 2.0 * total, 1.0), n / 2.0)
