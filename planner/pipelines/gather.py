"""Candidates of all tasks of a pipeline as one `PipelineInput`."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.asked.assumptions import load_assumptions
from planner.inputs.bounds import MOST_HOURS
from planner.inputs.checks import end_moment
from planner.market.place_names import check_pipeline_places
from planner.pipelines.moves import GB, Moves, build_moves
from planner.pipelines.question import PipelineInput, sequence_of
from planner.pipelines.tasks import WorkloadTask, earliest_hours, slack_hours
from planner.pipelines.way import Offered, Way
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from catalogs.tables.model import Catalog
    from catalogs.tables.table import Ints
    from catalogs.tariffs import Tariffs
    from planner.asked.options import Options
    from planner.inputs.pipeline_load import LoadedPipeline
    from planner.inputs.pipeline_schema import PipelineTask

_CELL_HOURS = 0.01  # of the cell of starts before a known one


@record(frozen=True, eq=False)
class Gathered:
    """The question with what its numbers mean.

    Attributes:
        pipe: the question; candidates carry `Offered` as keys, and their costs as the engine has them.
        moves: tariffs between places.
        sizes_gb: what each edge moves.
        compared: feasible candidates per task before the best of each place were taken.
        durations: at how many durations each task's ways were asked for; 0 for a task sized elsewhere.
    """

    pipe: PipelineInput
    moves: Moves
    sizes_gb: tuple[float, ...]
    compared: tuple[int, ...]
    durations: tuple[int, ...] = ()


class Gatherer:
    """Gathers the candidates of a pipeline, again where a plan shows that a task has more time than was asked for."""

    def __init__(
        self, loaded: LoadedPipeline, options: Options, catalog: Catalog, tariffs: Tariffs, start: datetime
    ) -> None:
        """Take what to gather from.

        Args:
            loaded: the file.
            options: flags of `planner optimize` (moment, prices).
            catalog: what can be bought.
            tariffs: transfer prices.
            start: when the first task may start.

        Raises:
            InputError: a workload or a candidate names something unknown.
        """
        check_pipeline_places(loaded)
        self._tasks, self._tariffs = loaded.pipeline.tasks, tariffs
        self._names = [task.name for task in self._tasks]
        self._reads = [
            (self._names.index(part.task), at, float(part.size) / GB)
            for at, task in enumerate(self._tasks) for part in task.reads
        ]  # fmt: skip
        self._limit = _deadline_hours(loaded.pipeline.deadline, start)
        joined = {end for u, v, _ in self._reads for end in (u, v)}
        self._planned = [
            None if workload is None else WorkloadTask(task, workload, options, catalog, start, alone=at not in joined)
            for at, (task, workload) in enumerate(zip(self._tasks, loaded.workloads, strict=True))
        ]  # fmt: skip
        self._ways = [
            list(_sized(task)) if planned is None else []
            for task, planned in zip(self._tasks, self._planned, strict=True)
        ]

        self._moves: Moves | None = None  # between all places seen so far
        self._between: list[tuple[float, float]] = []  # least and most hours of each task
        self._first: list[float] = []  # hours before which no task starts
        self._last_end = [0.0] * len(self._tasks)  # hours, of the commitments of the tasks that wait for each
        self._later: dict[
            tuple[int, float, bool], tuple[WorkloadTask, list[Offered]]
        ] = {}  # by task and hour

    def gather(self) -> Gathered:
        """Candidates at durations up to the most that each task can have."""
        least = [
            min((way.hours for way in ways), default=np.inf) if planned is None else planned.least_hours()
            for planned, ways in zip(self._planned, self._ways, strict=True)
        ]
        source, target = [u for u, *_ in self._reads], [v for _, v, _ in self._reads]
        order = sequence_of(self._names, source, target)
        self._between = [*zip(least, slack_hours(least, source, target, order, self._limit), strict=True)]
        first = self._first = earliest_hours(least, source, target, order)
        self._planned = [
            one.counted_from(hours) if one is not None and one.has_ends and 0.0 < hours < np.inf else one
            for one, hours in zip(self._planned, first, strict=True)
        ]
        for u, v in sorted(zip(source, target, strict=True), key=lambda edge: -order.index(edge[1])):
            one = self._planned[v]
            self._last_end[u] = max(
                self._last_end[u], self._last_end[v], 0.0 if one is None else one.last_end_hours
            )
        for at, planned in enumerate(self._planned):
            if planned is not None:
                self._ways[at] = self._front(at, planned)
        return self._gathered()

    def _front(self, at: int, planned: WorkloadTask) -> list[Offered]:
        """Candidates for all durations that a task can have.

        Without a deadline, also for those after which a commitment that another task runs on still lasts.
        """
        least, most = self._between[at]
        ways = planned.front(least, most)
        if np.isinf(most) and self._last_end[at] > least:
            ways += planned.front(least, self._last_end[at])
        return ways

    def later(self, own_from_hours: Sequence[float | None]) -> Gathered:
        """The same where the ends of some tasks' commitments count from later hours; None: as before."""
        for at, (planned, hours) in enumerate(zip(self._planned, own_from_hours, strict=True)):
            if planned is not None and hours is not None and planned.has_ends:
                self._planned[at], self._ways[at] = self._counted_from(at, planned, hours)
        return self._gathered()

    def _counted_from(
        self, at: int, planned: WorkloadTask, hours: float, *, own_alone: bool = False
    ) -> tuple[WorkloadTask, list[Offered]]:
        """A task with its ways at all durations asked for, where ends count from an hour of the pipeline."""
        if (at, hours, own_alone) not in self._later:
            other = planned.counted_from(hours, own_alone=own_alone)
            ways = self._front(at, other)
            ways += [way for duration in planned.asked for way in other.at(duration)]
            self._later[at, hours, own_alone] = other, ways
        return self._later[at, hours, own_alone]

    def _on_ends(self, at: int, planned: WorkloadTask, hours: float) -> list[Offered]:
        """A task's ways on commitments that end, priced for a start."""
        ways = self._counted_from(at, planned, hours, own_alone=True)[1]
        return [way for way in ways if way.own_from_hours is not None]

    def by_starts(self, known: Sequence[Sequence[float]], cells: int) -> tuple[Gathered, Gathered]:
        """Ways on commitments that end, priced for starts on a grid: for plans, and for a bound on all plans.

        For plans each is priced for the latest start that its cell of the grid allows (`own_from_hours`), for the bound
        for the earliest. All other ways are the same in both.

        Args:
            known: starts of each task that are on the grid.
            cells: of the grid beside them.
        """
        plans, bounds = list[list[Offered]](), list[list[Offered]]()
        for at, planned in enumerate(self._planned):
            if planned is None or not planned.has_ends:
                plans.append(self._ways[at])
                bounds.append(self._ways[at])
                continue
            first, (least, most) = self._first[at], self._between[at]
            last = min(planned.last_end_hours, first + most - least)
            grid = [first, *np.linspace(first, last, cells + 1).tolist()]
            grid += [hours - less for hours in known[at] for less in (0.0, _CELL_HOURS)]
            grid = sorted({hours for hours in grid if first <= hours <= last} | {first})
            _, others = self._counted_from(at, planned, MOST_HOURS)
            each = [self._on_ends(at, planned, hours) for hours in grid]
            plans.append([*others, *(way for own in each for way in own)])
            later = [
                replace(way, own_from_hours=end)
                for own, end in zip(each, grid[1:], strict=False) for way in own
            ]  # fmt: skip
            bounds.append([*others, *each[0], *later])
        return self._gathered(plans), self._gathered(bounds)

    def more(self, hours: Sequence[float]) -> Gathered | None:
        """The same with the best ways for the time that each task has in a plan; None if they were asked for."""
        new = [
            [] if planned is None else planned.at(float(own))
            for planned, own in zip(self._planned, hours, strict=True)
        ]
        if not any(new):
            return None
        self._ways = [[*known, *more] for known, more in zip(self._ways, new, strict=True)]
        return self._gathered()

    def _gathered(self, each: Sequence[list[Offered]] = ()) -> Gathered:
        """The question with the ways of each task, by default those gathered last."""
        each = each or self._ways
        ways = [way for own in each for way in own]
        task = [at for at, own in enumerate(each) for _ in own]
        known = () if self._moves is None else self._moves.places
        places = tuple(dict.fromkeys([*known, *(way.place for way in ways)]))
        number = {place: at for at, place in enumerate(places)}
        if self._moves is None or len(places) > len(known):
            self._moves = build_moves(places, self._tariffs, load_assumptions({}))
        moves = self._moves
        sizes = tuple(size for *_, size in self._reads)
        pipe = PipelineInput(
            tasks=tuple(self._names), keys=tuple(ways), task=_ints(task),
            place=_ints([number[way.place] for way in ways]),
            cost_usd=np.asarray([way.usd for way in ways], dtype=np.float64),
            hours=np.asarray([way.hours for way in ways], dtype=np.float64), group=moves.group,
            source=_ints([u for u, *_ in self._reads]), target=_ints([v for _, v, _ in self._reads]),
            move_usd=moves.usd(sizes), move_hours=moves.hours(sizes), deadline_hours=self._limit,
        )  # fmt: skip
        planned = zip(self._planned, each, strict=True)
        compared = tuple(len(own) if one is None else one.compared for one, own in planned)
        durations = tuple(0 if one is None else len(one.asked) for one in self._planned)
        return Gathered(pipe, moves, sizes, compared, durations)


def _ints(values: list[int]) -> Ints:
    return np.asarray(values, dtype=np.int64)


def _deadline_hours(deadline: date | timedelta | None, start: datetime) -> float:
    if deadline is None:
        return float("inf")
    length = deadline if isinstance(deadline, timedelta) else end_moment(deadline) - start
    return length.total_seconds() / 3600.0


def _sized(task: PipelineTask) -> Iterator[Offered]:
    for number, item in enumerate(task.candidates):
        cost = item.cost_usd
        if cost is None:
            assert item.usd_per_hour is not None
            cost = item.usd_per_hour * item.nodes * Decimal(repr(item.hours))
        way = Way(
            task.name, number, item.provider, item.region, "", item.instance_type, item.purchase_option, "", item.nodes,
            item.hours, item.hours, Decimal(cost), "",
        )  # fmt: skip
        yield Offered(task.name, number, way.place, way.hours, float(way.cost_usd), given=way)
