"""Hours of the work itself with checkpoints and interruptions: exact for steady capacity, renewal model for spot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.normal.arrays import normal_cdf
from planner.records import record
from planner.spot.renewal import SpotOutcome, p_meet_deadline, spot_outcome, young_interval_hours

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.asked.model import Asked
    from planner.candidates.context import Context
    from planner.spot.distribution import SpotPool
    from planner.spot.risk import SpotRisk


@record(frozen=True, eq=False)
class Run:
    """Expected course of the work, shape `(n,)`; hours count from capacity asked for to the last step."""

    elapsed_hours: Floats
    paid_hours: Floats
    interruptions: Floats
    lost_hours: Floats
    interval_hours: Floats


def run_candidates(context: Context, rows: Ints, nodes: Ints, work: Floats, write: Floats) -> Run:
    """Expect the course of the work on each candidate.

    Args:
        context: risk of the offers, checkpoint settings.
        rows: offer per candidate, shape `(n,)`.
        nodes: instances.
        work: hours of steps, evaluation and what comes beside them.
        write: hours of one checkpoint.
    """
    at = np.flatnonzero(context.market.is_spot[rows])
    pool = context.gang_risk(rows[at], nodes[at]).pool
    interval = checkpoint_interval(context, rows, nodes, write, pool)
    steady = steady_hours(context.asked, nodes, work, write, interval)
    failures = context.asked.assumptions.machine_failures_per_node_hour * nodes * steady
    lost = steady - work * (1.0 + write / interval)
    run = Run(steady.copy(), steady, failures, lost, interval)
    if not len(at):
        return run
    outcome = spot_outcome(
        work[at],
        **model_arguments(context.asked, context.spot, rows[at], write[at], interval[at], pool),
    )
    run.elapsed_hours[at] = outcome.expected_elapsed_hours
    run.paid_hours[at] = outcome.expected_paid_hours
    run.interruptions[at] = outcome.expected_interruptions
    run.lost_hours[at] = outcome.expected_lost_hours
    return run


def steady_hours(asked: Asked, nodes: Ints, work: Floats, write: Floats, interval: Floats) -> Floats:
    """Hours of work on capacity nobody takes back: checkpoints, and machine failures that cost half an interval.

    First order in the failure rate: `work (1 + delta/tau) (1 + lambda (tau/2 + restart))`, lambda per cluster-hour.
    """
    rate = asked.assumptions.machine_failures_per_node_hour * nodes
    loss = rate * (interval / 2.0 + asked.restart_hours(write))
    return work * (1.0 + write / interval) * (1.0 + loss)


def checkpoint_interval(
    context: Context, rows: Ints, nodes: Ints, write: Floats, pool: SpotPool | None = None
) -> Floats:
    """Hours between checkpoints: the workload's, else Young's within the assumed shortest and longest.

    What interrupts without a warning long enough for a checkpoint decides: where one fits, machine failures alone.

    Args:
        context: assumptions, risk of the offers.
        rows: offer per candidate, shape `(n,)`.
        nodes: instances.
        write: hours of one checkpoint.
        pool: of the spot candidates among them, where it is known already.
    """
    longest = context.asked.assumptions.checkpoint_interval_s / 3600.0
    shortest = min(context.asked.assumptions.checkpoint_min_interval_s / 3600.0, longest)
    if context.asked.job.interval_hours is not None:
        return np.full(len(rows), context.asked.job.interval_hours)
    rate = context.asked.assumptions.machine_failures_per_node_hour * nodes
    at = np.flatnonzero(context.market.is_spot[rows])
    if len(at):
        taken = (context.gang_risk(rows[at], nodes[at]).pool if pool is None else pool).rate
        rate[at] = np.where(write[at] <= context.spot.figures.notice_hours[rows[at]], rate[at], taken)
    mtbf = 1.0 / np.maximum(rate, 1e-9)
    return np.clip(young_interval_hours(write, mtbf), shortest, longest)


def spot_outcome_of(
    context: Context,
    rows: Ints,
    nodes: Ints,
    work: Floats,
    write: Floats,
    interval: Floats,
) -> SpotOutcome:
    """Run the renewal model on spot candidates."""
    pool = context.gang_risk(rows, nodes).pool
    return spot_outcome(work, **model_arguments(context.asked, context.spot, rows, write, interval, pool))


def model_arguments(
    asked: Asked, spot: SpotRisk, rows: Ints, write: Floats, interval: Floats, pool: SpotPool
) -> dict[str, Any]:
    """What the renewal model needs to know of spot offers `rows`, their checkpoints and their capacity."""
    return {
        "rate_per_hour": pool.rate,
        "nodes": 1.0,  # the rate is the gang's
        "gang_exponent": 0.0,
        "mean_wait_hours": pool.wait,
        "first_wait_hours": pool.first_wait,
        "checkpoint_interval_hours": interval,
        "checkpoint_write_hours": write,
        "restart_hours": asked.restart_hours(write),
        "notice_hours": spot.figures.notice_hours[rows],
        "frailty_sd": pool.frailty_sd,
        "dispersion": pool.dispersion,
    }


def meet_probability(
    context: Context, rows: Ints, nodes: Ints, work: Floats, sigma: Floats, write: Floats,
    interval: Floats, available_hours: Floats, later_hours: float | Floats,
) -> Floats:  # fmt: skip
    """Probability that the work ends within `available_hours`, over model error and interruptions.

    The step time is log-normal around the prediction (`sigma` of its logarithm). Steady capacity: in closed form;
    spot: the renewal model averaged over the step time. Slow work may have longer (`later_hours`, as of `Context`).
    """
    out, later = np.zeros(len(rows)), np.broadcast_to(np.asarray(later_hours, dtype=np.float64), len(rows))
    spot = context.market.is_spot[rows]
    steady = np.flatnonzero(~spot & (available_hours > 0))
    need = steady_hours(context.asked, nodes[steady], work[steady], write[steady], interval[steady])
    room, need = available_hours[steady] - later[steady], need - later[steady]
    out[steady] = _chance(np.log(np.maximum(room, 1e-300) / need), sigma[steady])
    at = np.flatnonzero(spot & (available_hours > 0))
    if len(at):
        out[at] = p_meet_deadline(
            work[at],
            deadline_hours=available_hours[at],
            work_log_sd=sigma[at],
            later_hours=later[at],
            **model_arguments(
                context.asked,
                context.spot,
                rows[at],
                write[at],
                interval[at],
                context.gang_risk(rows[at], nodes[at]).pool,
            ),
        )
    return np.clip(out, 0.0, 1.0)


def _chance(room: Floats, sigma: Floats) -> Floats:
    """P(a normal variable of standard deviation `sigma` stays within `room`), 0 or 1 where there is no spread."""
    certain = sigma <= 0
    return np.where(certain, room >= 0, normal_cdf(room / np.where(certain, 1.0, sigma)))
