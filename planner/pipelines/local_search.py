"""A good choice for a pipeline within milliseconds: from the fastest choice, always the change that saves most.

One task is changed at a time. With all others as they are, a candidate fits when the task can end, data moves
included, before its followers must start; among those that fit the saving is exact. Ends in a choice that no single
change improves.
"""

from __future__ import annotations

import numpy as np

from planner.pipelines.question import Floats, Ints, PipelineInput, follow

MAX_CHANGES = 20  # times the number of tasks
LEAST_SAVING = 1e-9  # of a task's cost


class _Search:
    """A choice and the slack of its tasks."""

    def __init__(self, pipe: PipelineInput, chosen: Ints) -> None:
        self.pipe, self.chosen = pipe, chosen
        self.of_task = [np.flatnonzero(pipe.task == task) for task in range(pipe.n_tasks)]
        self.schedule()

    def schedule(self) -> None:
        """Earliest ends and latest starts of the choice."""
        pipe = self.pipe
        course = follow(pipe, self.chosen)
        self.end = course.end_hours
        self.latest = np.full(pipe.n_tasks, np.inf)
        for task in reversed(pipe.sequence):
            limit = pipe.deadline_hours
            for edge in pipe.out[task]:
                limit = min(limit, self.latest[pipe.target[edge]] - course.move_hours[edge])
            self.latest[task] = limit - pipe.hours[self.chosen[task]]

    def options(self, task: int) -> tuple[Floats, Floats]:
        """Cost of each candidate of a task with its moves, and the slack left (negative: does not fit)."""
        pipe, mine = self.pipe, self.of_task[task]
        place = pipe.place[mine]
        cost, start = pipe.cost_usd[mine].copy(), np.zeros(len(mine))
        for edge in pipe.into[task]:
            other = int(pipe.source[edge])
            usd, hours = pipe.moves(edge, pipe.place[self.chosen[other]], place)
            cost += usd
            start = np.maximum(start, self.end[other] + hours)
        limit = np.full(len(mine), pipe.deadline_hours)
        for edge in pipe.out[task]:
            other = int(pipe.target[edge])
            usd, hours = pipe.moves(edge, place, pipe.place[self.chosen[other]])
            cost += usd
            limit = np.minimum(limit, self.latest[other] - hours)
        slack = limit - start - pipe.hours[mine] if pipe.timed else np.full(len(mine), np.inf)
        return cost, slack

    def best_change(self, task: int, thrifty: bool) -> tuple[float, int]:
        """The worth of a task's best change (0: none) and the candidate; `thrifty` weighs the slack it uses."""
        cost, slack = self.options(task)
        now = int(np.searchsorted(self.of_task[task], self.chosen[task]))
        saved = np.where(slack >= 0, cost[now] - cost, 0.0)
        saved[saved <= LEAST_SAVING * max(abs(float(cost[now])), 1.0)] = 0.0
        if thrifty and self.pipe.timed:
            saved /= np.maximum(slack[now] - slack, 1e-3)
        at = int(np.argmax(saved))
        return float(saved[at]), int(self.of_task[task][at])

    def improve(self, *, thrifty: bool) -> None:
        """Make changes until none saves. The worth of a task's change is looked at anew when it comes first."""
        pipe = self.pipe
        worth = np.full(pipe.n_tasks, np.inf)
        for _ in range(MAX_CHANGES * pipe.n_tasks):
            task = int(np.argmax(worth))
            if not worth[task] > 0:
                return
            worth[task], candidate = self.best_change(task, thrifty)
            if worth[task] > 0 and worth[task] >= worth.max():
                self.chosen[task] = candidate
                self.schedule()
                near = [*pipe.source[pipe.into[task]], *pipe.target[pipe.out[task]], task]
                worth[near] = np.inf


def local_choice(pipe: PipelineInput) -> Ints | None:
    """A feasible choice, shape `(n_tasks,)`; None where even the fastest candidates miss the deadline."""
    value = pipe.hours if pipe.timed else pipe.cost_usd
    starts: list[Ints | None] = [least(pipe, value)]
    if pipe.timed:
        starts += [_at_one_group(pipe, group) for group in range(pipe.n_groups)]
    best: tuple[float, Ints] | None = None
    for start in starts:
        if start is None or not _kept(pipe, start):
            continue
        for thrifty in (True, False):
            search = _Search(pipe, start.copy())
            search.improve(thrifty=thrifty)
            cost = follow(pipe, search.chosen).cost_usd
            if best is None or cost < best[0]:
                best = cost, search.chosen
    return None if best is None else best[1]


def _kept(pipe: PipelineInput, chosen: Ints) -> bool:
    return bool(follow(pipe, chosen).end_hours.max(initial=0.0) <= pipe.deadline_hours)


def least(pipe: PipelineInput, value: Floats) -> Ints:
    """The candidate of least value of each task."""
    rows = np.lexsort((value, pipe.task))
    return rows[np.searchsorted(pipe.task[rows], np.arange(pipe.n_tasks))]


def _at_one_group(pipe: PipelineInput, group: int) -> Ints | None:
    """The fastest candidates within one group of places, None where a task has none there."""
    hours = np.where(pipe.group[pipe.place] == group, pipe.hours, np.inf)
    chosen = least(pipe, hours)
    return chosen if np.isfinite(hours[chosen]).all() else None
