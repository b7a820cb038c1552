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
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from planner.records import record
from planner.spot.distribution import describe_elapsed, scaled_job

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.spot.distribution import SpotPool
    from planner.spot.moments import Job

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

POINTS = 5


@record(frozen=True, eq=False)
class Fallback:
    """Expected course, per candidate, shape `(n,)`.

    Attributes:
        work_share: share of the work that on-demand does.
        p_change: probability that on-demand is needed.
        wasted_hours: waits, restarts and repeated work on spot.
    """

    work_share: FloatArray
    p_change: FloatArray
    wasted_hours: FloatArray


def fallback(job: Job, pool: SpotPool, slack_hours: FloatArray) -> Fallback:
    """Expect how much of the work on-demand does.

    Args:
        job: the work on spot with its checkpoints, arrays of shape `(n,)`.
        pool: its capacity.
        slack_hours: S, the waits and losses that can be afforded, shape `(n,)`; negative: only on-demand is in time.
    """
    nodes, weights = unit_quadrature(POINTS)
    shares = np.append(nodes, 1.0)
    elapsed = describe_elapsed(scaled_job(job, shares[:, None]), pool)
    kept = falling(np.where(slack_hours < 0, 0.0, elapsed.cdf(elapsed.floor + slack_hours)))
    change, slack = 1.0 - kept[-1], np.maximum(slack_hours, 0.0)
    whole = elapsed.scale(-1)
    within = whole.excess_within(whole.floor + slack_hours)
    wasted = within + np.where(change > 0, slack, 0.0) * change
    return Fallback(np.clip(1.0 - weights @ kept[:-1], 0.0, change), change, wasted)


def falling(kept: FloatArray) -> FloatArray:
    """P(X(x) <= S) never rises with x, the first axis; its approximation may, by a little."""
    return np.maximum.accumulate(kept[::-1], axis=0)[::-1]


@lru_cache(maxsize=2)
def unit_quadrature(points: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of Gauss-Legendre on 0..1, by Golub and Welsch (1969)."""
    order = np.arange(1.0, points)
    beside = order / np.sqrt(4.0 * order * order - 1.0)
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return (nodes + 1.0) / 2.0, vectors[0] ** 2
