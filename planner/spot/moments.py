"""Mean and variance of the time a job needs on capacity that comes and goes.

Model: the gang is up for exponential times with rate L (per hour), then gone for exponential times with mean
w; after each return a restart of d hours must complete, itself exposed to interruption. Work runs in segments
of tau hours, each sealed by a checkpoint of delta hours; an interruption throws back to the last checkpoint.
Up-time is paid, waits are not.

For a segment of x = tau + delta up-hours the first attempt needs no restart, later ones need c = d + x. With
X ~ exp(L): mean up-time e^(L d) (e^(L x) - 1) / L (Daly 2006), and the second moment follows from the
geometric number of failed attempts. Where the warning is long enough to write a checkpoint (notice >= delta)
nothing but the notice is lost: the interruptions of the work are then a Poisson process, each followed by a
wait and a restart of d + notice hours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Bools, Floats, Ints
from planner.records import record

# e^700 is near the largest float64: beyond it a time is called infinite.
_LARGEST_EXPONENT = 700.0


@record(frozen=True)
class Moments:
    """Per candidate, hours, of the shape of its job's work and rates; times exclude the initial wait.

    Attributes:
        floor_hours: elapsed time when nothing is interrupted: work and checkpoints.
        paid_hours: mean up-time.
        interruptions: mean number of interruptions.
        excess_hours: mean elapsed time beyond the floor.
        excess_variance: variance of the elapsed time, in h^2 (NaN when not requested).
    """

    floor_hours: Floats
    paid_hours: Floats
    interruptions: Floats
    excess_hours: Floats
    excess_variance: Floats


@record(frozen=True)
class Job:
    """Inputs of the model, shape `(n,)`, hours: `segments` whole intervals of work and one `remainder`.

    A job scaled in k ways holds `work`, `segments` and `remainder` of shape `(k, n)`: what does not change with the
    scale is computed once.
    """

    work: Floats
    interval: Floats
    write: Floats
    restart: Floats
    notice: Floats
    segments: Floats
    remainder: Floats
    protected: Bools

    @cached_property
    def floor_hours(self) -> Floats:
        """Work and checkpoints, hours."""
        return np.asarray(
            self.work + np.where(self.segments > 0, self.segments * self.write, 0.0), dtype=np.float64
        )

    @cached_property
    def segment_hours(self) -> Floats:
        """A whole interval and its checkpoint, shape `(n,)`; 0 for work that has none."""
        some = self.segments > 0
        return np.where(some if some.ndim == 1 else some.any(axis=0), self.interval + self.write, 0.0)

    def take(self, at: Ints) -> Job:
        """Some of the jobs."""
        return Job(**{field.name: getattr(self, field.name).take(at, axis=-1) for field in fields(self)})


def split_job(work: Floats, interval: Floats, write: Floats, restart: Floats, notice: Floats) -> Job:
    """Cut the work into whole checkpoint intervals and a remainder (the end of the work seals itself)."""
    safe = np.where(np.isinf(interval), np.maximum(work, 1.0), interval)
    segments = whole_intervals(work, safe)
    remainder = work - segments * safe
    return Job(work, interval, write, restart, notice, segments, remainder, notice >= write)


def whole_intervals(work: npt.ArrayLike, interval: npt.ArrayLike) -> Floats:
    """Intervals of `work` that end in a checkpoint: all but the last; elementwise."""
    # The tolerance keeps 10 h / 0.1 h at 100 segments, the last of which needs no checkpoint.
    return np.maximum(np.ceil(np.divide(work, interval) - 1e-9) - 1.0, 0.0)


def _failed(rate: Floats, length: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean and mean square of an attempt at `length` up-hours that fails, and the odds of failing.

    E[X | X < c] / c = 1/y - 1/(e^y - 1) and E[X^2 | X < c] / c^2 = 2/y^2 - (1 + 2/y)/(e^y - 1) for X exponential with
    y = L c; their series where y is small.
    """
    y = rate * length
    odds = np.expm1(np.minimum(y, _LARGEST_EXPONENT))
    tiny, small = y < 1e-2, y < 2e-2
    safe, least = np.where(tiny, 1.0, np.minimum(y, _LARGEST_EXPONENT)), np.where(tiny, 1.0, odds)
    first = np.where(tiny, 0.5 - y / 12.0, 1.0 / safe - 1.0 / least)
    exact = 2.0 / safe**2 - (1.0 + 2.0 / safe) / least
    second = np.where(small, 1.0 / 3.0 - y / 12.0 + y * y / 360.0, exact)
    return length * first, length * length * second, odds


def _retry(rate: Floats, need: Floats, wait: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the elapsed time until `need` up-hours in a row are had, starting up.

    Failed attempts last X given X < need, then a wait; their number is geometric.
    """
    up, wasted, odds = _failed(rate, need)
    lap = up + wait
    lap_variance = np.maximum(wasted - up * up, 0.0) + wait * wait
    mean = need + odds * lap
    variance = odds * lap_variance + odds * (1.0 + odds) * lap * lap
    return mean, variance


def _segment(rate: Floats, length: Floats, restart: Floats, wait: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the elapsed time of a segment of `length` up-hours that starts without restart."""
    y = rate * length
    success = np.exp(-y)
    fail = -np.expm1(-y)
    up, up_square, _ = _failed(rate, length)
    again, again_variance = _retry(rate, restart + length, wait)
    failed = up + wait + again
    failed_variance = np.maximum(up_square - up * up, 0.0) + wait * wait + again_variance
    mean = success * length + fail * failed
    square = success * length * length + fail * (failed_variance + failed * failed)
    return mean, np.maximum(square - mean * mean, 0.0)


def _segment_up(rate: Floats, length: Floats, restart: Floats) -> Floats:
    """Mean up-time of one segment: e^(L d) (e^(L x) - 1) / L; x where L is 0 (Daly 2006)."""
    y = rate * length
    grow = np.expm1(np.minimum(y, _LARGEST_EXPONENT))
    factor = np.where(y < 1e-8, 1.0, grow / np.where(y > 0, y, 1.0))
    return np.asarray(
        length * factor * np.exp(np.minimum(rate * restart, _LARGEST_EXPONENT)), dtype=np.float64
    )


def compute_moments(job: Job, rate: Floats, wait: Floats, *, variance: bool) -> Moments:
    """Moments of elapsed and paid time.

    Args:
        job: the job, arrays of shape `(n,)`, or scaled.
        rate: interruptions of the gang per up-hour, L, shape `(n,)`; several a row, shape `(p, n)`, or `(p, 1, n)` for
            a scaled job.
        wait: mean wait for capacity after an interruption, hours, shape `(n,)`.
        variance: whether the variance is wanted too.

    Returns:
        The moments; infinite where an exponent exceeds what float64 holds.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        paid = _by_notice(job, rate, wait, _guarded_paid, _exposed_paid)
        count = rate * paid
        floor = job.floor_hours
        excess = np.maximum(paid - floor, 0.0) + np.where(count > 0, count * wait, 0.0)
        spread = np.full_like(paid, np.nan)
        if variance:
            spread = _by_notice(job, rate, wait, _guarded_variance, _exposed_variance)
    hopeless = _hopeless(job, rate)
    if hopeless.any():
        paid, count, excess = (np.where(hopeless, np.inf, a) for a in (paid, count, excess))
    return Moments(floor, paid, count, excess, spread)


def _hopeless(job: Job, rate: Floats) -> Bools:
    if job.protected.all():  # then no work is at stake, whatever its length
        return np.asarray(rate * (job.restart + job.notice) > _LARGEST_EXPONENT / 2.0, dtype=np.bool_)
    longest = np.where(job.protected, 0.0, np.maximum(job.segment_hours, job.remainder))
    return np.asarray(rate * (job.restart + job.notice + longest) > _LARGEST_EXPONENT / 2.0, dtype=np.bool_)


Formula = Callable[[Job, Floats, Floats], Floats]


def _by_notice(job: Job, rate: Floats, wait: Floats, guarded: Formula, exposed: Formula) -> Floats:
    """One formula for jobs whose notice lets them write a checkpoint, the other for those that lose work."""
    if job.protected.all():
        return guarded(job, rate, wait)
    if not job.protected.any():
        return exposed(job, rate, wait)
    out = np.empty(np.broadcast_shapes(job.work.shape, rate.shape))
    for mine, formula in ((job.protected, guarded), (~job.protected, exposed)):
        at = np.flatnonzero(mine)
        out[..., at] = formula(job.take(at), rate[..., at], wait[at])
    return out


def _guarded_paid(job: Job, rate: Floats, _wait: Floats) -> Floats:
    back = np.exp(np.minimum(rate * (job.restart + job.notice), _LARGEST_EXPONENT))
    return np.asarray(job.floor_hours * back, dtype=np.float64)


def _exposed_paid(job: Job, rate: Floats, _wait: Floats) -> Floats:
    whole = job.segments * _segment_up(rate, job.segment_hours, job.restart)
    return np.asarray(whole + _segment_up(rate, job.remainder, job.restart), dtype=np.float64)


def _guarded_variance(job: Job, rate: Floats, wait: Floats) -> Floats:
    back, back_variance = _retry(rate, job.restart + job.notice, wait)
    pause = wait + back
    return np.asarray(
        rate * job.floor_hours * (wait * wait + back_variance + pause * pause), dtype=np.float64
    )


def _exposed_variance(job: Job, rate: Floats, wait: Floats) -> Floats:
    whole = job.segments * _segment(rate, job.segment_hours, job.restart, wait)[1]
    return np.asarray(whole + _segment(rate, job.remainder, job.restart, wait)[1], dtype=np.float64)
