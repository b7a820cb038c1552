"""One task of a simulation: some jobs on one zone group, every policy from the same random starts."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.advice.rollout import drive
from planner.records import record
from planner.simulation.groups import ZoneGroup
from planner.simulation.jobs import SimJob
from planner.spot.policy.job import SpotJob, SpotZone
from planner.spot.policy.registry import make_policy
from planner.spot.policy.view import ArrayPolicy, whole_ticks
from planner.spot.replay_batch import BatchReplay, Runs
from planner.spot.zones import comes_given

if TYPE_CHECKING:
    from planner.spot.hazards import HazardTable

_Means = tuple[float, float, float, float, float]

HISTORY_TICKS = 240
OPTIMUM = "optimum"
BASELINE = "uniform_progress"


@record(frozen=True, eq=False)
class Task:
    """What one worker computes at a time; picklable.

    Attributes:
        jobs: to be replayed, one after the other.
        group: where.
        tables: hazards per zone name.
        policies: names; `OPTIMUM` is the offline optimum.
        starts: random starts per job.
        seed: of the whole simulation.
    """

    jobs: tuple[SimJob, ...]
    group: ZoneGroup
    tables: Mapping[str, HazardTable]
    policies: tuple[str, ...]
    starts: int
    seed: int


@record(frozen=True)
class Cell:
    """One job on one zone group under one policy: means over its starts.

    Attributes:
        job, group, kind, cluster, source, policy: which.
        instance_type, gang: of the group.
        starts: launches replayed.
        misses: of them later than the deadline.
        cost_ratio: mean cost over the same work on-demand; p10 and p90 of the same.
        spot_hours, on_demand_hours, interruptions, lost_hours: means; NaN for the optimum.
        finish_ratio: mean end over deadline of those in time.
        misses_out_of_reach: of the misses, where on-demand did not come, or the run was too slow even for it.
    """

    job: str
    group: str
    kind: str
    cluster: str
    source: str
    instance_type: str
    gang: int
    policy: str
    starts: int
    misses: int
    cost_ratio: float
    cost_ratio_p10: float
    cost_ratio_p90: float
    spot_hours: float
    on_demand_hours: float
    interruptions: float
    lost_hours: float
    finish_ratio: float
    misses_out_of_reach: int = 0


@record(frozen=True, eq=False)
class Done:
    """What a task found, and what it could not replay: `(job, group, why)`."""

    cells: tuple[Cell, ...]
    left_out: tuple[tuple[str, str, str], ...]


def run_task(task: Task) -> Done:
    """Replay every job of a task."""
    cells: list[Cell] = []
    left_out: list[tuple[str, str, str]] = []
    for job in task.jobs:
        why = _unfit(job, task.group)
        if why:
            left_out.append((job.name, task.group.name, why))
        else:
            cells += _cells(task, job)
    return Done(tuple(cells), tuple(left_out))


def _unfit(job: SimJob, group: ZoneGroup) -> str:
    """Why a job cannot be replayed on a group; empty if it can."""
    tick = group.zones[0].tick_hours
    if job.deadline_hours < job.work_hours + job.restart_hours + job.on_demand_acquire_hours - 1e-9:
        return "the deadline is too near even for on-demand"
    if whole_ticks(job.deadline_hours, tick) > group.up.shape[1]:
        return f"the record ({group.up.shape[1] * tick:.0f} h) is shorter than the deadline"
    if group.on_demand_usd_per_hour is None and job.on_demand_usd_per_hour is None:
        return "no on-demand price is recorded"
    if not np.isfinite(group.usd_per_hour).all() and job.spot_usd_per_hour is None:
        return "no spot price is recorded"
    return ""


def start_ticks(job: SimJob, group: ZoneGroup, starts: int, seed: int) -> Ints:
    """Random launches: the same for every policy, and whoever computes them; a day of record before each if there is.

    Args:
        job: its work and deadline are part of the seed, so that no cell depends on the others.
        group: its name is part of the seed.
        starts: at most so many; fewer where the record has fewer.
        seed: of the simulation.
    """
    last = group.up.shape[1] - whole_ticks(job.deadline_hours, group.zones[0].tick_hours)
    first = min(HISTORY_TICKS, last)
    rng = np.random.default_rng(_seeds(job, group, seed))
    possible = last - first + 1
    chosen = rng.choice(possible, size=min(starts, possible), replace=False)
    return np.sort(first + chosen).astype(np.int64)


def _seeds(job: SimJob, group: ZoneGroup, seed: int) -> list[int]:
    # work and deadline alone: jobs that differ in the restart only are compared on the same launches
    key = f"{group.source} {group.cluster} {job.work_hours:g} {job.deadline_hours:g}"
    return [seed, zlib.crc32(key.encode())]


@record(frozen=True, eq=False)
class _Luck:
    """What becomes of each launch whatever the policy, arrays of shape `(n,)`.

    Attributes:
        work: hours of undisturbed work.
        comes: whether on-demand does, within the hours left to it.
        alone: the launch on spot alone, which it goes on on where on-demand does not come.
    """

    work: Floats
    comes: Bools
    alone: BatchReplay | None

    def of(self, batch_replay: BatchReplay) -> BatchReplay:
        """The replays, with spot alone where on-demand was asked for and did not come."""
        if self.alone is None:
            return batch_replay
        without = batch_replay.on_demand_asked & ~self.comes
        names = BatchReplay.__dataclass_fields__
        return BatchReplay(
            **{
                name: np.where(without, getattr(self.alone, name), getattr(batch_replay, name))
                for name in names
            }
        )

    def in_reach(self, job: SpotJob) -> Bools:
        """Whether on-demand from the launch on is in time."""
        return self.comes & (
            self.work + job.restart_hours + job.on_demand_acquire_hours <= job.deadline_hours
        )


def _cells(task: Task, sim: SimJob) -> list[Cell]:
    group = task.group
    up, usd = group.up, _prices(group, sim)
    at = start_ticks(sim, group, task.starts, task.seed)
    job = _spot_job(sim, group, usd[:, at].mean(axis=1))
    ticks = whole_ticks(job.deadline_hours, job.tick_hours)
    window = at[:, None] + np.arange(ticks)
    futures, prices = up[:, window].transpose(1, 0, 2), usd[:, window].transpose(1, 0, 2)
    availability = held_ticks(up, at)
    rng = np.random.default_rng([*_seeds(sim, group, task.seed), 1])
    work = sim.work_hours * np.exp(sim.work_log_sd * rng.standard_normal(len(at)))

    def replayed(name: str) -> BatchReplay:
        return replay_starts(job, make_policy(name, job, task.tables), futures, prices, availability, work)

    luck = _Luck(work, np.ones(len(at), dtype=np.bool_), None)
    if sim.on_demand_had_ratio < 1.0:
        alone = replayed("spot_only")
        # fewer zones than the plan's are late more often, which says nothing of on-demand
        usual = sim.spot_late_ratio if len(group.zones) >= len(sim.places) else None
        had = comes_given(~alone.finished, sim.on_demand_had_ratio, sim.scarce_together_ratio, usual)
        luck = _Luck(work, rng.random(len(at)) < had, alone)
    cells = []
    for name in task.policies:
        if name == OPTIMUM:
            cells.append(_optimum(sim, group, job, (up, usd), at, luck))
        else:
            cells.append(_replayed(sim, group, job, name, luck.of(replayed(name)), luck))
    return cells


def replay_starts(
    job: SpotJob, policy: ArrayPolicy, up: Bools, usd: Floats, held: Ints, work: Floats | None = None
) -> BatchReplay:
    """Replay several launches at once, each with the age of its own spells.

    Args:
        job: the job.
        policy: made for it.
        up: availability from each launch on, shape `(n, n_zones, ticks)`.
        usd: prices of the same shape.
        held: ticks before the launch for which each zone was in its first state, shape `(n, n_zones)`.
        work: hours of undisturbed work of each launch, shape `(n,)`; the policy sees how much is left; default: the
            job's.
    """
    runs = Runs(job, policy.view, len(up))
    if work is not None:
        runs.work = work.copy()
    drive(runs, policy, up, held, usd)
    return runs.result()


def held_ticks(up: Bools, at: Ints) -> Ints:
    """Ticks before each launch for which zones were in their state at it, at most a day's, shape `(n, n_zones)`."""
    n_zones, n = up.shape
    ticks = np.arange(n)
    changed = np.ones((n_zones, n), dtype=np.bool_)
    changed[:, 1:] = up[:, 1:] != up[:, :-1]
    began = np.maximum.accumulate(np.where(changed, ticks, 0), axis=1)
    return np.minimum(at[:, None] - began[:, at].T, HISTORY_TICKS - 1).astype(np.int64)


def _spot_job(sim: SimJob, group: ZoneGroup, usd: Floats) -> SpotJob:
    """The job as policies see it; one for all starts of a cell, at their mean launch price."""
    price = group.on_demand_usd_per_hour
    zones = tuple(
        SpotZone(zone.zone, zone.region, zone.instance_type, float(usd[number]), zone.provider, zone.gang)
        for number, zone in enumerate(group.zones)
    )
    usd_per_hour = sim.on_demand_usd_per_hour if price is None else price
    assert usd_per_hour is not None
    return SpotJob(
        work_hours=sim.work_hours,
        deadline_hours=sim.deadline_hours,
        restart_hours=sim.restart_hours,
        on_demand_usd_per_hour=usd_per_hour,
        zones=zones,
        egress_usd=sim.egress_usd,
        on_demand_acquire_hours=sim.on_demand_acquire_hours,
        tick_hours=group.zones[0].tick_hours,
    )


def _prices(group: ZoneGroup, sim: SimJob) -> Floats:
    usd = group.usd_per_hour
    return usd if sim.spot_usd_per_hour is None else np.where(np.isfinite(usd), usd, sim.spot_usd_per_hour)


def _optimum(
    sim: SimJob,
    group: ZoneGroup,
    job: SpotJob,
    seen: tuple[Bools, Floats],
    at: Ints,
    luck: _Luck,
) -> Cell:
    """With on-demand always to be had; what is too slow even for that is charged on-demand."""
    from planner.spot.hindsight import offline_optimum

    costs = np.array(
        [
            offline_optimum(replace(job, work_hours=float(work)), *seen, start_tick=int(tick))
            for tick, work in zip(at, luck.work, strict=True)
        ]
    )
    late = ~np.isfinite(costs)
    costs = np.where(late, (luck.work + job.restart_hours) * job.on_demand_usd_per_hour, costs)
    nan, misses = float("nan"), int(late.sum())
    ratio = costs / (luck.work * job.on_demand_usd_per_hour)
    return _cell(sim, group, OPTIMUM, ratio, (misses, misses), (nan, nan, nan, nan, nan))


def _replayed(
    sim: SimJob, group: ZoneGroup, job: SpotJob, policy: str, batch_replay: BatchReplay, luck: _Luck
) -> Cell:
    missed = ~batch_replay.finished
    ended = batch_replay.finish_hours[~missed]
    means = (
        float(batch_replay.spot_hours.mean()),
        float(batch_replay.on_demand_hours.mean()),
        float(batch_replay.interruptions.mean()),
        float(batch_replay.lost_hours.mean()),
        float(ended.mean() / job.deadline_hours) if len(ended) else float("nan"),
    )
    ratio = batch_replay.cost_usd / (luck.work * job.on_demand_usd_per_hour)
    misses = int(missed.sum()), int((missed & ~luck.in_reach(job)).sum())
    return _cell(sim, group, policy, ratio, misses, means)


def _cell(
    sim: SimJob,
    group: ZoneGroup,
    policy: str,
    ratio: Floats,
    misses: tuple[int, int],
    means: _Means,
) -> Cell:
    low, high = np.quantile(ratio, (0.1, 0.9))
    zone = group.zones[0]
    return Cell(
        sim.name, group.name, group.kind, group.cluster, group.source, zone.instance_type, zone.gang, policy,
        len(ratio), misses[0], float(ratio.mean()), float(low), float(high), *means, misses[1],
    )  # fmt: skip


def task_list(
    jobs: Sequence[SimJob],
    groups: Sequence[tuple[ZoneGroup, Mapping[str, HazardTable]]],
    policies: tuple[str, ...],
    starts: int,
    seed: int,
    jobs_per_task: int,
) -> list[Task]:
    """Tasks of up to `jobs_per_task` jobs on one group: small enough to be spread, large enough to be worth sending."""
    tasks = []
    for group, tables in groups:
        zone = group.zones[0]
        fitting = [job for job in jobs if job.takes(zone.instance_type, zone.gang)]
        for first in range(0, len(fitting), jobs_per_task):
            chunk = tuple(fitting[first : first + jobs_per_task])
            tasks.append(Task(chunk, group, tables, policies, starts, seed))
    return tasks
