"""The rolling plan: at each step the portfolio of what has arrived is solved anew, and what it starts now is started.

A waiting job chooses among its ways to start now, and on owned instances also later, when runs there are predicted to
end; a run on owned instances of lower priority than a waiting job may continue or make room, and then its rest is
planned again. The choice is the portfolio's model (`planner.portfolios.solve`), with each limit once per start. Between
two steps jobs planned next on an owned pool start in their order as soon as they fit.

A job is bought elastic capacity when the plan finds no owned place for it in time and another step of waiting would
cost more, or there is nothing owned to wait for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.portfolios.rolling.course import (
    LEAST_REST,
    Option,
    Preempt,
    Start,
    Task,
    View,
    owned_nodes,
    whole_checkpoints,
)
from planner.portfolios.sequencing import start_sums, thinned
from planner.portfolios.shared_limits import MICRO, PortfolioInput
from planner.portfolios.solve import PortfolioOptions, solve_portfolio

MOST_STARTS = 10  # later starts considered at a step
SECONDS = 3600
WAITING_USD_PER_HOUR = 0.5  # what an hour until a job's end counts beside others, at priority 0
# At most this part of what an hour of the job's cheapest way costs: waiting decides between like costs.
WAITING_SHARE = 0.05
OWNED_WORTH = 0.3  # of what an owned instance-hour costs: what it is worth to jobs that come later
PREEMPTION_USD = 200.0  # what a preemption counts beside the work that it loses
NO_LATE_USD = 1_000.0  # a late way counts more than any in time, by at least this


@dataclass(frozen=True, eq=False)
class _Choice:
    """One column of the model: `option` None stands for not now; `at` is the number of its start."""

    option: Option | None
    at: int
    hours: float
    cost: int
    counted: int
    draws: dict[int, int]


@dataclass(eq=False)
class _Planned:
    """A job that starts on owned instances when its turn comes."""

    task: Task
    option: Option
    start: float


class RollingPolicy:
    """Plans anew at each step."""

    def __init__(self, options: PortfolioOptions | None = None) -> None:
        """Take how to solve; by default fast, to half a percent."""
        self._options = options or PortfolioOptions(gap=5e-3, time_limit_s=20.0, mode="fast")
        self._queue: list[_Planned] = []

    def decide(self, view: View) -> Sequence[Start | Preempt]:
        """Plan anew at a step, else start what is next on pools that have come free."""
        return self._replan(view) if view.step and view.waiting else self._dispatch(view)

    def _dispatch(self, view: View) -> list[Start | Preempt]:
        """Start planned jobs in their order; who does not fit holds up all behind it on the same limits."""
        out: list[Start | Preempt] = []
        used, held, left = dict(view.used), set[int](), []
        waiting = {task.job.number for task in view.waiting}
        for planned in self._queue:
            if planned.task.job.number not in waiting:
                continue
            draws, task = planned.option.draws, planned.task
            if not planned.option.lasts(view.now + task.overhead + planned.option.hours * task.rest):
                continue  # it came too late for what expires: the next plan finds another way
            if held.isdisjoint(draws) and view.fits(planned.option, used):
                out.append(Start(planned.task, planned.option))
                for at, units in draws.items():
                    used[at] = used.get(at, 0) + units
            else:
                held |= set(draws)
                left.append(planned)
        self._queue = left
        return out

    def _replan(self, view: View) -> list[Start | Preempt]:
        step = _Step(view)
        picks = step.solve(self._options)
        out: list[Start | Preempt] = []
        starts: list[Start] = []
        self._queue = []
        for task, pick in zip(step.tasks, picks, strict=True):
            if task.run is not None:
                if pick.option is task.run.option and pick.at < 0:
                    continue
                out.append(Preempt(task))
            if pick.option is None:
                continue
            if pick.at > 0:
                begin = view.now + step.starts[pick.at]
                self._queue.append(_Planned(task, pick.option, begin))
            elif pick.option.owned or not may_wait(view, task, pick.option):
                starts.append(Start(task, pick.option))
        self._queue.sort(key=lambda one: (one.start, -one.task.job.priority, one.task.job.number))
        return [*out, *starts]


def may_wait(view: View, task: Task, best: Option) -> bool:
    """Whether nothing is lost by deciding at the next step: it is as cheap then, and something owned may come free."""
    demand, job = view.demand, task.job
    options, later = view.options(task), view.now + demand.every_hours
    table = options[0].table
    hours = task.overhead + table.hours * task.rest
    late = demand.late_hours(job, table, later, hours)
    in_time = [
        option for option in options
        if late[option.row] <= 0 and option.lasts(later + float(hours[option.row]))
    ]  # fmt: skip
    as_cheap = any(not option.owned and option.cost_micro_usd <= best.cost_micro_usd for option in in_time)
    return as_cheap and any(option.owned for option in in_time)


class _Step:
    """The model of one step."""

    def __init__(self, view: View) -> None:
        """Take what is known now."""
        self._view, self._limits = view, view.demand.limits
        first = max((task.job.priority for task in view.waiting), default=0)
        movable = [
            task for task in view.running
            if task.run is not None and task.run.option.owned and task.job.priority < first
        ]  # fmt: skip
        self.tasks = [*view.waiting, *movable]
        self._options = {task.job.number: view.options(task) for task in self.tasks}
        moving = set(map(id, movable))
        self._fixed = [task for task in view.running if id(task) not in moving]
        self.starts = self._later_starts()
        alone = len(view.waiting) + len(view.running) == 1
        self._weight = 0.0 if alone else 1.0
        self._waiting_usd = {number: self._waiting_of(options) for number, options in self._options.items()}

    def _waiting_of(self, options: Sequence[Option]) -> float:
        """What an hour until a job's end counts beside other jobs, US dollars, at priority 0."""
        each = [
            (one.cost_micro_usd / MICRO + one.hours * self._usd_per_hour(one), one.hours) for one in options
        ]
        usd, hours = min(each, default=(0.0, 1.0))
        return min(WAITING_USD_PER_HOUR, WAITING_SHARE * usd / hours)

    def _later_starts(self) -> list[float]:
        """Hours from now at which jobs may start: now, when owned runs are predicted to end, and sums of such runs."""
        ends = {
            math.ceil(task.run.left(self._view.now) * SECONDS)
            for task in self._view.running
            if task.run is not None and task.run.option.owned
        }
        for until, _ in self._limits.carried:
            if self._view.now < until < math.inf:
                ends.add(math.ceil((until - self._view.now) * SECONDS))
        runs = []
        for task in self._view.waiting:
            owned = [option.hours * task.rest for option in self._options[task.job.number] if option.owned]
            if owned:
                runs.append(math.ceil(min(owned) * SECONDS))
        if len(runs) < 2 and not ends:
            return [0.0]
        horizon = max((*ends, *runs, 0)) * 2
        sums = start_sums([0, *sorted(ends)], sorted(runs), horizon)
        sums.discard(0)
        return [0.0, *(seconds / SECONDS for seconds in thinned(sorted(sums), MOST_STARTS))]

    def solve(self, options: PortfolioOptions) -> list[_Choice]:
        """The choice for each task.

        Raises:
            ModelError: numbers that no solver may see.
        """
        dearest = max((one.cost_micro_usd for each in self._options.values() for one in each), default=0)
        most = dearest + int(NO_LATE_USD * MICRO)
        every = [[*self._choices(task, most), _Choice(None, 0, 0.0, 0, 4 * most, {})] for task in self.tasks]
        portfolio_result = solve_portfolio(self._numbers(every), options)
        flat = [one for each in every for one in each]
        if (
            portfolio_result.picks is None
        ):  # no time: what is first in each list that fits, not now at the end
            return [each[-1] for each in every]
        return [flat[at] for at in portfolio_result.picks.tolist()]

    def _choices(self, task: Task, most: int) -> list[_Choice]:
        """Ways of a task and their starts; a run's first one is to go on."""
        out: list[_Choice] = []
        run, options, now = task.run, self._options[task.job.number], self._view.now
        rest, overhead, extra = task.rest, task.overhead, 0.0
        if run is not None:
            left = run.left(now)
            late = max(now + left - task.job.deadline, 0.0)
            counted = min(self._counted_usd(task, run.option, 0.0, left, late) * MICRO, most)
            out.append(_Choice(run.option, -1, left, 0, round(counted), run.option.draws))
            saved = whole_checkpoints(task.job, now - run.begin - run.overhead)
            rest = max(rest - saved / run.option.hours, LEAST_REST)
            overhead, extra = task.job.restart_hours, PREEMPTION_USD
        hours = overhead + options[0].table.hours * rest
        for at, begin in enumerate(self.starts):
            late_hours = self._view.demand.late_hours(task.job, options[0].table, now + begin, hours)
            for option in options if at == 0 else [one for one in options if one.owned]:
                length, late = float(hours[option.row]), float(late_hours[option.row])
                if not option.lasts(self._view.now + begin + length):
                    continue
                cost = round(option.cost_micro_usd * rest)
                usd = extra + self._counted_usd(task, option, begin, length, late)
                counted = cost + usd * MICRO + (most if late > 0 else 0)
                out.append(_Choice(option, at, length, cost, round(min(counted, 4 * most - 1)), option.draws))
        return out

    def _counted_usd(self, task: Task, option: Option, begin: float, hours: float, late: float) -> float:
        """What a way counts besides its cost: delay, lateness, and beside other jobs waiting and what is owned."""
        view, urgency = self._view, 1.0 + task.job.priority
        usd = task.job.delay_usd_per_hour * (view.now + begin + hours)
        usd += self._weight * self._waiting_usd[task.job.number] * urgency * (begin + hours)
        usd += self._weight * OWNED_WORTH * hours * self._usd_per_hour(option)
        return usd + view.demand.usd_per_hour_late * urgency * late

    def _usd_per_hour(self, option: Option) -> float:
        """What the owned instances of a way cost an hour, used or not."""
        prices = self._view.demand.limits.usd_per_node_hour
        return sum(prices[pool] * nodes for pool, nodes in owned_nodes(self._view.demand, option).items())

    def _numbers(self, every: list[list[_Choice]]) -> PortfolioInput:
        """The model's numbers: every limit once per start, less what fixed runs are predicted to hold."""
        starts, limits = self.starts, self._limits.amounts
        free = np.repeat(limits[:, None], len(starts), axis=1)
        holds = [(task.run.left(self._view.now), task.run.option.draws) for task in self._fixed if task.run]
        holds += [(until - self._view.now, draws) for until, draws in self._limits.carried]
        for left, draws in holds:
            for at, units in draws.items():
                free[at, np.array(starts) < left] -= units
        candidate, limit, units_of = [], [], []
        flat = [one for each in every for one in each]
        for number, one in enumerate(flat):
            begin = 0.0 if one.at < 0 else starts[max(one.at, 0)]
            touched = [at for at, start in enumerate(starts) if begin <= start < begin + one.hours]
            for at, units in one.draws.items():
                candidate += [number] * len(touched)
                limit += [at * len(starts) + window for window in touched]
                units_of += [units] * len(touched)
        return PortfolioInput(
            len(every), np.repeat(np.arange(len(every)), [len(each) for each in every]),
            np.array([one.cost for one in flat], dtype=np.int64),
            np.array([one.counted for one in flat], dtype=np.int64),
            np.array(candidate, dtype=np.int64), np.array(limit, dtype=np.int64), np.array(units_of, dtype=np.int64),
            np.maximum(free, 0).ravel(), np.repeat([limit.kind for limit in self._limits.all], len(starts)),
        )  # fmt: skip
