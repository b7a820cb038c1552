"""A simulation: tasks over zone groups and jobs, on any executor, and what they say together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InputError
from planner.records import record
from planner.simulation.replays import BASELINE, OPTIMUM, Cell, run_task, task_list
from planner.simulation.statistics import Interval, clustered_gap, clustered_mean
from planner.spot.policy.job import SpotZone

if TYPE_CHECKING:
    from planner.engines.executors import Executor
    from planner.simulation.groups import ZoneGroup
    from planner.simulation.jobs import SimJob
    from planner.spot.hazards import HazardModel, HazardTable

JOBS_PER_TASK = 8
OnDone = Callable[[int, int], None]


@record(frozen=True)
class Setting:
    """How to simulate.

    Attributes:
        policies: to be compared; `BASELINE` and `OPTIMUM` are added where they are not among them.
        starts: random launches per job and zone group, at most.
        seed: of the launches and of the intervals.
        with_optimum: work out the offline optimum, which costs more time than all policies together.
    """

    policies: tuple[str, ...]
    starts: int
    seed: int = 0
    with_optimum: bool = True

    @property
    def replayed(self) -> tuple[str, ...]:
        """All that is replayed."""
        more = (BASELINE, *([OPTIMUM] if self.with_optimum else []))
        return (*self.policies, *(name for name in more if name not in self.policies))


@record(frozen=True, eq=False)
class Simulation:
    """The answer.

    Attributes:
        name: what was simulated.
        setting: how.
        n_jobs: given.
        n_groups: zone groups that something was replayed on.
        cells: means per job, zone group and policy, in the order of the tasks.
        left_out: number of (job, zone group) pairs not replayed, by reason.
        tasks, tasks_done: of the work; fewer done than there are only after an interruption.
        seconds: it took.
        notes: on the traces, and on what is drawn for each launch.
    """

    name: str
    setting: Setting
    n_jobs: int
    n_groups: int
    cells: tuple[Cell, ...]
    left_out: Mapping[str, int]
    tasks: int
    tasks_done: int
    seconds: float
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every task was done."""
        return self.tasks_done == self.tasks


@record(frozen=True)
class Line:
    """What one policy did over some cells.

    Attributes:
        label: kind or zone group.
        policy: name.
        launches, misses: replayed, and late.
        misses_out_of_reach: of these, where on-demand did not come, or the run was too slow even for it.
        cost: mean cost ratio.
        above_optimum: mean cost over the optimum's, less 1; NaN without optimum.
        gap: share of the gap from Uniform Progress to the optimum that is closed; NaN with misses in reach, which no
            saving makes good.
        spot_hours, on_demand_hours, interruptions: means per launch.
    """

    label: str
    policy: str
    launches: int
    misses: int
    misses_out_of_reach: int
    cost: Interval
    above_optimum: float
    gap: Interval
    spot_hours: float
    on_demand_hours: float
    interruptions: float


def simulate(
    name: str,
    jobs: Sequence[SimJob],
    groups: Sequence[ZoneGroup],
    model: HazardModel,
    setting: Setting,
    executor: Executor,
    *,
    on_done: OnDone | None = None,
    notes: tuple[str, ...] = (),
) -> Simulation:
    """Replay every job on every zone group that it takes.

    An interruption (Ctrl-C) ends it early; what is done by then is kept, and `complete` is False.

    Args:
        name: shown on the answer.
        jobs: what is replayed.
        groups: where.
        model: hazards for the policies that know them.
        setting: how.
        executor: who computes.
        on_done: told tasks done and tasks in all.
        notes: on the traces.

    Raises:
        InputError: no job takes any of the groups.
    """
    begun = time.monotonic()
    known = [(group, _tables(group, model)) for group in groups]
    tasks = task_list(jobs, known, setting.replayed, setting.starts, setting.seed, JOBS_PER_TASK)
    if not tasks:
        raise InputError(_nothing(jobs, groups))
    cells: list[Cell] = []
    left_out: dict[str, int] = {}
    done = 0
    try:
        for found in executor.map(run_task, tasks):
            cells += found.cells
            for _, _, why in found.left_out:
                left_out[why] = left_out.get(why, 0) + 1
            done += 1
            if on_done is not None:
                on_done(done, len(tasks))
    except KeyboardInterrupt:
        if not cells:
            raise
    if not cells:
        reasons = "; ".join(f"{why} ({count} times)" for why, count in left_out.items())
        raise InputError(f"nothing could be replayed: {reasons}")
    seconds = time.monotonic() - begun
    used = len({(cell.source, cell.cluster) for cell in cells})
    return Simulation(
        name, setting, len(jobs), used, tuple(cells), left_out, len(tasks), done, seconds, notes
    )


def _tables(group: ZoneGroup, model: HazardModel) -> Mapping[str, HazardTable]:
    return {
        zone.zone: model.table_for(
            SpotZone(zone.zone, zone.region, zone.instance_type, 0.0, zone.provider, zone.gang)
        )
        for zone in group.zones
    }


def _nothing(jobs: Sequence[SimJob], groups: Sequence[ZoneGroup]) -> str:
    wanted = sorted({f"{kind} x{gang}" for job in jobs for kind in job.instance_types or ("any type",)
                     for gang in job.gangs or ("any",)})  # fmt: skip
    there = sorted({f"{group.zones[0].instance_type} x{group.zones[0].gang}" for group in groups})
    return (
        f"no trace of {', '.join(wanted)}; the traces are of {', '.join(there) or 'nothing'}: name one of these with "
        "--instance-type and --gang, or take them as stand-ins with --any-trace"
    )


def lines_by(simulation: Simulation, key: Callable[[Cell], str]) -> Iterator[Line]:
    """One line per label and policy, in the order in which labels and policies first appear."""
    found: dict[str, list[Cell]] = {}
    for cell in simulation.cells:
        found.setdefault(key(cell), []).append(cell)
    for label, chosen in found.items():
        yield from _lines(label, chosen, simulation.setting)


def _lines(label: str, cells: Sequence[Cell], setting: Setting) -> Iterator[Line]:
    by_policy = {name: [cell for cell in cells if cell.policy == name] for name in setting.replayed}
    base = _totals(by_policy[BASELINE])
    best = _totals(by_policy.get(OPTIMUM, []))
    for name, own in by_policy.items():
        if not own:
            continue
        sums, counts = _totals(own), np.array([cell.starts for cell in own], dtype=np.float64)
        clusters = [cell.cluster for cell in own]
        nothing = Interval(float("nan"), float("nan"), float("nan"))
        late, out_of_reach = (
            sum(getattr(cell, what) for cell in own) for what in ("misses", "misses_out_of_reach")
        )
        known = len(best) and late == out_of_reach
        gap = clustered_gap(sums, base, best, clusters, seed=setting.seed) if known else nothing
        weigh = counts / counts.sum()
        yield Line(
            label,
            name,
            int(counts.sum()),
            late,
            out_of_reach,
            clustered_mean(sums, counts, clusters, seed=setting.seed),
            float(sums.sum() / best.sum()) - 1.0 if len(best) else float("nan"),
            gap,
            *(float((weigh * np.array([getattr(cell, what) for cell in own])).sum()) for what in _MEANS),
        )


_MEANS = ("spot_hours", "on_demand_hours", "interruptions")


def _totals(cells: Sequence[Cell]) -> np.ndarray:
    return np.array([cell.cost_ratio * cell.starts for cell in cells])
