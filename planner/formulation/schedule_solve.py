"""Solving a schedule: the places that copies are made at first, then the hours.

Which copies are made is the only decision that the relaxation is weak at: with those columns whole and all others
not, the model is a bound within 0.1 % as a rule, found by branching on a handful of columns. So:

1. *where*: the model with only the copies whole, without the sets of copies already tried: a bound on all that is left;
2. *when*: the model with that set of copies, its nodes and switches whole: a schedule, and a bound on all of that set.

The bound is the least of the sets tried and of what is left; 1 and 2 repeat until the gap is closed, then the whole
model is asked. Small models are solved whole at once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from planner.formulation.schedule import build_schedule, copies_of
from planner.formulation.schedule_input import Cell, Costs, Evaluation, ScheduleInput, evaluate
from solvers.errors import ModelError
from solvers.options import SolveOptions
from solvers.problem import Milp
from solvers.solution import Solution, Status, Termination, relative_gap
from solvers.solve import solve

WHOLE_BELOW = 1_500  # integer columns; smaller models are solved as they are
MOST_SETS = 8  # sets of copies looked at one by one
EARLY_SHARE = 0.6  # of the time limit, for them
TINY = 1e-9  # a gap that is none


@dataclass(frozen=True)
class ScheduleResult:
    """The best schedule known.

    Attributes:
        nodes: by (job, hour, pool), all above 0; empty without a schedule.
        evaluation: the schedule worked out exactly; None without one.
        usd: its cost; bound_usd: no schedule costs less.
    """

    nodes: Mapping[tuple[int, int, int], int]
    evaluation: Evaluation | None
    usd: float
    bound_usd: float
    gap: float
    status: Status
    solver: str
    seconds: float

    @property
    def costs(self) -> Costs:
        """Parts of the cost.

        Raises:
            ModelError: there is no schedule.
        """
        if self.evaluation is None:
            raise ModelError("schedule: there is none")
        return self.evaluation.costs


@dataclass
class _Search:
    """What is known: the best schedule and a bound on all."""

    question: ScheduleInput
    options: SolveOptions
    began: float = field(default_factory=time.perf_counter)
    nodes: dict[tuple[int, int, int], int] = field(default_factory=dict)
    evaluation: Evaluation | None = None
    usd: float = math.inf
    bound: float = -math.inf
    solver: str = ""
    stop: bool = False

    @property
    def closed(self) -> bool:
        """Whether the gap asked for is reached."""
        return math.isfinite(self.usd) and relative_gap(self.usd, self.bound) <= self.options.gap + TINY

    def ask(self, problem: Milp, gap: float, share: float = 1.0) -> Solution | None:
        """Solve within the time left of a share of the limit; None where there is none, or the user interrupted."""
        left = self.options.time_limit_s * share - (time.perf_counter() - self.began)
        if left <= 0 or self.stop:
            return None
        found = solve(problem, replace(self.options, gap=gap, time_limit_s=left, core_columns=0))
        self.solver = found.report.backend
        self.stop = found.termination is Termination.INTERRUPTED
        return found

    def take(self, found: Solution) -> None:
        """Keep the schedule of a solution if it is the cheapest.

        Raises:
            ModelError: it breaks a limit: the solver's fault.
        """
        if not found.has_point:
            return
        nodes = _nodes(found.x)
        evaluation = evaluate(self.question, nodes)
        if evaluation.faults:
            raise ModelError(f"schedule: the solver's fault: {'; '.join(evaluation.faults[:3])}")
        usd = float(evaluation.costs.total)
        if usd < self.usd:
            self.nodes, self.evaluation, self.usd = nodes, evaluation, usd

    def result(self, status: Status) -> ScheduleResult:
        """What is known, as a result."""
        seconds = time.perf_counter() - self.began
        if self.evaluation is None:
            return ScheduleResult({}, None, math.nan, self.bound, math.nan, status, self.solver, seconds)
        bound = min(self.bound, self.usd)
        gap = relative_gap(self.usd, bound)
        return ScheduleResult(self.nodes, self.evaluation, self.usd, bound, gap, status, self.solver, seconds)


def solve_schedule(
    question: ScheduleInput, options: SolveOptions | None = None, *, whole_below: int = WHOLE_BELOW
) -> ScheduleResult:
    """Find the cheapest schedule; every one is worked out again from the definitions.

    Args:
        question: the question.
        options: gap, time limit for everything, backend.
        whole_below: models with fewer integer columns are solved whole at once.

    Raises:
        ModelError: the solver's schedule breaks a limit or costs other than it says: its fault.
    """
    search = _Search(question, options or SolveOptions())
    problem = build_schedule(question)
    if copies_of(problem) and problem.n_integers >= whole_below:
        if _by_copies(search) is Status.INFEASIBLE:
            return search.result(Status.INFEASIBLE)
        if search.closed:
            return search.result(Status.OPTIMAL)
    found = search.ask(problem, search.options.gap)
    if found is None:
        return search.result(Status.NO_SOLUTION if search.evaluation is None else Status.FEASIBLE)
    search.take(found)
    if found.has_point and search.usd > found.objective + 1e-6 * max(1.0, abs(search.usd)):
        raise ModelError(f"schedule: it costs {search.usd}, the solver said {found.objective}")
    search.bound = max(search.bound, found.bound)
    status = found.status
    if search.evaluation is not None:
        closed = status is Status.OPTIMAL or search.closed
        status = Status.OPTIMAL if closed else Status.FEASIBLE
    return search.result(status)


def _by_copies(search: _Search) -> Status | None:
    """Look at sets of copies one by one; INFEASIBLE where none has a schedule."""
    tried: list[frozenset[tuple[int, int]]] = []
    proven = math.inf  # least cost of any schedule with a set tried
    for _ in range(MOST_SETS):
        where = build_schedule(search.question, without=tried)
        opens = copies_of(where)
        whole = np.zeros(where.n_columns, dtype=np.bool_)
        whole[list(opens.values())] = True
        found = search.ask(replace(where, integrality=whole), search.options.gap / 4, EARLY_SHARE)
        if found is None:
            return None
        rest = math.inf if found.status is Status.INFEASIBLE else found.bound
        search.bound = max(search.bound, min(proven, rest))
        if found.status is Status.INFEASIBLE and math.isinf(proven) and search.evaluation is None:
            return Status.INFEASIBLE
        if search.closed or not found.has_point:
            return None
        keys = {place: where.column_keys[column] for place, column in opens.items()}
        made = frozenset(place for place, key in keys.items() if round(found.x.get(key, 0.0)))
        part = search.ask(_with_copies(search.question, made), search.options.gap / 2, EARLY_SHARE)
        if part is None:
            return None
        search.take(part)
        proven = min(proven, math.inf if part.status is Status.INFEASIBLE else part.bound)
        tried.append(made)
        if search.closed:
            return None
    return None


def _with_copies(question: ScheduleInput, made: frozenset[tuple[int, int]]) -> Milp:
    """The model with exactly these copies; how long they are kept need not be whole."""
    problem = build_schedule(question)
    lower, upper, whole = problem.lb.copy(), problem.ub.copy(), problem.integrality.copy()
    opens = copies_of(problem)
    for number, key in enumerate(problem.column_keys):
        if isinstance(key, tuple) and key[0] == "w":
            place = (key[1], key[2])
            whole[number] = False
            upper[number] = float(place in made)
            lower[number] = float(place in made and opens[place] == number)
    return replace(problem, lb=lower, ub=upper, integrality=whole)


def _nodes(x: Mapping[Hashable, float]) -> dict[tuple[int, int, int], int]:
    found = {tuple(key): round(value) for key, value in x.items() if isinstance(key, Cell)}
    return {(j, t, o): count for (j, t, o), count in found.items() if count}
