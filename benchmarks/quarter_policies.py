"""Schedulers that a rolling plan is compared with: fair-share with backfill, and cheapest first.

Both act at every arrival and every end, not only at steps, and know the same predictions. Neither preempts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.portfolios.rolling.course import Option, Preempt, Start, Task, View, owned_nodes
from planner.portfolios.rolling.replan import may_wait

HALF_LIFE_HOURS = (
    7 * 24.0
)  # of a team's use of what is owned, Slurm's PriorityDecayHalfLife by default 7 days


@dataclass(frozen=True)
class _Ways:
    """A task's ways now, with predicted length and lateness of each."""

    options: list[Option]
    hours: np.ndarray[tuple[int], np.dtype[np.float64]]
    late: np.ndarray[tuple[int], np.dtype[np.float64]]

    @classmethod
    def of(cls, view: View, task: Task, begin: float) -> _Ways:
        options = view.options(task)
        table = options[0].table
        hours = task.overhead + table.hours * task.rest
        return cls(options, hours, view.demand.late_hours(task.job, table, begin, hours))

    def cheapest_bought(self, view: View, used: dict[int, int]) -> Option | None:
        """The cheapest in time that fits, else the one that is least late."""
        fitting = [one for one in self.options if not one.owned and view.fits(one, used)]
        return min(
            fitting, key=lambda one: (self.late[one.row], one.cost_micro_usd, self.hours[one.row]), default=None
        )  # fmt: skip


class CheapestFirst:
    """In order of arrival each job takes at once the cheapest way in time that is free; what is owned costs nothing."""

    def decide(self, view: View) -> Sequence[Start | Preempt]:
        """Start all that has a way."""
        out, used = [], dict(view.used)
        for task in view.waiting:
            ways = _Ways.of(view, task, view.now)
            fitting = [one for one in ways.options if view.fits(one, used)]
            best = min(
                fitting, key=lambda one: (ways.late[one.row], one.cost_micro_usd, ways.hours[one.row]), default=None
            )  # fmt: skip
            if best is not None:
                out.append(Start(task, best))
                _take(used, best)
        return out


class FairShare:
    """The team that used least of its share goes first; others fill holes that do not hold up the first that waits.

    Runs on what is owned take the way of fewest instance-hours that is in time, at list prices. What would be late
    unless it starts before the next step is bought.
    """

    def __init__(self, shares: dict[str, float]) -> None:
        """Take each team's weight."""
        self._shares, self._use, self._at = shares, dict.fromkeys(shares, 0.0), 0.0

    def decide(self, view: View) -> Sequence[Start | Preempt]:
        """Start what fits in the order of fairness, then buy what cannot wait."""
        self._age(view)
        out: list[Start | Preempt] = []
        used, held = dict(view.used), dict[int, float]()
        order = sorted(
            view.waiting,
            key=lambda one: (self._level(one), -one.job.priority, one.job.submitted, one.job.number),
        )
        for task in order:
            ways = _Ways.of(view, task, view.now)
            owned = self._owned(view, ways, used, held)
            if owned is not None:
                out.append(Start(task, owned))
                _take(used, owned)
                continue
            bought = ways.cheapest_bought(view, used)
            if bought is not None and not may_wait(view, task, bought):
                out.append(Start(task, bought))
                _take(used, bought)
            elif not held:
                held = self._reserve(view, ways, used)
        return out

    def _owned(self, view: View, ways: _Ways, used: dict[int, int], held: dict[int, float]) -> Option | None:
        """The owned way in time that fits with the least instance-hours, and ends before what is held is needed."""
        found = [
            one for one in ways.options
            if one.owned and ways.late[one.row] <= 0 and view.fits(one, used)
            and all(ways.hours[one.row] <= held[at] for at in one.draws if at in held)
        ]  # fmt: skip
        return min(found, key=lambda one: (self._usd(view, ways, one), ways.hours[one.row]), default=None)

    def _reserve(self, view: View, ways: _Ways, used: dict[int, int]) -> dict[int, float]:
        """Limits that the first that waits needs, and the hours until it is predicted to have them (EASY backfill)."""
        best: tuple[float, Option] | None = None
        ends = [(task.run.left(view.now), task.run.option) for task in view.running if task.run]
        ends.sort(key=lambda pair: pair[0])
        for option in ways.options:
            if not option.owned or ways.late[option.row] > 0:
                continue
            free = dict(used)
            for left, run in ends:
                for at, units in run.draws.items():
                    free[at] = free.get(at, 0) - units
                if view.fits(option, free):
                    if best is None or left + ways.hours[option.row] < best[0] + ways.hours[best[1].row]:
                        best = (left, option)
                    break
        return {} if best is None else dict.fromkeys(best[1].draws, best[0])

    def _usd(self, view: View, ways: _Ways, option: Option) -> float:
        prices = view.demand.limits.usd_per_node_hour
        per_hour = sum(prices[pool] * nodes for pool, nodes in owned_nodes(view.demand, option).items())
        return float(per_hour * ways.hours[option.row])

    def _level(self, task: Task) -> float:
        """Use of a team over its weight."""
        team = task.job.team or ""
        return self._use.get(team, 0.0) / self._shares.get(team, 1.0)

    def _age(self, view: View) -> None:
        """Let use decay, and add what has run since the last moment."""
        passed = view.now - self._at
        decay = 0.5 ** (passed / HALF_LIFE_HOURS)
        self._use = {team: use * decay for team, use in self._use.items()}
        for task in view.running:
            if task.run is not None and task.job.team in self._use and task.job.team is not None:
                nodes = sum(owned_nodes(view.demand, task.run.option).values())
                self._use[task.job.team] += nodes * min(passed, view.now - task.run.begin)
        self._at = view.now


def _take(used: dict[int, int], option: Option) -> None:
    for at, units in option.draws.items():
        used[at] = used.get(at, 0) + units
