"""Hours of the work itself with checkpoints and interruptions: exact for steady capacity, renewal model for spot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.records import record
from planner.risk.checkpoint import young_interval_hours
from planner.risk.renewal import SpotOutcome, spot_outcome

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.context import Context

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

# Nodes and weights of a 5-point Gauss-Hermite rule for a standard normal (numpy.polynomial.hermite_e.hermegauss).
# Written out: importing numpy.polynomial costs more than the whole choice.
_NODES = (-2.8569700138728056, -1.355626179974266, 0.0, 1.355626179974266, 2.8569700138728056)
_WEIGHTS = (
    0.011257411327720693,
    0.2220759220056126,
    0.5333333333333333,
    0.2220759220056126,
    0.011257411327720693,
)
MINUTE = 1.0 / 60.0


@record(frozen=True, eq=False)
class Run:
    """Expected course of the work, shape `(n,)`; hours count from capacity asked for to the last step."""

    elapsed_hours: FloatArray
    paid_hours: FloatArray
    interruptions: FloatArray
    lost_hours: FloatArray
    interval_hours: FloatArray


def run_candidates(
    context: Context, rows: IntArray, nodes: IntArray, work: FloatArray, write: FloatArray
) -> Run:
    """Expect the course of the work on each candidate.

    Args:
        context: risk of the offers, checkpoint settings.
        rows: offer per candidate, shape `(n,)`.
        nodes: instances.
        work: hours of steps and evaluation.
        write: hours of one checkpoint.
    """
    interval = checkpoint_interval(context, rows, nodes, write)
    steady = steady_hours(context, nodes, work, write, interval)
    failures = context.assumptions.machine_failures_per_node_hour * nodes * steady
    lost = steady - work * (1.0 + write / interval)
    run = Run(steady.copy(), steady, failures, lost, interval)
    at = np.flatnonzero(context.is_spot[rows])
    if not len(at):
        return run
    outcome = spot_outcome_of(context, rows[at], nodes[at], work[at], write[at], interval[at], None)
    run.elapsed_hours[at] = outcome.expected_elapsed_hours
    run.paid_hours[at] = outcome.expected_paid_hours
    run.interruptions[at] = outcome.expected_interruptions
    run.lost_hours[at] = outcome.expected_lost_hours
    return run


def steady_hours(
    context: Context, nodes: IntArray, work: FloatArray, write: FloatArray, interval: FloatArray
) -> FloatArray:
    """Hours of work on capacity nobody takes back: checkpoints, and machine failures that cost half an interval.

    First order in the failure rate: `work (1 + delta/tau) (1 + lambda (tau/2 + restart))`, lambda per cluster-hour.
    """
    rate = context.assumptions.machine_failures_per_node_hour * nodes
    loss = rate * (interval / 2.0 + context.restart_hours)
    return work * (1.0 + write / interval) * (1.0 + loss)


def checkpoint_interval(context: Context, rows: IntArray, nodes: IntArray, write: FloatArray) -> FloatArray:
    """Hours between checkpoints: the workload's, else Young's, never longer than the assumed one."""
    longest = context.assumptions.checkpoint_interval_s / 3600.0
    if context.job.interval_hours is not None:
        return np.full(len(rows), context.job.interval_hours)
    count, risk = nodes.astype(np.float64), context.risk
    spot = risk.rate_per_hour[rows] * count ** risk.gang_exponent[rows]
    rate = np.where(context.is_spot[rows], spot, context.assumptions.machine_failures_per_node_hour * count)
    mtbf = 1.0 / np.maximum(rate, 1e-9)
    return np.clip(young_interval_hours(write, mtbf), MINUTE, longest)


def spot_outcome_of(
    context: Context, rows: IntArray, nodes: IntArray, work: FloatArray, write: FloatArray, interval: FloatArray,
    deadline_hours: FloatArray | None,
) -> SpotOutcome:  # fmt: skip
    """Run the renewal model on spot candidates; with a deadline also its distribution."""
    risk, assume = context.risk, context.assumptions
    count = nodes.astype(np.float64)
    return spot_outcome(
        work,
        rate_per_hour=risk.rate_per_hour[rows],
        nodes=count,
        gang_exponent=risk.gang_exponent[rows],
        mean_wait_hours=risk.mean_wait_hours[rows] * count ** risk.wait_exponent[rows],
        checkpoint_interval_hours=interval,
        checkpoint_write_hours=write,
        restart_hours=context.restart_hours,
        notice_hours=risk.notice_hours[rows],
        deadline_hours=np.inf if deadline_hours is None else deadline_hours,
        frailty_sd=assume.spot_frailty_sd,
        with_distribution=deadline_hours is not None,
    )


def meet_probability(
    context: Context, rows: IntArray, nodes: IntArray, work: FloatArray, sigma: FloatArray, write: FloatArray,
    interval: FloatArray, available_hours: FloatArray,
) -> FloatArray:  # fmt: skip
    """Probability that the work ends within `available_hours`, over model error and interruptions.

    The step time is log-normal around the prediction (`sigma` of its logarithm). Steady capacity: in closed form;
    spot: the renewal model averaged over the step time with a 5-point Gauss-Hermite rule.
    """
    out = np.zeros(len(rows))
    spot = context.is_spot[rows]
    steady = np.flatnonzero(~spot & (available_hours > 0))
    need = steady_hours(context, nodes[steady], work[steady], write[steady], interval[steady])
    out[steady] = _normal_cdf(np.log(available_hours[steady] / need), sigma[steady])
    at = np.flatnonzero(spot & (available_hours > 0))
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        if not len(at):
            break
        slowed = work[at] * np.exp(sigma[at] * node)
        outcome = spot_outcome_of(
            context, rows[at], nodes[at], slowed, write[at], interval[at], available_hours[at]
        )
        out[at] += weight * outcome.p_meet_deadline
    return np.clip(out, 0.0, 1.0)


def _normal_cdf(x: FloatArray, sigma: FloatArray) -> FloatArray:
    from math import erf

    certain = sigma <= 0
    scaled = x / np.where(certain, 1.0, sigma) / np.sqrt(2.0)
    # erf has no numpy form; many candidates share a value only rarely, and a thousand calls cost a millisecond
    values = np.asarray([erf(value) for value in scaled.tolist()], dtype=np.float64)
    return np.where(certain, (x >= 0).astype(np.float64), 0.5 * (1.0 + values))
