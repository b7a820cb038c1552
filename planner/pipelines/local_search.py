"""A plan for a pipeline within milliseconds: the least time first, then the changes that save most.

One task is changed at a time. With all others as they are, a candidate leaves so much slack before the tasks that
follow must start, data moves included; its cost with its moves is exact.

- *dive*: tasks without slack take the candidate that leaves most, until the deadline is kept or none helps.
- *improve*: always the change that saves most among those that fit; it ends in a choice that no single change improves.
- *trade*: two tasks at once, for time: one takes a candidate that saves but is too late, another on the path that is
  then late one that makes up for it and costs less than is saved.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.pipelines.question import PipelineInput, follow

MAX_CHANGES = 20  # times the number of tasks
LEAST_SAVING = 1e-9  # of a task's cost
LEAST_SLACK_HOURS = 1e-3  # slack used is counted as at least this much where savings per hour are compared
TRADED = 4  # candidates of a task tried in trades: those that save most per hour by which they are late
TIE = 1e-12  # of the deadline: slack that is none


class LocalSearch:
    """A choice, the slack of its tasks, and how it changes."""

    def __init__(self, pipe: PipelineInput, chosen: Ints, until_s: float = math.inf) -> None:
        """Start at a choice.

        Args:
            pipe: the question.
            chosen: candidate of each task, shape `(n_tasks,)`.
            until_s: moment of `time.perf_counter` at which to end with what is known.
        """
        self.pipe, self.chosen, self._until_s = pipe, chosen.copy(), until_s
        self._own = pipe.of_task
        self._source, self._target = pipe.source.tolist(), pipe.target.tolist()
        self._place = pipe.place[chosen].tolist()
        self._hours = pipe.hours[chosen].tolist()
        edges, place = np.arange(len(pipe.source)), pipe.place[chosen]
        self._moved = pipe.moves(edges, place[pipe.source], place[pipe.target])[1].tolist()
        self._at = np.argsort(pipe.sequence).tolist()  # where each task stands in the sequence
        count = pipe.n_tasks
        self._end, self._latest, self._slack = [0.0] * count, [math.inf] * count, [math.inf] * count
        self._schedule(set(range(count)), set(range(count)))

    def _schedule(self, ends: set[int], starts: set[int]) -> None:
        """Earliest ends and latest starts; those of the named tasks and what follows from them are worked out anew."""
        pipe, moved, hours, end, latest = self.pipe, self._moved, self._hours, self._end, self._latest
        touched = ends | starts
        for task in pipe.sequence[min(self._at[task] for task in ends) :]:
            if task in ends:
                begin = max([end[self._source[e]] + moved[e] for e in pipe.into[task]], default=0.0)
                if begin + hours[task] != end[task]:
                    end[task] = begin + hours[task]
                    touched.add(task)
                    ends.update([self._target[e] for e in pipe.out[task]])
        for task in reversed(pipe.sequence[: max(self._at[task] for task in starts) + 1]):
            if task in starts:
                limit = min([latest[self._target[e]] - moved[e] for e in pipe.out[task]], default=math.inf)
                late = min(limit, pipe.deadline_hours) - hours[task]
                if late != latest[task]:
                    latest[task] = late
                    touched.add(task)
                    starts.update([self._source[e] for e in pipe.into[task]])
        for task in touched:
            self._slack[task] = latest[task] - (end[task] - hours[task])

    @property
    def kept(self) -> bool:
        """Whether the choice meets the deadline."""
        return max(self._end, default=0.0) <= self.pipe.deadline_hours

    def candidates(self, task: int) -> Ints:
        """The candidates of a task."""
        return self._own[task]

    def change(self, task: int, candidate: int) -> None:
        """Let a task take another candidate."""
        pipe, place = self.pipe, int(self.pipe.place[candidate])
        self.chosen[task], self._hours[task] = candidate, float(pipe.hours[candidate])
        ends, starts = {task}, {task}
        if place != self._place[task]:
            self._place[task] = place
            for edge in (*pipe.into[task], *pipe.out[task]):
                u, v = self._source[edge], self._target[edge]
                self._moved[edge] = float(
                    pipe.moves(edge, pipe.place[self.chosen[u]], pipe.place[self.chosen[v]])[1]
                )
                ends.add(v)
                starts.add(u)
        self._schedule(ends, starts)

    def options(self, task: int) -> tuple[Floats, Floats]:
        """Cost of each of a task's `candidates` with its moves, and the slack it leaves (negative: does not fit)."""
        pipe, own, place = self.pipe, self._own[task], self._place
        cost, start = pipe.cost_usd[own], np.zeros(len(own))
        for edge in pipe.into[task]:
            other = self._source[edge]
            usd, hours = pipe.moves_beside(edge, place[other], inward=True)
            cost += usd
            np.maximum(start, self._end[other] + hours, out=start)
        limit = np.full(len(own), pipe.deadline_hours)
        for edge in pipe.out[task]:
            other = self._target[edge]
            usd, hours = pipe.moves_beside(edge, place[other], inward=False)
            cost += usd
            np.minimum(limit, self._latest[other] - hours, out=limit)
        return cost, limit - start - pipe.hours[own]

    def dive(self) -> bool:
        """Shorten the pipeline until the deadline is kept or no change of one task helps; say whether it is kept."""
        least = TIE * self.pipe.deadline_hours
        for _ in range(MAX_CHANGES * self.pipe.n_tasks):
            if self.kept:
                return True
            most = min(self._slack) + least
            for task in [task for task in self.pipe.sequence if self._slack[task] <= most]:
                slack = self.options(task)[1]
                at = int(np.argmax(slack))
                if slack[at] > self._slack[task] + least:
                    self.change(task, int(self._own[task][at]))
                    break
            else:
                return False
            if time.perf_counter() > self._until_s:
                break
        return self.kept

    def _best_change(self, task: int, thrifty: bool) -> tuple[float, int]:
        """The worth of a task's best change (0: none) and the candidate; `thrifty` weighs the slack it uses."""
        cost, slack = self.options(task)
        now = int(np.searchsorted(self._own[task], self.chosen[task]))
        fits = slack >= 0 if self.pipe.timed else np.ones(len(cost), dtype=np.bool_)
        saved = np.where(fits, cost[now] - cost, 0.0)
        saved[saved <= LEAST_SAVING * abs(float(cost[now]))] = 0.0
        if thrifty:
            saved /= np.maximum(slack[now] - slack, LEAST_SLACK_HOURS)
        at = int(np.argmax(saved))
        return float(saved[at]), int(self._own[task][at])

    def improve(self, *, thrifty: bool) -> None:
        """Make changes until none saves. The worth of a task's change is looked at anew when it comes first."""
        pipe, worth = self.pipe, np.full(self.pipe.n_tasks, np.inf)
        for _ in range(MAX_CHANGES * pipe.n_tasks):
            task = int(np.argmax(worth))
            if not worth[task] > 0 or time.perf_counter() > self._until_s:
                return
            worth[task], candidate = self._best_change(task, thrifty and pipe.timed)
            if worth[task] > 0 and worth[task] >= worth.max():
                self.change(task, candidate)
                near = [*pipe.source[pipe.into[task]], *pipe.target[pipe.out[task]], task]
                worth[near] = np.inf

    def trade(self) -> None:
        """Let two tasks trade time as long as that saves, and improve after each trade; the deadline stays kept."""
        if not (self.pipe.timed and self.kept):
            return
        task = vain = 0
        for _ in range(MAX_CHANGES * self.pipe.n_tasks):
            if vain == self.pipe.n_tasks or time.perf_counter() > self._until_s:
                return
            vain = 0 if self._traded(task) else vain + 1
            if not vain:
                self.improve(thrifty=False)
            task = (task + 1) % self.pipe.n_tasks

    def _traded(self, task: int) -> bool:
        """Let a task take a candidate that is late and saves, if another task then makes up for it at less."""
        was = int(self.chosen[task])
        cost, slack = self.options(task)
        now = cost[np.searchsorted(self._own[task], was)]
        saved = now - cost
        late = np.flatnonzero((saved > LEAST_SAVING * abs(now)) & (slack < 0))
        rate = saved[late] / np.maximum(-slack[late], LEAST_SLACK_HOURS)
        for at in late[np.argsort(-rate, kind="stable")[:TRADED]].tolist():
            self.change(task, int(self._own[task][at]))
            if self._made_up(task, float(saved[at]) - LEAST_SAVING * abs(float(now))):
                return True
            self.change(task, was)
        return False

    def _made_up(self, late: int, most: float) -> bool:
        """Meet the deadline again by the cheapest change of a task other than `late` at less than `most`, if any."""
        least = min(self._slack) + TIE * self.pipe.deadline_hours
        best, task, candidate = most, -1, -1
        for other in (task for task in self.pipe.sequence if self._slack[task] <= least and task != late):
            cost, slack = self.options(other)
            extra = np.where(slack >= 0, cost, np.inf)
            extra -= cost[np.searchsorted(self._own[other], self.chosen[other])]
            at = int(np.argmin(extra))
            if extra[at] < best:
                best, task, candidate = float(extra[at]), other, int(self._own[other][at])
        if task < 0:
            return False
        was = int(self.chosen[task])
        self.change(task, candidate)
        if not self.kept:  # a path without this task is late as well
            self.change(task, was)
        return self.kept


def local_choice(pipe: PipelineInput, until_s: float = math.inf) -> Ints | None:
    """A choice that meets the deadline, shape `(n_tasks,)`; None where no dive ends in one (which proves nothing).

    Args:
        pipe: the question; every task has a candidate.
        until_s: moment of `time.perf_counter` at which to end.
    """
    for start in _starts(pipe):
        search = LocalSearch(pipe, start, until_s)
        if pipe.timed and not search.dive():
            continue
        return improved(pipe, search.chosen, until_s)
    return None


def shortest(pipe: PipelineInput, until_s: float = math.inf) -> Ints:
    """A choice that ends early, whatever it costs: the best end of the dives from all starts."""
    hurried = replace(pipe, deadline_hours=0.0)
    found = []
    for start in _starts(hurried):
        search = LocalSearch(hurried, start, until_s)
        search.dive()
        found.append(search.chosen)
    return min(found, key=lambda choice: float(follow(pipe, choice).end_hours.max(initial=0.0)))


def improved(pipe: PipelineInput, chosen: Ints, until_s: float = math.inf) -> Ints:
    """The better of the two local optima that a choice leads to; it meets the deadline if the choice does."""
    found = []
    for thrifty in (True, False) if pipe.timed else (False,):
        search = LocalSearch(pipe, chosen, until_s)
        search.improve(thrifty=thrifty)
        search.improve(thrifty=False)
        found.append(search.chosen)
    return min(found, key=lambda choice: follow(pipe, choice).cost_usd)


def repaired(pipe: PipelineInput, chosen: Ints, until_s: float = math.inf) -> Ints | None:
    """A choice near `chosen` that meets the deadline; None where the dive ends in none."""
    search = LocalSearch(pipe, chosen, until_s)
    return search.chosen if not pipe.timed or search.dive() else None


def _starts(pipe: PipelineInput) -> list[Ints]:
    """The fastest candidates: at one group of places each, those that end first foremost, and wherever they are."""
    if not pipe.timed:
        return [least(pipe, pipe.cost_usd)]
    alone = [_at_one_group(pipe, group) for group in range(pipe.n_groups)]
    starts = [least(pipe, pipe.hours), *(start for start in alone if start is not None)]
    return sorted(starts, key=lambda start: float(follow(pipe, start).end_hours.max(initial=0.0)))


def least(pipe: PipelineInput, value: Floats) -> Ints:
    """The candidate of least value of each task."""
    rows = np.lexsort((value, pipe.task))
    return rows[np.searchsorted(pipe.task[rows], np.arange(pipe.n_tasks))]


def _at_one_group(pipe: PipelineInput, group: int) -> Ints | None:
    """The fastest candidates within one group of places, None where a task has none there."""
    hours = np.where(pipe.group[pipe.place] == group, pipe.hours, np.inf)
    chosen = least(pipe, hours)
    return chosen if np.isfinite(hours[chosen]).all() else None
