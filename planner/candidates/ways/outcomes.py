"""The spread of what one candidate on spot may come to: a grid of outcomes over speed and over interruptions.

The speed is log-normal around the prediction; for each of its quantiles the waits and losses run through the quantiles
of the renewal model. Waits for other capacity are spread over these outcomes by `wait_levels`, independently of both.
With on-demand to fall back on, an outcome at quantile u changes when P(X(x) <= S) falls to u
(`planner.candidates.ways.fallback`): what the run does before and after follows, and with it hours and money.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.ways.fallback import falling
from planner.normal.arrays import normal_quantile_by_table
from planner.records import record
from planner.spot.distribution import SpotPool, describe_elapsed, scaled_job
from planner.spot.meet import calibration
from planner.spot.moments import split_job

if TYPE_CHECKING:
    from catalogs.tables.table import Floats
    from planner.spot.moments import Job


SPEEDS, LUCK = 9, 41  # equally likely ones of each
_SHARES = 24
_LONGEST_HOURS = 1e6
_GOLDEN = (5.0**0.5 - 1.0) / 2.0


@record(frozen=True, eq=False)
class Outcomes:
    """Equally likely outcomes, shape `(n_outcomes,)`, hours: elapsed from capacity asked for to the last step, paid."""

    elapsed: Floats
    spot: Floats
    on_demand: Floats


@record(frozen=True)
class Task:
    """One candidate, hours; `steady` is the work on on-demand, `sigma` the log sd of the speed.

    `room`: from the first request to the deadline; `restart`, `acquire`: of on-demand; infinite room: no fall-back.
    `later`: work that takes x times as long as predicted has (x - 1) times so many hours more.
    `late`: by how much on-demand is later than `acquire`, of every outcome, shape `(n_outcomes,)` or `()`.
    """

    work: float
    interval: float
    write: float
    restart: float
    notice: float
    steady: float
    sigma: float
    room: float
    acquire: float
    has_fallback: bool
    late: Floats | float = 0.0
    later: float = 0.0

    def slack(self, slower: Floats) -> Floats:
        """Waits and losses that can be afforded where work takes `slower` times as long."""
        room = self.room - self.restart - self.acquire - self.later
        return room - (self.steady - self.later) * slower


def wait_levels() -> Floats:
    """Levels of the wait of every outcome: multiples of the golden ratio, even in each part of the grid."""
    return np.asarray(((np.arange(SPEEDS * LUCK) + 0.5) * _GOLDEN) % 1.0, dtype=np.float64)


def possible_outcomes(task: Task, pool: SpotPool) -> Outcomes:
    """All outcomes of a candidate on the pool of one gang, arrays of shape `(1,)`."""
    speed = normal_quantile_by_table((np.arange(SPEEDS) + 0.5) / SPEEDS)
    # levels that are as likely as each other by the calibrated chances
    luck = calibration("renewal").invert((np.arange(LUCK) + 0.5) / LUCK)
    slower = np.exp(task.sigma * speed)
    one = [np.asarray([value]) for value in (task.work, task.interval, task.write, task.restart, task.notice)]
    job = split_job(*one)
    whole = describe_elapsed(scaled_job(job, slower[:, None]), pool)
    elapsed, paid = (np.minimum(hours.ravel(), _LONGEST_HOURS) for hours in whole.quantile(luck))
    floor, paid_share = (np.repeat(column, LUCK) for column in (whole.floor, whole.paid_share))
    if not task.has_fallback:
        return Outcomes(elapsed, paid, np.zeros_like(elapsed))
    steady = task.steady * np.repeat(slower, LUCK)
    slack = task.slack(np.repeat(slower, LUCK))
    changed = (elapsed - floor > slack) | (slack < 0)
    share = _changes(job, pool, task, slower, luck)
    before = floor * share
    excess = np.maximum(slack, 0.0)
    return Outcomes(
        elapsed=np.where(
            changed,
            before + excess + steady * (1.0 - share) + task.restart + task.acquire + task.late,
            elapsed,
        ),
        spot=np.where(changed, np.where(share > 0, before + excess * paid_share, 0.0), paid),
        on_demand=np.where(changed, steady * (1.0 - share) + task.restart, 0.0),
    )


def _changes(job: Job, pool: SpotPool, task: Task, slower: Floats, luck: Floats) -> Floats:
    """Share of the work done on spot before an outcome changes, shape `(n_speeds * n_luck,)`."""
    shares = np.arange(1, _SHARES + 1) / _SHARES
    part = describe_elapsed(scaled_job(job, np.outer(slower, shares).reshape(-1, 1)), pool)
    slack = np.repeat(task.slack(slower), _SHARES)[:, None]
    kept = np.where(slack < 0, 0.0, part.cdf(part.floor + slack)).reshape(len(slower), _SHARES)
    kept = falling(kept.T).T
    # a row falls with the share: read from the far end, with nothing done at u = 1
    done = np.append(shares[::-1], 0.0)
    return np.concatenate([np.interp(luck, np.append(row[::-1], 1.0), done) for row in kept])
