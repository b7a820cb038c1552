"""A pipeline: tasks that feed each other data, each run by one candidate at one place."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints, distinct
from solvers.problem.errors import ModelError

NEGLIGIBLE = (
    1e-8  # beside the largest amount of a model: less counts as nothing there, for no solver holds both
)
TIE_HOURS = 1e-6  # between moments that count as one


@dataclass(frozen=True, eq=False)
class PipelineInput:
    """Tasks, their candidates and the data between them.

    Moving an edge's data costs money and hours that depend on the *groups* of both places (a group holds places whose
    tariffs are alike); within one place both are 0.

    Attributes:
        tasks: names, length `n_tasks`.
        keys: the caller's key of each candidate, unique, length `n`.
        task: task of each candidate, shape `(n,)`.
        place: where it runs, shape `(n,)`.
        cost_usd: cost of the task so run, shape `(n,)`.
        hours: its duration, shape `(n,)`.
        group: group of each place, shape `(n_places,)`.
        source: task whose output an edge carries, shape `(n_edges,)`.
        target: task that reads it, shape `(n_edges,)`.
        move_usd: cost of an edge's data from a place of one group to *another* place, shape `(n_edges, G, G)`.
        move_hours: its duration, shape `(n_edges, G, G)`.
        deadline_hours: all tasks end by then; inf none.
        start_by: hours by which a task so run starts, shape `(n,)`; None: whenever. Only models keep them, not trees.
    """

    tasks: tuple[str, ...]
    keys: tuple[Hashable, ...]
    task: Ints
    place: Ints
    cost_usd: Floats
    hours: Floats
    group: Ints
    source: Ints
    target: Ints
    move_usd: Floats
    move_hours: Floats
    deadline_hours: float = math.inf
    start_by: Floats | None = None

    def __post_init__(self) -> None:
        count = len(self.keys)
        if not all(len(part) == count for part in (self.task, self.place, self.cost_usd, self.hours)):
            raise ModelError("pipeline: every candidate needs a task, a place, a cost and hours")
        shape = (len(self.source), self.n_groups, self.n_groups)
        if len(self.target) != shape[0] or self.move_usd.shape != shape or self.move_hours.shape != shape:
            raise ModelError(
                "pipeline: every edge needs a source, a target and what moving costs between groups"
            )
        _ = self.sequence

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.tasks)

    @property
    def n_groups(self) -> int:
        """Number of groups of places."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def timed(self) -> bool:
        """Whether durations matter."""
        return math.isfinite(self.deadline_hours)

    @cached_property
    def kinds(self) -> Ints:
        """A number of the task, place and latest start of each candidate, shape `(n,)`: what follows rests on these."""
        kind = self.task * (int(self.place.max(initial=0)) + 1) + self.place
        if self.start_by is None:
            return kind
        moments, _, moment = distinct(self.start_by)
        return kind * len(moments) + moment

    def keeps_starts(self, chosen: Ints, start_hours: Floats) -> bool:
        """Whether each task of a choice starts by the hour of its candidate; both of shape `(n_tasks,)`."""
        return self.start_by is None or bool((start_hours <= self.start_by[chosen] + TIE_HOURS).all())

    @cached_property
    def into(self) -> list[list[int]]:
        """Edges into each task."""
        edges: list[list[int]] = [[] for _ in self.tasks]
        for edge, task in enumerate(self.target.tolist()):
            edges[task].append(edge)
        return edges

    @cached_property
    def out(self) -> list[list[int]]:
        """Edges out of each task."""
        edges: list[list[int]] = [[] for _ in self.tasks]
        for edge, task in enumerate(self.source.tolist()):
            edges[task].append(edge)
        return edges

    @cached_property
    def sequence(self) -> list[int]:
        """Tasks so that each comes after those it reads from.

        Raises:
            ModelError: the tasks depend on each other in a circle; names one of it.
        """
        return sequence_of(self.tasks, self.source.tolist(), self.target.tolist())

    @cached_property
    def of_task(self) -> list[Ints]:
        """Candidates of each task, ascending."""
        order = np.argsort(self.task, kind="stable")
        return np.split(order, np.searchsorted(self.task[order], np.arange(1, self.n_tasks)))

    @cached_property
    def _beside(self) -> dict[tuple[int, int, bool], tuple[Floats, Floats]]:
        return {}

    def moves_beside(self, edge: int, place: int, *, inward: bool) -> tuple[Floats, Floats]:
        """Cost and hours of an edge's data between a place and each candidate of its target (inward) or source.

        Worked out once; not to be written to.
        """
        asked = (edge, place, inward)
        if asked not in self._beside:
            there = self.place[self.of_task[int((self.target if inward else self.source)[edge])]]
            at = np.full(len(there), place)
            self._beside[asked] = self.moves(edge, at, there) if inward else self.moves(edge, there, at)
        return self._beside[asked]

    def moves(self, edge: int | Ints, from_place: Ints, to_place: Ints) -> tuple[Floats, Floats]:
        """Cost and hours of an edge's data between places (shapes broadcast)."""
        pair = (edge, self.group[from_place], self.group[to_place])
        apart = from_place != to_place
        return np.where(apart, self.move_usd[pair], 0.0), np.where(apart, self.move_hours[pair], 0.0)

    def take(self, kept: Ints) -> PipelineInput:
        """The same with the candidates `kept` only."""
        return replace(
            self, keys=tuple(self.keys[k] for k in kept.tolist()), task=self.task[kept], place=self.place[kept],
            cost_usd=self.cost_usd[kept], hours=self.hours[kept],
            start_by=None if self.start_by is None else self.start_by[kept],
        )  # fmt: skip


def sequence_of(tasks: Sequence[str], source: Sequence[int], target: Sequence[int]) -> list[int]:
    """Tasks so that each comes after those it reads from.

    Args:
        tasks: their names.
        source: task whose output each edge carries.
        target: task that reads it.

    Raises:
        ModelError: the tasks depend on each other in a circle; names one of it.
    """
    waiting = [0] * len(tasks)
    out: list[list[int]] = [[] for _ in tasks]
    for u, v in zip(source, target, strict=True):
        waiting[v] += 1
        out[u].append(v)
    ready = [task for task in range(len(tasks)) if not waiting[task]]
    done: list[int] = []
    while ready:
        done.append(ready.pop())
        for after in out[done[-1]]:
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
    if len(done) < len(tasks):
        left = next(task for task in range(len(tasks)) if waiting[task])
        raise ModelError(f"pipeline: task {tasks[left]!r} depends on itself through others")
    return done


def windows(pipe: PipelineInput, allowed: Bools | None = None) -> tuple[Floats, Floats]:
    """Earliest start and latest end of each task if every task took its fastest candidate and data moved at once.

    Args:
        pipe: the question.
        allowed: candidates to look at, shape `(n,)`; all by default.
    """
    fastest = np.full(pipe.n_tasks, np.inf)
    hours = pipe.hours if allowed is None else np.where(allowed, pipe.hours, np.inf)
    np.minimum.at(fastest, pipe.task, hours)
    least, source, target = fastest.tolist(), pipe.source.tolist(), pipe.target.tolist()
    start, end = [0.0] * pipe.n_tasks, [pipe.deadline_hours] * pipe.n_tasks
    for task in pipe.sequence:
        start[task] = max([0.0, *(start[source[e]] + least[source[e]] for e in pipe.into[task])])
    for task in reversed(pipe.sequence):
        after = (end[target[e]] - least[target[e]] for e in pipe.out[task])
        end[task] = min([pipe.deadline_hours, *after])
    return np.asarray(start), np.asarray(end)


def reduce(pipe: PipelineInput) -> tuple[PipelineInput, dict[str, int]]:
    """Drop candidates that no best plan needs; exact.

    Per (task, place) only the front of cost and hours can be best, without a deadline only the cheapest: what follows
    depends on the place alone. With a deadline, candidates too slow for their window fall out.

    Returns:
        The smaller input and how many candidates each rule dropped.
    """
    before = len(pipe.keys)
    late = too_late(pipe) if pipe.timed else np.zeros(before, dtype=np.bool_)
    rows = np.flatnonzero(~late)
    kept = _fronts(pipe, rows)
    smaller = pipe.take(kept)
    dropped = {"too late": int(late.sum()), "dominated": before - int(late.sum()) - len(kept)}
    return smaller, dropped


def too_late(pipe: PipelineInput, allowed: Bools | None = None) -> Bools:
    """Whether each candidate is too slow for its window beside the fastest of the others, shape `(n,)`.

    Args:
        pipe: the question; it has a deadline.
        allowed: as for `windows`.
    """
    start, end = windows(pipe, allowed)
    # a window is a difference of times of the deadline's size: so is its rounding
    late = start[pipe.task] + pipe.hours > end[pipe.task] + 1e-12 * pipe.deadline_hours
    return np.asarray(late, dtype=np.bool_)


def _fronts(pipe: PipelineInput, rows: Ints) -> Ints:
    """Of the candidates `rows`, ascending, those on the front of their (task, place)."""
    cell = pipe.kinds[rows]
    hours = pipe.hours[rows] if pipe.timed else np.zeros(len(rows))
    cost = pipe.cost_usd[rows]
    order = np.lexsort((cost, hours, cell))
    rank = np.empty(len(rows), dtype=np.int64)
    _, rank[:] = distinct(cost)[::2]
    # a later cell ranks below every earlier one, so that one running minimum serves all cells
    number = np.cumsum(np.r_[0, np.diff(cell[order]) != 0]) if len(rows) else np.zeros(0, dtype=np.int64)
    value = rank[order] - number * (len(rows) + 1)
    best = np.minimum.accumulate(value)
    falls = np.r_[True, value[1:] < best[:-1]] if len(rows) else np.zeros(0, dtype=np.bool_)
    return np.sort(rows[order[falls]])


def cheapest_usd(pipe: PipelineInput, allowed: Bools | None = None) -> Floats:
    """The cost of each task's cheapest candidate, shape `(n_tasks,)`, inf without one; no choice costs less in all.

    Args:
        pipe: the question.
        allowed: candidates to look at, shape `(n,)`; all by default.
    """
    cost = np.full(pipe.n_tasks, np.inf)
    usd = pipe.cost_usd if allowed is None else np.where(allowed, pipe.cost_usd, np.inf)
    np.minimum.at(cost, pipe.task, usd)
    return cost


def affordable(pipe: PipelineInput, most_usd: float) -> Bools:
    """Whether a choice in time of at most `most_usd` may have each candidate, shape `(n,)`; every task has one.

    A choice costs at least the cheapest candidate of every task. So a candidate that costs more above its task's
    cheapest than `most_usd` is above the sum of the cheapest is in none. Without it a task may be slower at its
    fastest, which makes others too slow for what is left of the deadline, and without those the cheapest dearer, and
    so on.
    """
    kept, count = np.ones(len(pipe.keys), dtype=np.bool_), -1
    while count != (count := int(kept.sum())):
        least = cheapest_usd(pipe, kept)
        kept &= pipe.cost_usd - least[pipe.task] <= most_usd - math.fsum(least)
        if pipe.timed:
            kept &= ~too_late(pipe, kept)
    return kept


def priced_for_solver(pipe: PipelineInput, most_usd: float) -> PipelineInput:
    """The same with costs and hours that one model can hold; no choice costs more or takes longer in it.

    Amounts above what a choice of at most `most_usd` has are lowered to it, and what is negligible beside the largest
    left counts as nothing. So the model's bound holds for the question; its choices are worked out again.
    """
    top = float(pipe.cost_usd.max(initial=0.0)) if math.isinf(most_usd) else most_usd
    longest = 2 * pipe.deadline_hours if pipe.timed else math.inf

    def held(values: Floats, most: float) -> Floats:
        largest = min(most, float(values.max(initial=0.0)) if math.isinf(most) else most)
        return np.where(values < NEGLIGIBLE * largest, 0.0, np.minimum(values, most))

    return replace(
        pipe, cost_usd=held(pipe.cost_usd, top), move_usd=held(pipe.move_usd, top), hours=held(pipe.hours, longest),
        move_hours=held(pipe.move_hours, longest),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Course:
    """What a choice of candidates comes to.

    Attributes:
        cost_usd: of tasks and moves.
        start_hours: earliest start per task, shape `(n_tasks,)`; end_hours likewise.
        move_usd: per edge, shape `(n_edges,)`; move_hours likewise.
    """

    cost_usd: float
    start_hours: Floats
    end_hours: Floats
    move_usd: Floats
    move_hours: Floats


def follow(pipe: PipelineInput, chosen: Ints) -> Course:
    """Work a choice out from the definitions.

    Args:
        pipe: the question.
        chosen: candidate of each task, shape `(n_tasks,)`.
    """
    place = pipe.place[chosen]
    usd, hours = pipe.moves(np.arange(len(pipe.source)), place[pipe.source], place[pipe.target])
    start, end = np.zeros(pipe.n_tasks), np.zeros(pipe.n_tasks)
    for task in pipe.sequence:
        for edge in pipe.into[task]:
            start[task] = max(start[task], end[pipe.source[edge]] + hours[edge])
        end[task] = start[task] + pipe.hours[chosen[task]]
    return Course(math.fsum([*pipe.cost_usd[chosen], *usd]), start, end, usd, hours)


def latest_ends(pipe: PipelineInput, course: Course, limit: float) -> Floats:
    """When each task may end at the latest, all others as chosen, shape `(n_tasks,)`.

    Args:
        pipe: the question.
        course: what a choice of candidates comes to.
        limit: when the last task ends at the latest, hours.
    """
    latest = np.full(pipe.n_tasks, limit)
    for task in reversed(pipe.sequence):
        for edge in pipe.out[task]:
            after = int(pipe.target[edge])
            length = course.end_hours[after] - course.start_hours[after]
            latest[task] = min(latest[task], latest[after] - length - course.move_hours[edge])
    return latest
