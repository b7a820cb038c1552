"""What spot with on-demand to fall back on comes to, for thousands of candidates at once.

The policy: run on spot, wait while there is none, and change to on-demand for good at the last moment at which
on-demand still finishes in time (`planner.spot.policy.guard`). With A hours available, work of W hours that takes g W
on on-demand, and c hours from asking for on-demand to progress on it, the waits and losses that can be afforded are

    S = A - c - g W.

Let X(x) be what waits, restarts and repeated work add while the first x hours of work are done on spot; X rises with x.
The change comes before x is done exactly when X(x) > S, so the work left to on-demand is, in the mean,

    E[work on demand] = integral over x from 0 to W of P(X(x) > S) dx,

with the distribution of X of the renewal model (`planner.spot.distribution`), by Gauss-Legendre quadrature. Whoever
changes has had S of waits and losses by then, so in the mean they are E[min(X(W), S)]. Spot is paid in proportion to
the work it does (Wald), but no more losses than that. A policy that looks ahead does a little better
(`python -m benchmarks.spot_launch`); the figure is then a cautious one.

How fast the job runs is not known before: a slow run has more work and less slack, and costs more than a fast one
saves. So all is averaged over the error of the predicted work, a factor s that is log-normal with mean 1 (standard
deviation of its logarithm sd). Slow runs, s > s* = 1 + S / (g W), are on-demand from the start: with
z* = ln(s*) / sd + sd / 2 they are 1 - Phi(z*) of all and do 1 - Phi(z* - sd) of the work. The others are summed by
Gauss-Legendre over their quantiles.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from planner.normal.arrays import normal_cdf_by_table, normal_quantile_by_table
from planner.records import record
from planner.spot.distribution import describe_elapsed, scaled_job

if TYPE_CHECKING:
    from catalogs.tables.table import Floats
    from planner.spot.distribution import SpotPool
    from planner.spot.moments import Job


POINTS = 5  # of the work, at one speed
SPEEDS, POINTS_EACH = 3, 2  # of the error of the speed, and of the work at each
_FAR = 9.0  # standard deviations: beyond it nothing is left of a normal distribution


@record(frozen=True, eq=False)
class Fallback:
    """Expected course, per candidate, shape `(n,)`.

    Attributes:
        work_share: share of the work that on-demand does.
        p_change: probability that on-demand is needed.
        wasted_hours: waits, restarts and repeated work on spot.
    """

    work_share: Floats
    p_change: Floats
    wasted_hours: Floats


def mean_fallback(
    job: Job, pool: SpotPool, slack_hours: Floats, slack_loss_hours: Floats, log_sd: Floats
) -> Fallback:
    """Expect how much of the work on-demand does, in the mean over the error of the predicted speed.

    Args:
        job: the work on spot as predicted, arrays of shape `(n,)`.
        pool: its capacity.
        slack_hours: S at the predicted speed, shape `(n,)`.
        slack_loss_hours: what work that takes s times as long leaves less of it, over (s - 1): the work on on-demand as
            predicted, less where slow work has longer; shape `(n,)`.
        log_sd: standard deviation of the log error of the work, shape `(n,)`.
    """
    edge = _edge(1.0 + slack_hours / slack_loss_hours, log_sd)
    some, of_work = normal_cdf_by_table(edge), normal_cdf_by_table(edge - log_sd)
    levels, weights = unit_quadrature(SPEEDS)
    factors = np.exp(log_sd * normal_quantile_by_table(np.outer(levels, some)) - log_sd * log_sd / 2.0)
    mean = (weights[:, None] * factors).sum(axis=0)
    parts = of_work * weights[:, None] * factors / mean
    left = _at_speeds(job, pool, factors, slack_hours + slack_loss_hours * (1.0 - factors), POINTS_EACH)
    likely = weights[:, None] * some
    return Fallback(
        1.0 - of_work + (parts * left.work_share).sum(axis=0),
        1.0 - some + (likely * left.p_change).sum(axis=0),
        (likely * left.wasted_hours).sum(axis=0),
    )


def _edge(slowest: Floats, log_sd: Floats) -> Floats:
    """Standard normal level of the slowest run that spot may still begin."""
    known = np.where(slowest >= 1.0, _FAR, -_FAR)
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.log(np.maximum(slowest, 0.0)) / log_sd + log_sd / 2.0
    return np.clip(np.where(log_sd > 0, level, known), -_FAR, _FAR)


def fallback(job: Job, pool: SpotPool, slack_hours: Floats, points: int = POINTS) -> Fallback:
    """Expect how much of the work on-demand does at one speed.

    Args:
        job: the work on spot with its checkpoints, arrays of shape `(n,)`.
        pool: its capacity.
        slack_hours: S, the waits and losses that can be afforded, shape `(n,)`; negative: only on-demand is in time.
        points: parts of the work looked at.
    """
    left = _at_speeds(job, pool, np.ones((1, len(slack_hours))), slack_hours[None], points)
    return Fallback(left.work_share[0], left.p_change[0], left.wasted_hours[0])


def _at_speeds(job: Job, pool: SpotPool, factors: Floats, slack: Floats, points: int) -> Fallback:
    """The same of work scaled by each of `factors`, with the slack that it leaves; all of shape `(k, n)`.

    At once, as what a checkpoint interval comes to is the same at every scale.
    """
    nodes, weights = unit_quadrature(points)
    shares = np.append(nodes, 1.0)
    scales = shares[:, None, None] * factors
    stacked = scaled_job(job, scales.reshape(len(shares) * len(factors), len(job.work)))
    elapsed = describe_elapsed(stacked, pool).reshape(scales.shape)
    until = elapsed.floor + slack
    moved = elapsed.moved_cdf(until)
    kept = falling(np.where(slack < 0, 0.0, elapsed.cdf(until, moved)))
    change = 1.0 - kept[-1]
    within = elapsed.scale(-1).excess_within(until[-1], moved[-1])
    wasted = within + np.where(change > 0, np.maximum(slack, 0.0), 0.0) * change
    done = (weights[:, None, None] * kept[:-1]).sum(axis=0)
    return Fallback(np.clip(1.0 - done, 0.0, change), change, wasted)


def falling(kept: Floats) -> Floats:
    """P(X(x) <= S) never rises with x, the first axis; its approximation may, by a little."""
    return np.maximum.accumulate(kept[::-1], axis=0)[::-1]


@lru_cache(maxsize=4)
def unit_quadrature(points: int) -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss-Legendre on 0..1, by Golub and Welsch (1969)."""
    order = np.arange(1.0, points)
    beside = order / np.sqrt(4.0 * order * order - 1.0)
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return (nodes + 1.0) / 2.0, vectors[0] ** 2
