"""What a policy would have cost on recorded or generated availability: many futures of one job at once, tick by tick.

Within a tick, in this order: a run on spot whose zone is gone is interrupted (its work so far is kept; what was lost
since the checkpoint is part of `restart_hours`); the policy decides; a change of instance starts a restart during
which the instance is paid but makes no progress, and a start in another region than the checkpoint's pays
`egress_usd`; the tick is paid in full at the price in force. A restart may end within a tick: the rest of it is
progress. Asking for spot where there is none is a wait. On-demand may take `on_demand_acquire_hours` to be obtained:
they are not paid. A run that misses its deadline is charged what is left of it on on-demand, so that no mean cost
improves by missing.

The futures step through the ticks together; the policy decides for all of them in one call. A test holds every policy
equal to a replay of one run at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Bools, Floats, Ints
from planner.errors import InputError
from planner.records import record
from planner.spot.policy.job import SpotJob
from planner.spot.policy.registry import make_policy
from planner.spot.policy.view import (
    EPS_HOURS,
    IDLE,
    ON_DEMAND,
    SPOT,
    ArrayPolicy,
    JobView,
    RunStates,
    whole_ticks,
)

if TYPE_CHECKING:
    from planner.spot.hazards import HazardTable

HISTORY_TICKS = 240
"""How far back a spell's age is counted: 24 h at the usual tick."""


@record(frozen=True, eq=False)
class BatchReplay:
    """What happened in each of `n` futures; each of shape `(n,)`.

    Attributes:
        cost_usd: all that was paid; for a missed deadline plus what is left, on-demand.
        finished: whether the work was done by the deadline.
        finish_hours: from launch to the end of the last tick, NaN where the deadline was missed.
        spot_hours, on_demand_hours: paid.
        interruptions, starts: counted; a start is a new instance, spot or on-demand.
        lost_hours: paid without progress (restarts).
        work_left_hours: 0 when finished.
        on_demand_asked: whether on-demand was asked for on the way (a run that already had it asks only after it left).
    """

    cost_usd: Floats
    finished: Bools
    finish_hours: Floats
    spot_hours: Floats
    on_demand_hours: Floats
    interruptions: Ints
    starts: Ints
    lost_hours: Floats
    work_left_hours: Floats
    on_demand_asked: Bools


def replay_futures(
    job: SpotJob,
    policy_name: str,
    tables: Mapping[str, HazardTable],
    up: Bools,
    prices: npt.ArrayLike | None = None,
    work: Floats | None = None,
) -> BatchReplay:
    """Run the named policy through every future.

    Args:
        job: what must be done.
        policy_name: a key of `planner.spot.policy.registry.POLICIES`.
        tables: hazards per zone name.
        up: shape `(n, n_zones, ticks)`, from launch to the deadline at least.
        prices: USD per hour of the gang, shape `(n_zones, ticks)` or `(n, n_zones, ticks)`; None, or NaN
            in a tick, takes those at launch.
        work: hours of undisturbed work in each future, shape `(n,)`; None: the job's.
    """
    return replay_policy(job, make_policy(policy_name, job, tables), up, prices, work)


def replay_policy(
    job: SpotJob,
    policy: ArrayPolicy,
    up: npt.ArrayLike,
    prices: npt.ArrayLike | None = None,
    work: Floats | None = None,
) -> BatchReplay:
    """Run a policy that is already made through every future; see `replay_futures`."""
    futures = np.asarray(up, dtype=bool)
    n, _, given = futures.shape
    ticks = check_length(job, given, 0)
    usd = _prices(job, prices)
    held = np.zeros(futures.shape[:2], dtype=np.int64)
    state = futures[:, :, 0]
    if n:
        before, spell = spell_ticks(job, futures[0], 0)
        known = np.array([zone.name in job.history for zone in job.zones])
        state = np.where(known, before, state)
        held = np.where(known, spell, held)
    runs = Runs(job, policy.view, n)
    if work is not None:
        runs.work = work.copy()
    for tick in range(ticks):
        now = futures[:, :, tick]
        held = np.where(now == state, held + 1, 1)
        state = now
        runs.step(tick, policy, now, held, usd[..., tick])
        if not runs.active.any():
            break
    return runs.result()


def _prices(job: SpotJob, prices: npt.ArrayLike | None) -> Floats:
    """Shape `(1 or n, n_zones, ticks)`."""
    usd = zone_prices(job, prices, JobView(job).deadline_ticks)
    return usd[None] if usd.ndim == 2 else usd


_STATE = (
    "mode", "zone", "region", "left", "wait", "work", "cost", "spot", "on_demand", "lost", "interruptions", "starts",
    "finish", "active", "asked",
)  # fmt: skip
_MOST_KEPT = 0.85  # share of the runs followed that is active; below it those that are done are set aside


class Runs:
    """The bookkeeping of all runs from launch on; a run that is done stays as it is.

    Callers that begin later set `mode`, `zone`, `left`, `region` and `work` before the first step. Later the arrays are
    those of the runs still followed, at least the active ones; `result` has all.

    Args:
        job: what must be done.
        view: of it.
        n: runs.
        futures: that they go through, set behind set; default: one each.
    """

    def __init__(self, job: SpotJob, view: JobView, n: int, futures: int | None = None) -> None:
        self.job, self.view = job, view
        self.mode: Ints = np.full(n, IDLE)
        self.zone: Ints = np.full(n, -1)
        self.region: Ints = np.full(n, -1)
        self.left, self.wait = np.zeros(n), np.zeros(n)
        self.work = np.full(n, job.work_hours)
        self.cost, self.spot, self.on_demand, self.lost = (np.zeros(n) for _ in range(4))
        self.interruptions: Ints = np.zeros(n, dtype=np.int64)
        self.starts: Ints = np.zeros(n, dtype=np.int64)
        self.finish = np.full(n, np.nan)
        self.active = np.ones(n, dtype=bool)
        self.asked = np.zeros(n, dtype=bool)
        self._aside: dict[str, npt.NDArray[Any]] = {}
        self._followed: Ints = np.arange(n)
        self._futures = n if futures is None else futures

    def step(self, tick: int, policy: ArrayPolicy, up: Bools, held: Ints, usd: Floats) -> None:
        """One tick of every run.

        Args:
            tick: its number since launch.
            policy: decides.
            up: whether zones are up, shape `(n_futures, n_zones)`.
            held: ticks for which they have been so, this one included, shape `(n_futures, n_zones)`.
            usd: spot prices, shape `(n_futures or 1, n_zones)`.
        """
        if self._aside or len(self._followed) != self._futures:
            future = self._followed % self._futures
            up, held = up[future], held[future]
            usd = usd if len(usd) == 1 else usd[future]
        rows = np.arange(len(self.mode))
        gone = ((self.mode == SPOT) & ~up[rows, self.zone] & self.active).nonzero()[0]
        self.interruptions[gone] += 1
        self.mode[gone], self.zone[gone] = IDLE, -1
        self.wait[gone] = self.left[gone] = 0.0
        hours = self.job.tick_hours
        at = self.active.nonzero()[0]  # nothing is asked for runs that are done
        mode, zone = self.mode.copy(), self.zone.copy()
        mode[at], zone[at] = policy.decide_runs(self._seen(at, tick * hours, up, held, usd))
        refused = ((mode == SPOT) & ~up[rows, zone]).nonzero()[0]
        mode[refused], zone[refused] = IDLE, -1
        self._take(mode, zone)
        self._pass_tick(rows, usd)
        done = self.active & (self.work <= EPS_HOURS)
        if done.any():
            self.finish[done] = (tick + 1) * hours
            self.active &= ~done
            if np.count_nonzero(self.active) < _MOST_KEPT * len(self.active):
                self._set_aside()

    def _seen(self, at: Ints, elapsed_hours: float, up: Bools, held: Ints, usd: Floats) -> RunStates:
        """What the policy sees of the runs `at`."""
        which: Ints | slice = slice(None) if len(at) == len(self.mode) else at
        return RunStates(
            elapsed_hours,
            np.asarray(self.job.work_hours - self.work[which]),
            self.mode[which],
            self.zone[which],
            self.left[which],
            self.region[which],
            up[which],
            np.asarray(held[which] * self.job.tick_hours, dtype=np.float64),
            usd if len(usd) == 1 else usd[which],
        )

    def _set_aside(self) -> None:
        """Follow the active runs only."""
        self._keep_state()
        still = np.flatnonzero(self.active)
        self._followed = self._followed[still]
        for name in _STATE:
            setattr(self, name, getattr(self, name)[still])

    def _keep_state(self) -> None:
        """Write the runs followed among those set aside."""
        for name in _STATE:
            if name not in self._aside:
                self._aside[name] = getattr(self, name).copy()
            else:
                self._aside[name][self._followed] = getattr(self, name)

    def _take(self, mode: Ints, zone: Ints) -> None:
        """Go on with what was decided; what stays as it was needs nothing."""
        job = self.job
        changed = (((mode != self.mode) | (zone != self.zone)) & self.active).nonzero()[0]
        self.wait[changed] = self.left[changed] = 0.0
        fresh = changed[mode[changed] != IDLE]
        rented = fresh[mode[fresh] == ON_DEMAND]
        self.wait[rented] = job.on_demand_acquire_hours
        self.left[fresh] = self.wait[fresh] + job.restart_hours
        self.starts[fresh] += 1
        self.asked[rented] = True
        on_spot = fresh[mode[fresh] == SPOT]
        there, before = self.view.region[zone[on_spot]], self.region[on_spot]
        self.cost[on_spot] += ((before >= 0) & (before != there)) * job.egress_usd
        self.region[on_spot] = there
        self.mode, self.zone = mode, zone

    def _pass_tick(self, rows: Ints, usd: Floats) -> None:
        tick, job = self.job.tick_hours, self.job
        running = self.active & (self.mode != IDLE)
        paid = running * (tick - np.minimum(self.wait, tick))
        progress = running * np.maximum(tick - self.left, 0.0)
        if job.on_demand_acquire_hours:
            self.wait = np.maximum(self.wait - tick * running, 0.0)
        self.left = np.maximum(self.left - tick * running, 0.0)
        self.left[self.left < EPS_HOURS] = 0.0
        spot = paid * (self.mode == SPOT)
        rented = paid - spot
        self.spot += spot
        self.on_demand += rented
        # the price of what is not used may be unknown
        spot_usd_per_hour = usd[0, self.zone] if len(usd) == 1 else usd[rows, self.zone]
        used_usd = np.where(spot > 0, spot_usd_per_hour, 0.0)
        self.cost += spot * used_usd + rented * job.on_demand_usd_per_hour
        self.lost += np.maximum(paid - progress, 0.0)
        self.work = self.work - progress

    def result(self) -> BatchReplay:
        """The answer; runs still active missed the deadline."""
        job = self.job
        if self._aside:
            self._keep_state()
            self._followed = np.arange(len(self._aside["active"]))
            for name in _STATE:
                setattr(self, name, self._aside[name])
        left = np.where(self.active, self.work, 0.0)
        charged = self.active * (left + job.restart_hours) * job.on_demand_usd_per_hour
        return BatchReplay(
            cost_usd=self.cost + charged,
            finished=~self.active,
            finish_hours=self.finish,
            spot_hours=self.spot,
            on_demand_hours=self.on_demand,
            interruptions=self.interruptions,
            starts=self.starts,
            lost_hours=self.lost,
            work_left_hours=left,
            on_demand_asked=self.asked,
        )


def zone_prices(job: SpotJob, prices: npt.ArrayLike | None, ticks: int) -> Floats:
    """Spot prices of all ticks, shape `(n_zones, ticks)`: those given, and where there is none the prices at launch."""
    at_launch = np.array([zone.usd_per_hour for zone in job.zones])[:, None]
    if prices is None:
        return np.broadcast_to(at_launch, (len(job.zones), ticks))
    usd = np.asarray(prices, dtype=np.float64)
    return np.where(np.isnan(usd), at_launch, usd) if np.isnan(usd).any() else usd


def spell_ticks(job: SpotJob, up: Bools, start_tick: int) -> tuple[Bools, Ints]:
    """State before the first tick and for how many ticks it has held, per zone.

    Taken from the record before `start_tick`, or from the job's history when there is none; a zone without either
    counts as new in its first state.
    """
    before = up[:, max(start_tick - HISTORY_TICKS, 0) : start_tick]
    state, ticks = up[:, start_tick].copy(), np.zeros(len(job.zones), dtype=np.int64)
    for number, zone in enumerate(job.zones):
        seen = before[number]
        if not len(seen) and zone.name in job.history:
            seen = np.asarray(job.history[zone.name], dtype=bool)
        if len(seen):
            seen = seen[-HISTORY_TICKS:]
            state[number] = seen[-1]
            changes = np.flatnonzero(seen != seen[-1])
            ticks[number] = len(seen) - (changes[-1] + 1 if len(changes) else 0)
    return state, np.minimum(ticks, HISTORY_TICKS - 1)


def check_length(job: SpotJob, ticks: int, start_tick: int) -> int:
    """Ticks to the deadline; the record must hold them.

    Raises:
        InputError: the record ends before the deadline.
    """
    needed = whole_ticks(job.deadline_hours, job.tick_hours)
    if start_tick < 0 or start_tick + needed > ticks:
        raise InputError(
            f"availability: {ticks} ticks from start {start_tick} do not reach the deadline, {needed} ticks later; "
            "start earlier or give a longer record"
        )
    return needed
