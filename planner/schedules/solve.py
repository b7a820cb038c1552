"""Solving a schedule: the places that copies are made at first, then the hours.

Which copies are made is the only decision that the relaxation is weak at: with those columns whole and all others
not, the model is a bound within 0.1 % as a rule. So the copies are branched on, best bound first, with the linear
relaxation as bound; where it makes each copy or does not, the model with just these copies is solved for its nodes and
switches: a schedule, and a bound on all with these copies. The bound is the least of the sets tried and the boxes left.
Where that does not close the gap soon, the whole model is asked. Small models are solved whole at once.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from planner.schedules.greedy import greedy_schedule
from planner.schedules.model import build_schedule, copies_of
from planner.schedules.question import Cell, Costs, Evaluation, ScheduleInput, evaluate
from solvers.problem.errors import ModelError
from solvers.problem.milp import Milp
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status, Termination
from solvers.search.search import Search

WHOLE_BELOW = 1_500  # integer columns; smaller models are solved as they are
MOST_SETS = 8  # sets of copies looked at one by one
SET_NODES = 1_000  # of branch and bound for each; nearly all need one
EARLY_SHARE = 0.6  # of the time limit, at most, for them
WHOLE = 1e-6  # from a whole number: the solver's tolerance
LP_SLACK = 1e-7  # of a relaxation's value: its tolerance, given away
Nodes = dict[tuple[int, int, int], int]  # by (job, hour, pool), all above 0


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


class _Schedule(NamedTuple):
    """Nodes by (job, hour, pool), worked out from the definitions."""

    nodes: Nodes
    evaluation: Evaluation


def _take(search: Search[_Schedule], question: ScheduleInput, nodes: Nodes) -> float:
    """Offer a schedule; returns its cost, worked out from the definitions.

    Raises:
        ModelError: it breaks a limit: the fault of who made it.
    """
    evaluation = evaluate(question, nodes)
    if evaluation.faults:
        raise ModelError(f"schedule: the solver's fault: {'; '.join(evaluation.faults[:3])}")
    usd = float(evaluation.costs.total)
    search.offer(_Schedule(nodes, evaluation), usd)
    return usd


def _result(search: Search[_Schedule]) -> ScheduleResult:
    """What is known, as a result."""
    search.settle()
    nodes, evaluation = search.best or ({}, None)
    usd, gap = (math.nan, math.nan) if search.best is None else (search.cost, search.gap)
    solver = search.solver or "greedy"
    return ScheduleResult(nodes, evaluation, usd, search.bound, gap, search.status, solver, search.elapsed_s)


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
    search: Search[_Schedule] = Search(options or SolveOptions())
    search.raise_bound(0.0)  # no cost is below 0
    start = greedy_schedule(question)
    if start is not None:
        _take(search, question, start)
    problem = build_schedule(question)
    if copies_of(problem) and problem.n_integers >= whole_below:
        with search.interruptible():
            _by_copies(search, question, problem)
        if search.closed or search.empty:
            return _result(search)
    solution = search.solve(problem, core_columns=0)
    if solution is None:
        return _result(search)
    if solution.status is Status.INFEASIBLE and search.best is not None:
        raise ModelError("schedule: the solver says that there is none, but one is known: its fault")
    if solution.has_point:
        usd = _take(search, question, _nodes(solution.x))
        if usd > solution.objective + 1e-6 * max(1.0, abs(usd)):
            raise ModelError(f"schedule: it costs {usd}, the solver said {solution.objective}")
    search.raise_bound(solution.bound)
    if search.best is None:
        search.end(solution.termination, solution.report.message)
    return _result(search)


@dataclass(order=True)
class _Box:
    """Sets of copies between `lower` and `upper` (by the order of the copies), with the relaxation over them."""

    bound: float
    number: int
    lower: tuple[int, ...] = field(compare=False)
    upper: tuple[int, ...] = field(compare=False)
    made: tuple[float, ...] = field(compare=False)


def _by_copies(search: Search[_Schedule], question: ScheduleInput, problem: Milp) -> None:
    """Branch on the copies until the gap is closed, or it is proven that no set of them has a schedule."""
    columns = list(copies_of(problem).values())
    tried: set[tuple[int, ...]] = set()
    proven = math.inf  # least cost of any schedule with a set tried
    first = _relaxed(search, problem, columns, (0,) * len(columns), (1,) * len(columns), 0)
    if first is None:
        return
    boxes = [first]
    while boxes and len(tried) < MOST_SETS:
        box = heapq.heappop(boxes)
        search.raise_bound(min(proven, box.bound))
        if search.closed:
            return
        if math.isinf(box.bound):
            break  # so are all others
        copies = tuple(round(value) for value in box.made)
        fraction = [abs(value - round(value)) for value in box.made]
        if max(fraction) <= WHOLE and copies not in tried:
            part = search.solve(
                _with_copies(problem, columns, copies),
                search.left_s(EARLY_SHARE),
                gap=search.options.gap * 0.9,
                core_columns=0,
                most_nodes=SET_NODES,
            )
            if part is None:
                return
            if part.has_point:
                _take(search, question, _nodes(part.x))
            proven = min(proven, math.inf if part.status is Status.INFEASIBLE else part.bound)
            tried.add(copies)
        open_ones = [at for at in range(len(columns)) if box.lower[at] < box.upper[at]]
        if not open_ones:
            continue
        at = max(open_ones, key=lambda one: fraction[one])
        for value in (0, 1):
            lower = (*box.lower[:at], value, *box.lower[at + 1 :])
            upper = (*box.upper[:at], value, *box.upper[at + 1 :])
            number = 2 * box.number + 1 + value
            if box.made[at] == value:  # the relaxation is the same
                child: _Box | None = _Box(box.bound, number, lower, upper, box.made)
            else:
                child = _relaxed(search, problem, columns, lower, upper, number)
            if child is None:
                return
            heapq.heappush(boxes, child)
    open_bound = boxes[0].bound if boxes else math.inf
    search.raise_bound(min(proven, open_bound))
    if math.isinf(search.bound) and search.best is None:
        search.end(Termination.INFEASIBLE, "no set of copies has a schedule")


def _relaxed(
    search: Search[_Schedule],
    problem: Milp,
    columns: list[int],
    lower: tuple[int, ...],
    upper: tuple[int, ...],
    number: int,
) -> _Box | None:
    """A box with its relaxation; None where it was not found in time."""
    lb, ub = problem.lb.copy(), problem.ub.copy()
    lb[columns], ub[columns] = lower, upper
    found = search.relax(replace(problem, lb=lb, ub=ub), search.left_s(EARLY_SHARE))
    if found is None:
        return None
    if found.termination is Termination.INFEASIBLE:
        return _Box(math.inf, number, lower, upper, lower)
    if found.x is None:
        return None
    copies = tuple(float(value) for value in found.x[columns])
    copies = tuple(float(round(value)) if abs(value - round(value)) <= WHOLE else value for value in copies)
    return _Box(found.objective - LP_SLACK * abs(found.objective), number, lower, upper, copies)


def _with_copies(problem: Milp, columns: list[int], copies: tuple[int, ...]) -> Milp:
    """The model with exactly these copies; how long they are kept need not be whole."""
    lower, upper, whole = problem.lb.copy(), problem.ub.copy(), problem.integrality.copy()
    block = next(block for block in problem.column_blocks if block.name == "w")
    whole[block.indices] = False
    ends = [*columns[1:], block.stop]
    for begin, end, value in zip(columns, ends, copies, strict=True):
        lower[begin] = value
        upper[begin:end] = value
    return replace(problem, lb=lower, ub=upper, integrality=whole)


def _nodes(x: Mapping[Hashable, float]) -> Nodes:
    found = {tuple(key): round(value) for key, value in x.items() if isinstance(key, Cell)}
    return {(j, t, o): count for (j, t, o), count in found.items() if count}
