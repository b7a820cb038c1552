"""Exact answers for pipelines that are trees, without a solver.

Without a deadline any forest is solved by dynamic programming over (task, candidate): what lies beyond an edge depends
on the task's place alone. With one, trees that fork or join (not both; chains are both) carry a front of (time, cost)
per candidate instead of one cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.pipelines.question import PipelineInput
from solvers.search.pareto import pareto_front

MAX_LABELS = 3_000_000  # labels compared at once; where fronts grow beyond, the MILP answers instead


def solve_tree(pipe: PipelineInput, until_s: float = math.inf) -> Ints | None:
    """The cheapest choice for a pipeline that is a tree or several.

    Args:
        pipe: the question.
        until_s: moment of `time.perf_counter` at which to give up.

    Returns:
        The candidate of each task, shape `(n_tasks,)`, empty where no choice meets the deadline; None where this method
        does not apply.
    """
    links = [(int(u), int(v)) for u, v in zip(pipe.source, pipe.target, strict=True)]
    if len(set(links)) < len(links):
        return None
    if not pipe.timed:
        rooted = _rooted(pipe.n_tasks, [(u, v, e) for e, (u, v) in enumerate(links)], both_ways=True)
        return None if rooted is None else _Labels(pipe, rooted, timed=False, until_s=until_s).solve()
    for turned in (False, True):
        pairs = [(v, u, e) if turned else (u, v, e) for e, (u, v) in enumerate(links)]
        rooted = _rooted(pipe.n_tasks, pairs, both_ways=False)
        if rooted is not None:
            return _Labels(pipe, rooted, timed=True, until_s=until_s).solve()
    return None


@dataclass(frozen=True)
class _Rooted:
    """Forest with roots: tasks with parents before children; per task its (child, edge) pairs."""

    sequence: list[int]
    children: list[list[tuple[int, int]]]
    roots: list[int]


def _rooted(count: int, links: list[tuple[int, int, int]], *, both_ways: bool) -> _Rooted | None:
    """Root a forest, following links from parent to child (or both ways); None when it is no forest."""
    near: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    parents = [0] * count
    for parent, child, edge in links:
        near[parent].append((child, edge))
        parents[child] += 1
        if both_ways:
            near[child].append((parent, edge))
    if not both_ways and max(parents, default=0) > 1:
        return None
    starts = range(count) if both_ways else [task for task in range(count) if not parents[task]]
    children: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    sequence: list[int] = []
    roots: list[int] = []
    seen = [False] * count
    for start in starts:
        if seen[start]:
            continue
        roots.append(start)
        seen[start] = True
        stack = [(start, -1)]
        while stack:
            task, came = stack.pop()
            sequence.append(task)
            for other, edge in near[task]:
                if edge == came:
                    continue
                if seen[other]:
                    return None
                seen[other] = True
                children[task].append((other, edge))
                stack.append((other, edge))
    return _Rooted(sequence, children, roots)


@dataclass
class _Front:
    """Ways to run a task by one candidate and all below it: time (0 where it does not matter), cost, and choices below.

    `below` holds per child the label of the child taken, as (child's candidate, its label).
    """

    time: Floats
    cost: Floats
    below: list[tuple[Ints, Ints]]


class _TooMany(Exception):  # noqa: N818
    """The fronts grew beyond `MAX_LABELS`, or the time is up."""


class _Labels:
    """Fronts of all candidates, children first."""

    def __init__(self, pipe: PipelineInput, tree: _Rooted, *, timed: bool, until_s: float) -> None:
        self._pipe, self._tree, self._timed = pipe, tree, timed
        self._until_s = until_s
        self._of_task = [np.flatnonzero(pipe.task == task) for task in range(pipe.n_tasks)]
        self._front: dict[int, _Front] = {}

    def solve(self) -> Ints | None:
        """The best choice; see `solve_tree`."""
        try:
            for task in reversed(self._tree.sequence):
                self._add(task)
        except _TooMany:
            return None
        chosen = np.full(self._pipe.n_tasks, -1, dtype=np.int64)
        for root in self._tree.roots:
            best = [
                (float(f.cost[-1]), k) for k in self._of_task[root] if len((f := self._front[int(k)]).cost)
            ]
            if not best:
                return np.zeros(0, dtype=np.int64)
            # fronts are sorted by time, so the last label is the cheapest
            candidate = int(min(best)[1])
            self._trace(root, candidate, len(self._front[candidate].cost) - 1, chosen)
        return chosen

    def _trace(self, root: int, candidate: int, label: int, chosen: Ints) -> None:
        stack = [(root, candidate, label)]
        while stack:
            task, candidate, label = stack.pop()
            chosen[task] = candidate
            below = self._front[candidate].below
            for (child, _), (candidates, labels) in zip(self._tree.children[task], below, strict=True):
                stack.append((child, int(candidates[label]), int(labels[label])))

    def _add(self, task: int) -> None:
        """Fronts of a task's candidates: its own time and cost on top of what all children need from its place."""
        pipe = self._pipe
        at_place: dict[int, _Front] = {}
        for candidate in self._of_task[task].tolist():
            place = int(pipe.place[candidate])
            if place not in at_place:
                at_place[place] = self._from(task, place)
            base = at_place[place]
            time = base.time + pipe.hours[candidate] if self._timed else base.time
            fits = np.flatnonzero(time <= pipe.deadline_hours * (1 + 1e-12))
            below = [(candidates[fits], labels[fits]) for candidates, labels in base.below]
            self._front[candidate] = _Front(time[fits], base.cost[fits] + pipe.cost_usd[candidate], below)

    def _from(self, task: int, place: int) -> _Front:
        """What all children of a task at `place` need together: the longest time, the sum of costs."""
        total = _Front(np.zeros(1), np.zeros(1), [])
        for child, edge in self._tree.children[task]:
            time, cost, candidates, labels = self._child(child, edge, place)
            total = _joined(total, time, cost, candidates, labels)
        return total

    def _child(self, child: int, edge: int, place: int) -> tuple[Floats, Floats, Ints, Ints]:
        """The front of one child as seen from a place, its move included."""
        pipe = self._pipe
        options = self._of_task[child]
        forward = int(pipe.target[edge]) == child
        here, there = np.full(len(options), place), pipe.place[options]
        usd, hours = pipe.moves(edge, here if forward else there, there if forward else here)
        sizes = np.asarray([len(self._front[int(k)].cost) for k in options])
        if sizes.sum() > MAX_LABELS or perf_counter() > self._until_s:
            raise _TooMany
        if not sizes.sum():
            return np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        fronts = [self._front[int(k)] for k in options]
        time = np.concatenate([f.time for f in fronts]) + (np.repeat(hours, sizes) if self._timed else 0.0)
        cost = np.concatenate([f.cost for f in fronts]) + np.repeat(usd, sizes)
        candidates = np.repeat(options, sizes)
        labels = np.concatenate([np.arange(size) for size in sizes.tolist()])
        front = pareto_front(time, cost)
        front = front[time[front] <= pipe.deadline_hours * (1 + 1e-12)]
        return time[front], cost[front], candidates[front], labels[front]


def _joined(total: _Front, time: Floats, cost: Floats, candidates: Ints, labels: Ints) -> _Front:
    """Two fronts that run side by side: at every time the cheapest of each, together."""
    if not len(time) or not len(total.time):
        empty = np.zeros(0, dtype=np.int64)
        return _Front(np.zeros(0), np.zeros(0), [*((empty, empty) for _ in total.below), (empty, empty)])
    times = np.union1d(total.time, time)
    times = times[times >= max(total.time[0], time[0])]
    left = np.searchsorted(total.time, times, side="right") - 1
    right = np.searchsorted(time, times, side="right") - 1
    below = [(c[left], k[left]) for c, k in total.below]
    return _Front(times, total.cost[left] + cost[right], [*below, (candidates[right], labels[right])])
