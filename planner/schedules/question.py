"""The question of a schedule over hours, and its exact evaluation from the definitions alone (no solver)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints, distinct_values
from planner.records import record
from solvers.problem.errors import ModelError

HAIR = 2e-6  # share of the work that a solver's tolerance (1e-6) may leave undone


class Cell(tuple[int, int, int]):
    """Key of the nodes that a job runs in an hour on a pool: (job, hour, pool)."""

    __slots__ = ()

    def __str__(self) -> str:
        return ".".join(map(str, self))


@dataclass(frozen=True, eq=False)
class ScheduleInput:
    """Jobs and pools over hours; J jobs, P pools, R regions, T hours.

    Attributes:
        pools: names, length P; regions: `provider/region`, length R.
        region: number of each pool's region, shape (P,).
        usd_per_hour: forecast price of one node, shape (T, P).
        available: forecast of nodes that can be had, 0 where not offered, whole, shape (T, P).
        offered: whether the forecast has the hour at all, shape (T, P).
        startup_hours: what a start costs, in hours at the price of its first hour, shape (P,).
        startup_usd: what a start costs besides, shape (P,).
        jobs: names, length J.
        work: to be done, in the job's unit, shape (J,); speed: of a node-hour, 0 where it cannot run, shape (J, P).
        first: first hour of each job's window, shape (J,); last: the hour after its last one, shape (J,).
        min_nodes: nodes in each hour in which it runs, at least, shape (J,); max_nodes: at most, shape (J,).
        one_region: whether all its nodes of an hour are in one region, shape (J,).
        copy_usd: what a copy of its data in each region costs once, shape (J, R).
        keep_usd_per_hour: and for each hour from the window's begin to its last use, shape (J, R).
        ready: first hour in which the data can be there, shape (J, R).
    """

    pools: tuple[str, ...]
    regions: tuple[str, ...]
    region: Ints
    usd_per_hour: Floats
    available: Floats
    offered: Bools
    startup_hours: Floats
    startup_usd: Floats
    jobs: tuple[str, ...]
    work: Floats
    speed: Floats
    first: Ints
    last: Ints
    min_nodes: Ints
    max_nodes: Ints
    one_region: Bools
    copy_usd: Floats
    keep_usd_per_hour: Floats
    ready: Ints

    def __post_init__(self) -> None:
        hours, pools, jobs, regions = self.n_hours, len(self.pools), len(self.jobs), len(self.regions)
        shapes = {
            "usd_per_hour": (hours, pools), "available": (hours, pools), "offered": (hours, pools),
            "region": (pools,), "startup_hours": (pools,), "startup_usd": (pools,), "work": (jobs,),
            "speed": (jobs, pools), "first": (jobs,), "last": (jobs,), "min_nodes": (jobs,), "max_nodes": (jobs,),
            "one_region": (jobs,), "copy_usd": (jobs, regions), "keep_usd_per_hour": (jobs, regions),
            "ready": (jobs, regions),
        }  # fmt: skip
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ModelError(f"schedule: {name} has shape {getattr(self, name).shape}, needed {shape}")
        if (self.last > hours).any() or (self.first < 0).any():
            raise ModelError("schedule: a job's window leaves the forecast")
        costs = (
            self.usd_per_hour,
            self.startup_hours,
            self.startup_usd,
            self.copy_usd,
            self.keep_usd_per_hour,
        )
        if any((cost < 0).any() for cost in costs):
            raise ModelError("schedule: a cost is below 0")
        if (self.available != np.floor(self.available)).any():
            raise ModelError("schedule: available nodes must be whole")

    @property
    def n_hours(self) -> int:
        """Hours of the forecast."""
        return len(self.usd_per_hour)

    @property
    def usable(self) -> Bools:
        """Where each job may run, availability apart, shape (J, T, P)."""
        hour = np.arange(self.n_hours)[None, :, None]
        window = (hour >= self.first[:, None, None]) & (hour < self.last[:, None, None])
        data_ready = hour >= self.ready[:, self.region][:, None, :]
        return np.asarray(window & data_ready & self.offered[None] & (self.speed > 0)[:, None, :])

    @property
    def most_nodes(self) -> Floats:
        """Nodes that are ever of use to each job in each hour and pool, shape (J, T, P)."""
        speed = np.where(self.speed > 0, self.speed, 1.0)
        enough = np.maximum(np.ceil(self.work[:, None] / speed), self.min_nodes[:, None])
        limit = np.minimum(enough, self.max_nodes[:, None])
        return np.where(self.usable, np.minimum(self.available[None], limit[:, None, :]), 0.0)


@record(frozen=True)
class Costs:
    """Parts of a schedule's cost, exact, USD."""

    nodes: Fraction
    starts: Fraction
    copies: Fraction
    storage: Fraction

    @property
    def total(self) -> Fraction:
        """All parts."""
        return self.nodes + self.starts + self.copies + self.storage


@record(frozen=True)
class Evaluation:
    """A schedule worked out from the definitions.

    Attributes:
        costs: of everything; by_job: of each job.
        work: done by each job.
        kept_hours: by (job, region) used: hours from the window's begin to the end of the last hour there.
        faults: what the schedule breaks, in words; empty where it is valid.
    """

    costs: Costs
    by_job: tuple[Costs, ...]
    work: tuple[Fraction, ...]
    kept_hours: dict[tuple[int, int], int]
    starts: dict[tuple[int, int, int], int]
    faults: tuple[str, ...]


def exact(value: float) -> Fraction:
    """The decimal number that a float is written as."""
    return Fraction(repr(float(value)))


def evaluate(question: ScheduleInput, nodes: Mapping[tuple[int, int, int], int]) -> Evaluation:
    """Work a schedule out in exact arithmetic.

    Args:
        question: prices and limits, each taken for the decimal number that it is written as.
        nodes: whole nodes by (job, hour, pool), all above 0.
    """
    none = Fraction(0)
    parts = [[none, none, none, none] for _ in question.jobs]
    work = [none] * len(question.jobs)
    storage_hours: dict[tuple[int, int], int] = {}
    starts: dict[tuple[int, int, int], int] = {}
    for (job, hour, pool), count in sorted(nodes.items()):
        price = exact(question.usd_per_hour[hour, pool])
        parts[job][0] += count * price
        work[job] += count * exact(question.speed[job, pool])
        region = int(question.region[pool])
        storage_hours[job, region] = hour + 1 - int(question.first[job])
        begun = count - nodes.get((job, hour - 1, pool), 0)
        if begun > 0:
            starts[job, hour, pool] = begun
            start_usd = exact(question.startup_hours[pool]) * price + exact(question.startup_usd[pool])
            parts[job][1] += begun * start_usd
    for (job, region), hours in storage_hours.items():
        parts[job][2] += exact(question.copy_usd[job, region])
        parts[job][3] += hours * exact(question.keep_usd_per_hour[job, region])
    by_job = tuple(Costs(*part) for part in parts)
    total = Costs(*(sum((part[at] for part in parts), none) for at in range(4)))
    return Evaluation(
        total, by_job, tuple(work), storage_hours, starts, tuple(_faults(question, nodes, work))
    )


def _faults(
    question: ScheduleInput, nodes: Mapping[tuple[int, int, int], int], work: list[Fraction]
) -> list[str]:
    """Every limit that is broken; the work may fall short by the solver's tolerance `HAIR`."""
    faults = []
    usable = question.usable
    in_pool: dict[tuple[int, int], int] = {}
    in_hour: dict[tuple[int, int], int] = {}
    places: dict[tuple[int, int], set[int]] = {}
    for (job, hour, pool), count in nodes.items():
        if count < 1 or not usable[job, hour, pool]:
            faults.append(f"{question.jobs[job]} cannot run in hour {hour} on {question.pools[pool]}")
        in_pool[hour, pool] = in_pool.get((hour, pool), 0) + count
        in_hour[job, hour] = in_hour.get((job, hour), 0) + count
        places.setdefault((job, hour), set()).add(int(question.region[pool]))
    for (hour, pool), count in in_pool.items():
        if count > question.available[hour, pool]:
            faults.append(f"{count} nodes of {question.pools[pool]} in hour {hour}: more than available")
    for (job, hour), count in in_hour.items():
        if not question.min_nodes[job] <= count <= question.max_nodes[job]:
            faults.append(f"{question.jobs[job]} has {count} nodes in hour {hour}")
        if question.one_region[job] and len(places[job, hour]) > 1:
            faults.append(f"{question.jobs[job]} runs in several regions in hour {hour}")
    for job, work_done in enumerate(work):
        if work_done < exact(question.work[job]) * (1 - exact(HAIR)):
            faults.append(f"{question.jobs[job]} does {float(work_done)} of {question.work[job]}")
    return faults


def most_work(question: ScheduleInput) -> Floats:
    """Most work that each job can do if it were alone, shape (J,).

    Every node takes one place under `max_nodes`, so in each hour (and region, where it must be one) the fastest
    nodes are taken first; an hour with fewer than `min_nodes` does nothing.
    """
    out = np.zeros(len(question.jobs))
    available = np.where(question.usable, question.available[None], 0.0)
    for job in range(len(question.jobs)):
        order = np.argsort(-question.speed[job], kind="stable")
        region = question.region[order]
        groups = [region == r for r in distinct_values(region)] if question.one_region[job] else [region >= 0]
        best = np.zeros(question.n_hours)
        for group in groups:
            nodes = available[job][:, order] * group
            before = np.cumsum(nodes, axis=1) - nodes
            used = np.clip(question.max_nodes[job] - before, 0.0, nodes)
            enough = used.sum(axis=1) >= max(question.min_nodes[job], 1)
            best = np.maximum(best, np.where(enough, used @ question.speed[job][order], 0.0))
        out[job] = math.fsum(best)
    return out
