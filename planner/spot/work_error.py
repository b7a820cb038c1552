"""Probability of meeting a deadline on spot capacity where the predicted work may be wrong.

The error scales the whole run: log-normal with median 1, averaged by Gauss-Hermite quadrature over the distribution of
`planner.spot.distribution`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.normal.arrays import normal_cdf_by_table
from planner.records import record
from planner.spot.distribution import MOST_STACKED, SpotPool, describe_elapsed, hermite, scaled_job
from planner.spot.moments import Job

_WORK_POINTS = 7
_CLEARLY = 1e-9  # beyond any rounding of a chance


def meet_probability(
    job: Job, pool: SpotPool, deadline: Floats, work_log_sd: Floats, more: Floats,
    needed: Floats | None = None,
) -> Floats:  # fmt: skip
    """P(elapsed + more <= deadline), calibrated, shape `(n,)`; 1 where the deadline is infinite.

    Args:
        job: the job, arrays of shape `(n,)`.
        pool: capacity, of the same shape.
        deadline: hours from the request for capacity.
        work_log_sd: standard deviation of the log error of the predicted work, shape `(n,)`; 0 for none.
        more: hours, in proportion to the work, that must be left besides, shape `(n,)`.
        needed: where only this matters: whether the probability reaches so much, shape `(n,)`. What is clearly above or
            below may then be a bound on that side.
    """
    endless = np.isposinf(deadline)
    if not work_log_sd.any():
        return np.where(endless, 1.0, describe_elapsed(job, pool).chance(deadline - more))
    # The atom moves with the work: P((floor + more) e^(sd z) <= deadline) in closed form.
    floor = job.floor_hours + more
    room = np.log(np.maximum(deadline, 1e-300) / np.maximum(floor, 1e-300))
    sure = (work_log_sd == 0.0) | (floor == 0.0)
    z = np.where(
        sure, np.where(deadline >= floor * (1.0 - 1e-9), 9.0, -9.0), room / np.where(sure, 1.0, work_log_sd)
    )
    at = _AtPoints(job, pool, deadline, work_log_sd, more, normal_cdf_by_table(z))
    return np.where(endless, 1.0, at.mean() if needed is None or at.is_small else at.bounded(needed))


@record(frozen=True, eq=False)
class _AtPoints:
    """The question of `meet_probability` at the points of the error of the work.

    `in_time`: share of the chance of the undisturbed time that is in time, by the closed form.
    """

    job: Job
    pool: SpotPool
    deadline: Floats
    work_log_sd: Floats
    more: Floats
    in_time: Floats

    @property
    def is_small(self) -> bool:
        """All points in one call while that is small: a call costs a millisecond however few the rows."""
        return _WORK_POINTS * len(self.deadline) <= MOST_STACKED

    def chances(self, nodes: Sequence[float]) -> tuple[Floats, Floats]:
        """Chances to be in time with an excess, and of the undisturbed time, at points, shapes `(p, n)`."""
        factor = np.exp(np.outer(nodes, self.work_log_sd))
        elapsed = describe_elapsed(scaled_job(self.job, factor), self.pool)
        return elapsed.moved_chance(self.deadline - factor * self.more), elapsed.still_chance

    def mean(self) -> Floats:
        """The chance, averaged over all points."""
        points = hermite(_WORK_POINTS)
        parts: list[tuple[Floats, Floats]] = []
        at_once = len(points) if self.is_small else 1
        for first in range(0, len(points), at_once):
            nodes = [node for node, _ in points[first : first + at_once]]
            parts += zip(*self.chances(nodes), strict=True)
        return self._averaged(parts)

    def bounded(self, needed: Floats) -> Floats:
        """The chance where it is close to what is needed; elsewhere a bound, from as few points as tell the side.

        The heaviest points come first. Each adds at most its weight.
        """
        points, left = hermite(_WORK_POINTS), 1.0
        out, rows, low = np.empty(len(needed)), np.arange(len(needed)), np.zeros(len(needed))
        at, parts = self, dict[int, tuple[Floats, Floats]]()
        for number in sorted(range(len(points)), key=lambda place: -points[place][1]):
            (moved,), (still,) = at.chances([points[number][0]])
            parts[number] = moved, still
            low = low + points[number][1] * (still * at.in_time + moved)
            left -= points[number][1]
            enough, lacking = low > needed + _CLEARLY, low + left < needed - _CLEARLY
            if len(parts) == len(points) or not (enough | lacking).any():
                continue
            out[rows[enough]], out[rows[lacking]] = low[enough], (low + left)[lacking]
            kept = np.flatnonzero(~(enough | lacking))
            at, rows, low, needed = at._take(kept), rows[kept], low[kept], needed[kept]
            parts = {key: (one[kept], other[kept]) for key, (one, other) in parts.items()}
        out[rows] = at._averaged([parts[number] for number in range(len(points))])
        return out

    def _averaged(self, parts: Sequence[tuple[Floats, Floats]]) -> Floats:
        moved, still = np.zeros_like(self.deadline), np.zeros_like(self.deadline)
        for (_, weight), (one, other) in zip(hermite(_WORK_POINTS), parts, strict=True):
            moved += weight * one
            still += weight * other
        return np.minimum(still * self.in_time + moved, 1.0)

    def _take(self, at: Ints) -> _AtPoints:
        return _AtPoints(
            self.job.take(at), self.pool.take(at), self.deadline[at], self.work_log_sd[at], self.more[at],
            self.in_time[at],
        )  # fmt: skip
