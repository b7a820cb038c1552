"""The simple renewal model of spot candidates: expected hours, and the chance to meet the deadline.

The model and its formulas are in `planner.spot.moments`. Real pools are less regular than one exponential
rate: every figure is averaged over log-normal frailties (mean 1) of the up and down hazards, which made the
intervals of past plans cover what they claim; `frailty_sd=0` gives the plain exponential model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Floats
from planner.records import record
from planner.spot.distribution import MEAN_POINTS, SpotPool, frailties, stacked_frailties
from planner.spot.moments import Job, compute_moments, split_job
from planner.spot.work_error import meet_probability

FRAILTY_SD = 0.35


@record(frozen=True)
class SpotOutcome:
    """What a job on capacity that may be interrupted comes to, per candidate, shape `(n,)`.

    Attributes:
        expected_elapsed_hours: from asking for capacity to the last step, waits included.
        expected_paid_hours: hours the gang is up and billed (waiting is not).
        expected_interruptions: number of interruptions.
        expected_lost_hours: paid hours without progress: repeated work, restarts, notice times (checkpoints
            apart).
    """

    expected_elapsed_hours: Floats
    expected_paid_hours: Floats
    expected_interruptions: Floats
    expected_lost_hours: Floats


def spot_outcome(
    work_hours: npt.ArrayLike,
    *,
    rate_per_hour: npt.ArrayLike,
    nodes: npt.ArrayLike,
    gang_exponent: npt.ArrayLike,
    mean_wait_hours: npt.ArrayLike,
    checkpoint_interval_hours: npt.ArrayLike,
    checkpoint_write_hours: npt.ArrayLike,
    restart_hours: npt.ArrayLike,
    notice_hours: npt.ArrayLike,
    frailty_sd: npt.ArrayLike = FRAILTY_SD,
    dispersion: npt.ArrayLike = 1.0,
    first_wait_hours: npt.ArrayLike | None = None,
) -> SpotOutcome:
    """Estimate what a checkpointed job on spot capacity needs. All arguments broadcast to `(n,)`.

    Args:
        work_hours: useful training hours without checkpoints.
        rate_per_hour: interruptions per hour of one node that is up; 0 for capacity that is never taken away.
        nodes: nodes that must run together.
        gang_exponent: the gang's rate is `rate_per_hour * nodes ** gang_exponent`.
        mean_wait_hours: mean wait until the gang's capacity is there again.
        checkpoint_interval_hours: work between checkpoints; inf for none.
        checkpoint_write_hours: time of one checkpoint.
        restart_hours: from capacity back to the first useful step.
        notice_hours: warning before an interruption; one at least as long as a checkpoint saves the work.
        frailty_sd: standard deviation of the log of the hazards' frailty.
        dispersion: variance of waits and lost hours over that of exponential spells with the same means.
        first_wait_hours: mean wait at launch where capacity is down then; default `mean_wait_hours`.

    Returns:
        The outcome, arrays of shape `(n,)`.

    Raises:
        ValueError: an argument is negative, an interval or node count is not positive, or work is not finite.
    """
    given = (work_hours, rate_per_hour, nodes, gang_exponent, mean_wait_hours, checkpoint_interval_hours)
    (job, rate, wait), _ = _prepare(*given, checkpoint_write_hours, restart_hours, notice_hours, np.inf)
    elapsed, paid, count = _means(job, _pool(rate, wait, first_wait_hours, frailty_sd, dispersion))
    return SpotOutcome(
        expected_elapsed_hours=elapsed,
        expected_paid_hours=paid,
        expected_interruptions=count,
        expected_lost_hours=np.maximum(paid - job.floor_hours, 0.0),
    )


def p_meet_deadline(
    work_hours: npt.ArrayLike,
    *,
    rate_per_hour: npt.ArrayLike,
    nodes: npt.ArrayLike,
    gang_exponent: npt.ArrayLike,
    mean_wait_hours: npt.ArrayLike,
    checkpoint_interval_hours: npt.ArrayLike,
    checkpoint_write_hours: npt.ArrayLike,
    restart_hours: npt.ArrayLike,
    notice_hours: npt.ArrayLike,
    deadline_hours: npt.ArrayLike,
    work_log_sd: npt.ArrayLike = 0.0,
    steady_hours: npt.ArrayLike | None = None,
    later_hours: float | Floats = 0.0,
    frailty_sd: npt.ArrayLike = FRAILTY_SD,
    dispersion: npt.ArrayLike = 1.0,
    first_wait_hours: npt.ArrayLike | None = None,
    needed: Floats | None = None,
) -> Floats:
    """Probability to finish within `deadline_hours`, also when the predicted work itself is uncertain.

    Args:
        work_hours: median of the useful training hours; the other arguments as in `spot_outcome`.
        rate_per_hour: see `spot_outcome`.
        nodes: see `spot_outcome`.
        gang_exponent: see `spot_outcome`.
        mean_wait_hours: see `spot_outcome`.
        checkpoint_interval_hours: see `spot_outcome`.
        checkpoint_write_hours: see `spot_outcome`.
        restart_hours: see `spot_outcome`.
        notice_hours: see `spot_outcome`.
        deadline_hours: time available from the request for capacity, inf for none; take fixed hours (provisioning,
            staging) off beforehand.
        work_log_sd: standard deviation of the log of the true over the predicted work; 0 when certain.
        steady_hours: the same work on steady capacity, shape `(n,)`; what it takes beyond the undisturbed time is taken
            off the deadline, so that at the last moment before it a change would still be in time. None: nothing.
        later_hours: work that takes x times as long as predicted has (x - 1) times so many hours more.
        frailty_sd: see `spot_outcome`.
        dispersion: see `spot_outcome`.
        first_wait_hours: see `spot_outcome`.
        needed: where only it matters whether the probability reaches so much, shape `(n,)`: see
            `planner.spot.work_error.meet_probability`.

    Returns:
        Probability, shape `(n,)`; never falls when the deadline moves later.
    """
    given = (work_hours, rate_per_hour, nodes, gang_exponent, mean_wait_hours, checkpoint_interval_hours)
    rest = (checkpoint_write_hours, restart_hours, notice_hours, deadline_hours)
    (job, rate, wait), deadline = _prepare(*given, *rest)
    pool = _pool(rate, wait, first_wait_hours, frailty_sd, dispersion)
    sd = np.broadcast_to(np.asarray(work_log_sd, float), rate.shape)
    more = np.zeros_like(job.floor_hours)
    if steady_hours is not None:
        more = np.maximum(np.asarray(steady_hours, dtype=np.float64) - job.floor_hours, 0.0)
    return meet_probability(job, pool, deadline - later_hours, sd, more - later_hours, needed)


def _pool(
    rate: Floats,
    wait: Floats,
    first_wait: npt.ArrayLike | None,
    frailty_sd: npt.ArrayLike,
    dispersion: npt.ArrayLike,
) -> SpotPool:
    given = (wait if first_wait is None else first_wait, frailty_sd, dispersion)
    return SpotPool(
        rate, wait, *(np.broadcast_to(np.asarray(v, dtype=np.float64), rate.shape) for v in given)
    )


def _prepare(*given: npt.ArrayLike) -> tuple[tuple[Job, Floats, Floats], Floats]:
    """Broadcast and check the arguments; return (job, gang rate, wait) and the deadline."""
    arrays = _alike([np.atleast_1d(np.asarray(a, dtype=np.float64)) for a in given])
    work, node_rate, count, exponent, wait, interval, write, restart, notice, deadline = arrays
    _check(work, node_rate, count, wait, interval, write, restart, notice)
    rate = node_rate * count**exponent
    return (split_job(work, interval, write, restart, notice), rate, wait), deadline


def _alike(arrays: list[Floats]) -> Sequence[Floats]:
    """The arrays broadcast to one shape: most have it already, and numpy takes longer to find that out."""
    shape = next((array.shape for array in arrays if array.shape != (1,)), (1,))
    if any(array.shape not in (shape, (1,)) for array in arrays):
        return np.broadcast_arrays(*arrays)
    return [array if array.shape == shape else np.broadcast_to(array, shape) for array in arrays]


def _means(job: Job, pool: SpotPool) -> tuple[Floats, Floats, Floats]:
    """Expected elapsed hours, paid hours and interruptions, averaged over the frailty of the up hazard."""
    elapsed, paid, count = (np.zeros_like(job.work) for _ in range(3))
    for factors, weights in stacked_frailties(pool.frailty_sd, MEAN_POINTS, job.work):
        rate = pool.rate * factors
        means = compute_moments(job, rate, pool.wait, variance=False)
        down = rate * pool.wait / (1.0 + rate * pool.wait)
        whole = means.floor_hours + means.excess_hours + pool.first_wait * down
        for at, weight in enumerate(weights):
            elapsed += weight * whole[at]
            paid += weight * means.paid_hours[at]
            count += weight * means.interruptions[at]
    return elapsed, paid, count


def launch_wait_hours(pool: SpotPool) -> Floats:
    """Expected wait at launch, which `_means` counts in what elapses, shape `(n,)`."""
    wait = np.zeros_like(pool.rate)
    for factor, weight in frailties(pool.frailty_sd, MEAN_POINTS):
        load = pool.rate * factor * pool.wait
        wait += weight * (pool.first_wait * load / (1.0 + load))
    return wait


def _check(work: Floats, rate: Floats, nodes: Floats, *rest: Floats) -> None:
    wait, interval, write, restart, notice = rest
    names = (
        "work_hours", "rate_per_hour", "mean_wait_hours", "checkpoint_write_hours", "restart_hours", "notice_hours",
    )  # fmt: skip
    given = np.stack([work, rate, wait, write, restart, notice])
    wrong = (given < 0) | np.isinf(given)
    if wrong.any():
        raise ValueError(f"{names[int(wrong.argmax() // work.size)]} must be finite and >= 0")
    if np.any(nodes < 1) or np.any(interval <= 0):
        raise ValueError("nodes must be >= 1 and checkpoint_interval_hours > 0")


def young_interval_hours(write_hours: npt.ArrayLike, mtbf_hours: npt.ArrayLike) -> Floats:
    """Checkpoint interval that loses least time, to first order: sqrt(2 delta M).

    J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974. On real
    spot traces it costs 0.4-2 % more than the best interval found by search; Daly's higher-order form is no
    better there.

    Args:
        write_hours: time of one checkpoint, delta, in hours.
        mtbf_hours: mean up-time between interruptions of the whole gang, M, in hours; inf where there are
            none.

    Returns:
        Hours of work between checkpoints, broadcast shape; inf where M is.
    """
    write, mtbf = np.broadcast_arrays(np.asarray(write_hours, float), np.asarray(mtbf_hours, float))
    safe = np.where(np.isinf(mtbf), 1.0, mtbf)
    return np.asarray(np.where(np.isinf(mtbf), np.inf, np.sqrt(2.0 * write * safe)), dtype=np.float64)
