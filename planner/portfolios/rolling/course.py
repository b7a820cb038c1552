"""What happens: jobs arrive, a policy starts and preempts runs, runs end when they really do.

The policy sees the jobs that have arrived, what runs and how long that is predicted to take. How long a run really
takes is known to the course alone, and it starts nothing that has not arrived or that does not fit.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from planner.errors import InfeasibleError, PlannerError
from planner.inputs.bounds import MOST_HOURS
from planner.portfolios.rolling.demand import Demand, Job
from planner.portfolios.shared_limits import CAPACITY
from planner.portfolios.table import CandidateTable

END, ARRIVE, STEP = 0, 1, 2  # order of what happens at one moment
LEAST_REST = 0.02  # of a job's work, as a policy takes it where a job has done more than was predicted
_TIE = 1e-9  # hours
LEAST_LEFT = 0.1  # of the time that a run is predicted to take, once it takes longer


@dataclass(frozen=True, eq=False)
class Option:
    """One way to run a job.

    Attributes:
        table, row: the candidate.
        hours, cost_micro_usd: of the whole job.
        draws: units of each limit while it runs.
        owned: whether all of it runs on owned instances.
        end_hours: when the first of what it holds of that expires; infinity where nothing does.
    """

    table: CandidateTable
    row: int
    hours: float
    cost_micro_usd: int
    draws: dict[int, int]
    owned: bool
    end_hours: float = math.inf

    def lasts(self, until: float) -> bool:
        """Whether what it holds has not expired before a moment, hours after the portfolio's start."""
        return until <= self.end_hours + _TIE


@dataclass(eq=False)
class Run:
    """A job on machines.

    Attributes:
        begin: hours after the portfolio's start.
        rest: share of the work that is left, as predicted.
        overhead: hours until it works.
    """

    option: Option
    begin: float
    rest: float
    overhead: float

    @property
    def length(self) -> float:
        """Predicted hours from begin to end."""
        return self.overhead + self.option.hours * self.rest

    def left(self, now: float) -> float:
        """Hours that it is predicted to take from `now` on."""
        return max(self.begin + self.length - now, LEAST_LEFT * self.length)


@dataclass(frozen=True, eq=False)
class Stint:
    """A run that is over.

    Attributes:
        lost_hours: work that was not saved when it was preempted.
    """

    option: Option
    begin: float
    end: float
    cost_micro_usd: int
    preempted: bool
    lost_hours: float


@dataclass(eq=False)
class Task:
    """A job that has arrived; `saved` is the share of its work in checkpoints, by predicted hours."""

    job: Job
    saved: float = 0.0
    run: Run | None = None
    end: float | None = None
    stints: list[Stint] = field(default_factory=list)

    @property
    def rest(self) -> float:
        """Share of the work that is left, as predicted."""
        return max(1.0 - self.saved, LEAST_REST)

    @property
    def overhead(self) -> float:
        """Hours that its next run takes until it works."""
        return self.job.restart_hours if self.stints else 0.0


@dataclass(frozen=True)
class Start:
    """Start `task` on `option` now."""

    task: Task
    option: Option


@dataclass(frozen=True)
class Preempt:
    """Stop the run of `task` now."""

    task: Task


class Policy(Protocol):
    """Decides; it is asked after every moment at which something happens."""

    def decide(self, view: View) -> Sequence[Start | Preempt]:
        """What to do now, in this order."""


@dataclass(eq=False)
class View:
    """What a policy may know at a moment.

    Attributes:
        demand: shared limits and the ways of jobs that have arrived.
        now: hours after the portfolio's start.
        waiting, running: jobs that have arrived and are not done, in the order of arrival.
        used: units in use of each limit.
        step: whether it is time for a new plan.
    """

    demand: Demand
    now: float
    waiting: list[Task]
    running: list[Task]
    used: dict[int, int]
    step: bool

    def options(self, task: Task) -> list[Option]:
        """Every way to run the job from now on."""
        table = self.demand.ways(task.job, self.now)
        draws = self.demand.limits.draws(table, task.job.team)
        owned = np.all((table.pool >= 0) | (table.way < 0), axis=1)
        hours, cost = table.hours.tolist(), table.cost_micro_usd.tolist()
        return [
            Option(
                table, row, hours[row], cost[row], draws[row], bool(owned[row]), self._end_hours(draws[row])
            )
            for row in range(len(table))
        ]

    def _end_hours(self, draws: dict[int, int]) -> float:
        """When the first of the owned instances that a way draws on expires."""
        limits = self.demand.limits
        pools = [limits.all[at].number for at in draws if limits.all[at].kind == CAPACITY]
        return min((limits.end_hours[pool] for pool in pools), default=math.inf)

    def fits(self, option: Option, used: dict[int, int] | None = None) -> bool:
        """Whether all that the way draws is free now."""
        taken, limits = self.used if used is None else used, self.demand.limits.all
        return all(taken.get(at, 0) + units <= limits[at].amount for at, units in option.draws.items())


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of it.

    Attributes:
        tasks: every job, in the order of the file.
        peak: most in use of each limit at any time.
        steps: times a plan was made anew.
    """

    tasks: tuple[Task, ...]
    peak: dict[int, int]
    steps: int

    @property
    def never(self) -> tuple[Task, ...]:
        """Jobs that nothing could run."""
        return tuple(task for task in self.tasks if task.end is None)


class Course:
    """One policy through all of a demand."""

    def __init__(self, demand: Demand, policy: Policy, factors: Sequence[float] | None = None) -> None:
        """Take what to go through.

        Args:
            demand: the jobs.
            policy: decides.
            factors: real over predicted hours of each job, shape `(n_jobs,)`; by default all run as predicted.
        """
        self._demand, self._policy = demand, policy
        self._factors = [1.0] * len(demand.jobs) if factors is None else list(factors)
        self._events: list[tuple[float, int, int, int, Run | None]] = []
        self._tasks: dict[int, Task] = {}
        self._waiting: list[Task] = []
        self._running: list[Task] = []
        self._used: dict[int, int] = {}
        self._peak: dict[int, int] = {}
        self._arrived = self._steps = self._pushed = 0
        self.now = 0.0

    def play(self) -> Outcome:
        """Let everything happen.

        Raises:
            PlannerError: the policy starts what does not fit or has not arrived.
            InfeasibleError: what is waiting goes on for more than a century after the last submission.
        """
        latest = MOST_HOURS + max((job.submitted for job in self._demand.jobs), default=0.0)
        for job in self._demand.jobs:
            self._push(job.submitted, ARRIVE, job.number)
        for number, (until, draws) in enumerate(self._demand.limits.carried):
            self._take(draws, 1)
            if math.isfinite(until):
                self._push(max(until, 0.0), END, -1 - number)
        self._push(0.0, STEP, 0)
        idle = 0
        while self._events and idle < 2:
            if self._events[0][0] > latest:
                raise InfeasibleError(
                    f"{len(self._waiting):,} jobs still wait after a century: look at the hours of their candidates"
                )
            step = self._happen()
            acted = self._act(step=step)
            # nothing runs or arrives and a new plan starts nothing: what is left can never run
            still = step and not acted and not self._running and len(self._events) <= 1
            idle = idle + 1 if still else 0 if step else idle
        every = [self._tasks.get(job.number) or Task(job) for job in self._demand.jobs]
        return Outcome(tuple(every), self._peak, self._steps)

    def _push(self, when: float, kind: int, number: int, run: Run | None = None) -> None:
        self._pushed += 1
        heapq.heappush(self._events, (when, kind, number, self._pushed, run))

    def _happen(self) -> bool:
        """Let all that happens at the next moment happen; say whether it is time for a new plan."""
        self.now, step = self._events[0][0], False
        while self._events and self._events[0][0] == self.now:
            _, kind, number, _, run = heapq.heappop(self._events)
            if kind == ARRIVE:
                task = self._tasks[number] = Task(self._demand.jobs[number])
                self._waiting.append(task)
                self._arrived += 1
            elif kind == STEP:
                step = True
                self._steps += bool(self._waiting)
            elif number < 0:
                self._take(self._demand.limits.carried[-1 - number][1], -1)
            elif self._tasks[number].run is run:  # else it was preempted
                self._finish(self._tasks[number])
        open_jobs = self._waiting or self._running or self._arrived < len(self._demand.jobs)
        if step and open_jobs:
            self._push(self._next_step(), STEP, 0)
        return step

    def _next_step(self) -> float:
        """The next step on the grid at which there may be something to plan."""
        every = self._demand.every_hours
        count = math.floor(self.now / every + 1e-9) + 1
        if not self._waiting and not self._running and self._events:
            count = max(count, math.ceil(self._events[0][0] / every - 1e-9))
        return count * every

    def _act(self, *, step: bool) -> bool:
        view = View(self._demand, self.now, list(self._waiting), list(self._running), dict(self._used), step)
        actions = self._policy.decide(view)
        for action in actions:
            if isinstance(action, Preempt):
                self._preempt(action.task)
            else:
                self._start(action.task, action.option)
        return bool(actions)

    def _start(self, task: Task, option: Option) -> None:
        if task not in self._waiting:
            raise PlannerError(f"{task.job.name} is not waiting at hour {self.now:g}: it cannot start")
        limits = self._demand.limits.all
        for at, units in option.draws.items():
            if self._used.get(at, 0) + units > limits[at].amount:
                raise PlannerError(f"{task.job.name} does not fit {limits[at].label} at hour {self.now:g}")
        run = Run(option, self.now, task.rest, task.overhead)
        if not option.lasts(self.now + run.length):
            raise PlannerError(
                f"{task.job.name} would run on what expires before it ends, at hour {self.now:g}"
            )
        task.run = run
        self._waiting.remove(task)
        self._running.append(task)
        self._take(option.draws, 1)
        work = option.hours * max(self._factors[task.job.number] - task.saved, 0.0)
        self._push(self.now + task.overhead + work, END, task.job.number, task.run)

    def _preempt(self, task: Task) -> None:
        run = task.run
        if run is None or not run.option.owned:
            raise PlannerError(f"{task.job.name} does not run on owned instances: it cannot be preempted")
        worked = max(self.now - run.begin - run.overhead, 0.0)
        saved = whole_checkpoints(task.job, worked)
        task.saved += saved / run.option.hours
        self._leave(task, preempted=True, lost=worked - saved)
        self._waiting.append(task)
        self._waiting.sort(key=lambda one: (one.job.submitted, one.job.number))

    def _finish(self, task: Task) -> None:
        task.end = self.now
        self._leave(task, preempted=False, lost=0.0)

    def _leave(self, task: Task, *, preempted: bool, lost: float) -> None:
        run = task.run
        assert run is not None
        cost = round(run.option.cost_micro_usd * (self.now - run.begin) / run.option.hours)
        task.stints.append(Stint(run.option, run.begin, self.now, cost, preempted, lost))
        task.run = None
        self._running.remove(task)
        self._take(run.option.draws, -1)

    def _take(self, draws: dict[int, int], sign: int) -> None:
        for at, units in draws.items():
            self._used[at] = self._used.get(at, 0) + sign * units
            self._peak[at] = max(self._peak.get(at, 0), self._used[at])


def whole_checkpoints(job: Job, worked_hours: float) -> float:
    """Hours of work that checkpoints have saved."""
    return max(math.floor(worked_hours / job.checkpoint_hours + 1e-9), 0) * job.checkpoint_hours


def owned_nodes(demand: Demand, option: Option) -> dict[int, int]:
    """Instances of each pool that a way holds while it runs."""
    limits = demand.limits.all
    pools = {at: limits[at] for at in option.draws if limits[at].kind == CAPACITY and limits[at].team is None}
    return {limit.number: option.draws[at] for at, limit in pools.items()}
