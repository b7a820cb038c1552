"""The simple renewal model of spot candidates: expected time and cost drivers, and the chance to meet the deadline.

The model and its formulas are in `planner.risk.moments`. Means are taken at the stated interruption rate. Real pools are
less regular than one exponential rate: the chance of meeting a deadline and the 90 % time are averaged over log-normal
frailties (mean 1) of the up and down hazards, which made intervals of past plans cover what they claim.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from planner.risk.distribution import elapsed_quantile, meet_probability
from planner.risk.moments import FloatArray, Job, compute_moments, split_job

FRAILTY_SD = 0.35


@dataclass(frozen=True)
class SpotOutcome:
    """What a job on spot capacity comes to, per candidate, shape `(n,)`.

    Attributes:
        expected_elapsed_hours: from asking for capacity to the last step, waits included.
        expected_paid_hours: hours the gang is up and billed (waiting is not).
        expected_interruptions: number of interruptions.
        expected_lost_hours: paid hours without progress: repeated work, restarts, notice times (checkpoints apart).
        p_meet_deadline: probability that elapsed <= deadline; NaN when not asked for.
        elapsed_p90_hours: elapsed time not exceeded with probability 0.9; NaN when not asked for.
    """

    expected_elapsed_hours: FloatArray
    expected_paid_hours: FloatArray
    expected_interruptions: FloatArray
    expected_lost_hours: FloatArray
    p_meet_deadline: FloatArray
    elapsed_p90_hours: FloatArray


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
    deadline_hours: npt.ArrayLike,
    frailty_sd: float = FRAILTY_SD,
    with_distribution: bool = True,
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
        deadline_hours: time available from the request for capacity; inf for none.
        frailty_sd: standard deviation of the log of the hazards' frailty.
        with_distribution: also compute p_meet_deadline and elapsed_p90_hours (slower; take a subset first).

    Returns:
        The outcome, arrays of shape `(n,)`.

    Raises:
        ValueError: an argument is negative, an interval or node count is not positive, or work is not finite.
    """
    given = (work_hours, rate_per_hour, nodes, gang_exponent, mean_wait_hours, checkpoint_interval_hours)
    more = (checkpoint_write_hours, restart_hours, notice_hours, deadline_hours)
    arrays = np.broadcast_arrays(*(np.atleast_1d(np.asarray(a, dtype=np.float64)) for a in (*given, *more)))
    work, node_rate, count, exponent, wait, interval, write, restart, notice, deadline = arrays
    _check(work, node_rate, count, wait, interval, write, restart, notice)
    rate = node_rate * count**exponent
    job = split_job(work, interval, write, restart, notice)
    means = compute_moments(job, rate, wait, variance=False)
    elapsed = means.floor_hours + means.excess_hours + initial_wait_hours(rate, wait)
    nothing = np.full(work.shape, np.nan)
    meet, p90 = nothing, nothing
    if with_distribution:
        meet = meet_probability(job, rate, wait, deadline, frailty_sd)
        p90 = elapsed_quantile(job, rate, wait, 0.9, frailty_sd)
    return SpotOutcome(
        expected_elapsed_hours=elapsed,
        expected_paid_hours=means.paid_hours,
        expected_interruptions=means.interruptions,
        expected_lost_hours=np.maximum(means.paid_hours - means.floor_hours, 0.0),
        p_meet_deadline=meet,
        elapsed_p90_hours=p90,
    )


def initial_wait_hours(rate: FloatArray, wait: FloatArray) -> FloatArray:
    """Mean wait at launch: capacity is down with probability L w / (1 + L w), then w more hours, shape `(n,)`."""
    load = rate * wait
    return np.asarray(wait * load / (1.0 + load), dtype=np.float64)


def _check(work: FloatArray, rate: FloatArray, nodes: FloatArray, *rest: FloatArray) -> None:
    wait, interval, write, restart, notice = rest
    named = {
        "work_hours": work,
        "rate_per_hour": rate,
        "mean_wait_hours": wait,
        "checkpoint_write_hours": write,
        "restart_hours": restart,
        "notice_hours": notice,
    }
    for name, array in named.items():
        if np.any(array < 0) or np.any(np.isinf(array)):
            raise ValueError(f"{name} must be finite and >= 0")
    if np.any(nodes < 1) or np.any(interval <= 0):
        raise ValueError("nodes must be >= 1 and checkpoint_interval_hours > 0")


__all__ = ["FRAILTY_SD", "Job", "SpotOutcome", "initial_wait_hours", "spot_outcome"]
