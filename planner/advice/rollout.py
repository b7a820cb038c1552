"""What a run that is under way may still cost: its futures, from the present state, under a policy.

The bookkeeping of a tick is `planner.spot.replay_batch`'s own, so a roll-out and a replay cannot differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.spot.policy.guard import guarded
from planner.spot.policy.job import JobState, SpotJob
from planner.spot.policy.view import (
    EPS_HOURS,
    IDLE,
    SPOT,
    ArrayPolicy,
    JobView,
    RunStates,
    one_run,
)
from planner.spot.replay_batch import BatchReplay, Runs

if TYPE_CHECKING:
    from planner.spot.hazards import HazardTable

DAY_HOURS = 24.0


class Guarded(ArrayPolicy):
    """A policy under the hard guard at every tick, whether or not it has one of its own.

    Whatever the policy says, an action after which on-demand would come too late is replaced by on-demand. Once not
    even on-demand asked for now is in time, a run on spot that would still be in time if nothing happens to it is left
    alone, and one that stands still starts at the lowest price where it would be; otherwise on-demand is surest.
    """

    def __init__(self, policy: ArrayPolicy) -> None:
        self.view, self._policy = policy.view, policy

    def decide_runs(self, runs: RunStates) -> tuple[Ints, Ints]:
        """The policy's decision, made safe."""
        view, rows = self.view, np.arange(len(runs.mode))
        mode, zone = self._policy.decide_runs(runs)
        # spot asked for where there is none is a wait, without progress
        refused = (mode == SPOT) & ~runs.up[rows, zone]
        if not self._policy.is_guarded or refused.any():
            mode, zone = guarded(view, runs, np.where(refused, IDLE, mode), np.where(refused, -1, zone))
        remaining = view.deadline_hours - runs.elapsed_hours + EPS_HOURS
        work = view.work_hours - runs.done_hours
        if remaining >= float(work.max(initial=0.0)) + view.on_demand_start_hours:
            return mode, zone  # on-demand asked for now is in time for all
        idle = runs.mode == IDLE
        prices = np.where(runs.up, runs.usd_per_hour, np.inf)
        last_hope = (remaining < work + view.on_demand_start_hours) & np.where(
            idle, runs.up.any(axis=1), runs.mode == SPOT
        )
        last_hope &= remaining >= work + np.where(idle, view.restart_hours, runs.restart_left_hours)
        started = np.where(idle, prices.argmin(axis=1), runs.zone)
        return np.where(last_hope, SPOT, mode), np.where(last_hope, started, zone)


class Forced(ArrayPolicy):
    """A policy whose first decision is given, one for all runs or one each; everything after it is the policy's own."""

    def __init__(self, policy: ArrayPolicy, first_hours: float, mode: int | Ints, zone: int | Ints) -> None:
        self.view = policy.view
        self._policy, self._first_hours, self._mode, self._zone = policy, first_hours, mode, zone

    def decide_runs(self, runs: RunStates) -> tuple[Ints, Ints]:
        """The given action at the first tick, else the policy's."""
        if runs.elapsed_hours > self._first_hours + 1e-9:
            return self._policy.decide_runs(runs)
        n = len(runs.done_hours)
        return np.full(n, self._mode), np.full(n, self._zone)


def ticks_left(view: JobView, state: JobState) -> int:
    """Whole ticks from now to the deadline, at least 0."""
    return max(int((view.deadline_hours - state.elapsed_hours) / view.tick_hours + 1e-6), 0)


def futures_of(
    job: SpotJob,
    tables: Mapping[str, HazardTable],
    state: JobState,
    history: Mapping[str, Bools],
    n: int,
    seed: int,
) -> Bools:
    """Futures of the zones from now to the deadline; the first tick is what is seen now.

    Args:
        job: the job.
        tables: hazards per zone name.
        state: the present; its spells' ages count.
        history: per zone name what came before the present spell, up per tick, oldest first.
        n: futures.
        seed: of the draws.

    Returns:
        Shape `(n, n_zones, ticks)`.
    """
    from planner.spot.futures import sample_futures

    ticks = ticks_left(JobView(job), state)
    seen = with_history(job, tables, state, history)
    # drawn by name, so that the order in which a launcher lists its zones does not matter
    order = sorted(range(len(seen.zones)), key=lambda at: seen.zones[at].name)
    by_name = replace(seen, zones=tuple(seen.zones[at] for at in order))
    later = sample_futures(by_name, tables, n, max(ticks - 1, 1), seed)[:, np.argsort(order)]
    now = np.array([zone.available for zone in state.zones])
    first = np.broadcast_to(now[None, :, None], (n, len(now), 1))
    return np.concatenate([first, later], axis=2)[:, :, :ticks]


def with_history(
    job: SpotJob, tables: Mapping[str, HazardTable], state: JobState, history: Mapping[str, Bools]
) -> SpotJob:
    """The job with what was seen of its zones up to now: what came before the present spells, and the spells.

    Args:
        job: the job.
        tables: hazards per zone name.
        state: the present; its spells' ages count.
        history: per zone name what came before the present spell, up per tick, oldest first.
    """
    seen = {}
    for zone in state.zones:
        spell = np.full(max(round(zone.since_hours / job.tick_hours), 1), zone.available)
        before = np.asarray(history.get(zone.name, ()), dtype=np.bool_)
        if not len(before):
            # The spell's age is known, so something ended when it began: an average spell, which says nothing new.
            table = tables[zone.name]
            mean = table.mean_down_hours if zone.available else table.mean_up_hours
            ticks_before = max(round(min(mean, DAY_HOURS) / job.tick_hours), 1)
            before = np.full(ticks_before, not zone.available)
        seen[zone.name] = np.concatenate([before, spell])
    return replace(job, history=seen)


def roll_out(job: SpotJob, policy: ArrayPolicy, state: JobState, up: Bools, times: int = 1) -> BatchReplay:
    """Follow the policy from the present state through every future; costs count from now.

    Spot prices stay as they are now.

    Args:
        job: the job.
        policy: made for it.
        state: the present.
        up: shape `(n, n_zones, ticks)`, from now to the deadline.
        times: runs of each future, one set of `n` behind the other.
    """
    ticks, n = up.shape[2], len(up) * times
    now = one_run(policy.view, state)
    runs = Runs(job, policy.view, n, len(up))
    runs.mode, runs.zone = np.repeat(now.mode, n), np.repeat(now.zone, n)
    runs.left = np.repeat(now.restart_left_hours, n)
    runs.region = np.repeat(now.region, n)
    runs.work = np.repeat(job.work_hours - now.done_hours, n)
    held = np.maximum(np.rint(now.since_hours / job.tick_hours).astype(np.int64), 1) - 1
    usd = np.array([[zone.usd_per_hour for zone in state.zones]])
    first = state.elapsed_hours / job.tick_hours
    drive(runs, policy, up, np.broadcast_to(held, up.shape[:2]), usd[..., None].repeat(ticks, axis=2), first)
    return runs.result()


def spot_alone_in_time(job: SpotJob, view: JobView, state: JobState, up: Bools) -> Bools:
    """Whether a run that only ever takes spot, from the present state on, is done by the deadline, shape `(n,)`.

    As a roll-out of `spot_only`, whose zones do not depend on the work left: they alone are followed tick by tick.

    Args:
        job: the job.
        view: of it.
        state: the present.
        up: shape `(n, n_zones, ticks)`, from now to the deadline.
    """
    now = one_run(view, state)
    n, zones, ticks = up.shape
    by_tick = np.zeros((ticks, n, zones + 1), dtype=np.bool_)  # the last: no zone, which is never up
    by_tick[:, :, :-1] = up.transpose(2, 0, 1)
    usd = view.known_usd(now.usd_per_hour)[0]
    best = np.full((ticks, n), -1)
    for number in np.argsort(usd, kind="stable")[
        ::-1
    ].tolist():  # the cheapest is written last; unknown ones first
        best[by_tick[:, :, number]] = number
    zone, rows = np.repeat(now.zone, n), np.arange(n)
    used = np.empty((ticks + 1, n), dtype=np.int64)
    used[0] = zone
    for tick in range(ticks):
        zone = np.where(by_tick[tick, rows, zone], zone, best[tick])
        used[tick + 1] = zone
    place = np.arange(ticks)[:, None]
    begun = np.maximum.accumulate(
        np.where(used[1:] != used[:-1], place, -1), axis=0
    )  # -1: with the present spell
    hours = (place + 1 - np.maximum(begun, 0)) * job.tick_hours
    wait = np.where(begun < 0, now.restart_left_hours, job.restart_hours)
    progress = np.where(used[1:] >= 0, np.clip(hours - wait, 0.0, job.tick_hours), 0.0)
    return np.asarray(progress.sum(axis=0) >= job.work_hours - state.done_hours - EPS_HOURS, dtype=np.bool_)


def drive(runs: Runs, policy: ArrayPolicy, up: Bools, held: Ints, usd: Floats, first: float = 0.0) -> None:
    """Step runs through availability until all are done or it ends.

    Args:
        runs: the bookkeeping, in its first state.
        policy: decides.
        up: shape `(n, n_zones, ticks)`.
        held: ticks for which each zone has been in the state of its first tick, before it, shape `(n, n_zones)`.
        usd: spot prices, shape `(n or 1, n_zones, ticks)`.
        first: number of the first tick since launch.
    """
    by_tick = np.ascontiguousarray(up.transpose(2, 0, 1))
    state = by_tick[0] if len(by_tick) else None
    for tick, now in enumerate(by_tick):
        held = np.where(now == state, held + 1, 1)
        state = now
        runs.step(first + tick, policy, now, held, usd[..., tick])  # type: ignore[arg-type]  # a part of a tick may have passed
        if not runs.active.any():
            return
