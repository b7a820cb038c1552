"""Router of the pipeline: dynamic programming on trees, else plan, relaxation, branching; one clock for all of it."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from catalogs.tables.table import Bools, Ints, distinct_values
from planner.pipelines.branch import SUPPORT, TIME_TOLERANCE, Branching, Node
from planner.pipelines.local_search import improved, local_choice, shortest
from planner.pipelines.model import Depart, Move, Start, build_pipeline
from planner.pipelines.question import (
    Course,
    PipelineInput,
    affordable,
    cheapest_usd,
    follow,
    priced_for_solver,
    reduce,
    windows,
)
from planner.pipelines.tree import solve_tree
from solvers.problem.errors import ModelError
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Solution, Status, Termination, relative_gap
from solvers.search.search import Search

WHOLE_BELOW = 1_500  # candidates; fewer are solved as one model at once
TREE_TIME_SHARE = 0.4  # of the time limit, at most, for dynamic programming with a deadline
LOCAL_TIME_SHARE = 0.3  # of the time limit, at most, for the first plan
LEAST_TIME_SHARE = 0.5  # of the time limit, at most, for the least time where no plan is known
# Parts of the gap and relaxations, at most: of each branching for a plan, among few candidates, and of the one that
# proves; one model of all that is left takes longer.
PLAN_GAP_SHARE, PLAN_RELAXATIONS = 0.6, 120
NEAREST = 3.5  # candidates of a task, about, where a plan is sought first: those nearest to the bound of the relaxation
GAP_SHARE, MOST_RELAXATIONS = 0.99, 2_400
NEAR_ENOUGH = 1e-9  # of the best cost: sums of costs differ by rounding
_KEEP = ("f", "d", "start", "last")


@dataclass(frozen=True)
class PipelineResult:
    """The best choice known, with its bound.

    Attributes:
        chosen: key of the candidate per task name, empty without a choice.
        course: what the choice comes to, None without one.
        bound_usd: no choice that meets the deadline costs less; +inf where none exists.
        status: what the answer is worth; infeasible is proven, a search that ended without a plan has no solution.
        method: how it was found.
        dropped: candidates that the exact reductions dropped, by rule.
        seconds: wall-clock seconds.
        message: the last words of the search.
        conflict: the tasks that exceed a shared quota together in the best choice without it, where no plan keeps it.
        orders: (before, after) where a task waits for another to end, though it reads nothing of it.
    """

    chosen: Mapping[str, Hashable]
    course: Course | None
    bound_usd: float
    status: Status
    method: str
    seconds: float
    dropped: Mapping[str, int] = field(default_factory=dict)
    message: str = ""
    conflict: str = ""
    orders: tuple[tuple[int, int], ...] = ()

    @property
    def gap(self) -> float:
        """(cost - bound) / cost; NaN without a choice."""
        return math.nan if self.course is None else relative_gap(self.course.cost_usd, self.bound_usd)


def solve_pipeline(
    pipe: PipelineInput,
    options: SolveOptions | None = None,
    *,
    method: Literal["auto", "milp"] = "auto",
    whole_below: int = WHOLE_BELOW,
) -> PipelineResult:
    """Find the cheapest choice that meets the deadline.

    Args:
        pipe: the question.
        options: gap, time limit for everything, backend.
        method: `milp` keeps trees from dynamic programming (the test oracle).
        whole_below: pipelines with fewer candidates are solved as one model, without branching here.
    """
    search: Search[Ints] = Search(options or SolveOptions())
    smaller, dropped = reduce(pipe)
    way = "exact reduction"
    if len(distinct_values(smaller.task)) < pipe.n_tasks:
        search.end(Termination.INFEASIBLE, "a task has no candidate within its window")
        return _result(search, smaller, way, dropped)
    search.raise_bound(math.fsum(cheapest_usd(smaller)))
    with search.interruptible():
        way = "dynamic programming"
        if smaller.start_by is not None:
            way = "MILP"
            every = np.ones(len(smaller.keys), dtype=np.bool_)
            search.raise_bound(_as_one_model(search, smaller, every, math.inf))
        elif method == "milp" or not _by_tree(search, smaller):
            way = "MILP"
            _by_solver(search, smaller, whole_below)
    return _result(search, smaller, way, dropped)


def _by_tree(search: Search[Ints], pipe: PipelineInput) -> bool:
    """Solve a tree exactly; False where the pipeline is none, or too large for the time."""
    chosen = solve_tree(pipe, _moment(search, TREE_TIME_SHARE))
    if chosen is None:
        return False
    if not len(chosen):
        search.end(Termination.INFEASIBLE, "no choice meets the deadline")
        return True
    cost = follow(pipe, chosen).cost_usd
    search.offer(chosen, cost)
    search.raise_bound(cost)
    return True


def _by_solver(search: Search[Ints], pipe: PipelineInput, whole_below: int) -> None:
    """A plan first, then the relaxation, then branching; every stage leaves its plan and its bound."""
    choice = local_choice(pipe, _moment(search, LOCAL_TIME_SHARE))
    if choice is None:
        choice = _in_least_time(search, pipe)
    if choice is not None:
        search.offer(choice, follow(pipe, choice).cost_usd)
    search.note("first plan")
    if search.done:
        return
    near = np.ones(len(pipe.keys), dtype=np.bool_)
    if choice is not None:
        near = affordable(pipe, search.cost * (1 + NEAR_ENOUGH))
    if near.sum() < whole_below:
        search.raise_bound(_as_one_model(search, pipe, near, search.cost if choice is not None else math.inf))
        return
    branching = Branching(search, pipe, np.arange(len(pipe.keys)))
    root = branching.root()
    if root is None:
        return
    if math.isinf(root.bound):
        search.end(Termination.INFEASIBLE, "no choice meets the deadline, says the relaxation")
        return
    search.raise_bound(root.bound)
    branching.round(root)
    search.note("relaxation")
    _explore(search, pipe, branching, root)


def _explore(search: Search[Ints], pipe: PipelineInput, branching: Branching, root: Node) -> None:
    """Branch for a plan near the relaxation and at the places that it uses, then for the proof, then as one model."""
    gap = search.options.gap
    if search.done:
        return
    near = branching.nearest(root, int(NEAREST * pipe.n_tasks))
    for wanted, stage in ((near, "near the relaxation"), (_at_used_places(pipe, root), "at its places")):
        _branch(branching, wanted, gap * PLAN_GAP_SHARE, PLAN_RELAXATIONS)
        search.note(stage)
        if search.done:
            return
    cutoff = search.cost * (1 - gap * GAP_SHARE)
    left = branching.left(root, cutoff)
    search.raise_bound(min(cutoff, _branch(branching, left, gap * GAP_SHARE, MOST_RELAXATIONS)))
    search.note("branching")
    if search.done:
        return
    cutoff = search.cost * (1 - gap * GAP_SHARE)
    left = branching.left(root, cutoff)
    search.raise_bound(_as_one_model(search, pipe, left, cutoff) if branching.complete(left) else cutoff)


def _branch(branching: Branching, allowed: Bools, gap: float, most: int) -> float:
    """Branch over the allowed candidates; return the bound on every choice of them, -inf where no time is left."""
    if not branching.complete(allowed):
        return math.inf
    part = branching.part(allowed)
    root = part.root()
    return -math.inf if root is None else part.explore(root, gap=gap, most=most)


def _at_used_places(pipe: PipelineInput, root: Node) -> Bools:
    """Candidates at places where the relaxation runs their task, shape `(n,)`."""
    used = root.x > SUPPORT
    at = np.zeros((pipe.n_tasks, int(pipe.place.max(initial=0)) + 1), dtype=np.bool_)
    at[pipe.task[used], pipe.place[used]] = True
    return np.asarray(at[pipe.task, pipe.place], dtype=np.bool_)


def _as_one_model(search: Search[Ints], pipe: PipelineInput, allowed: Bools, cutoff: float) -> float:
    """Solve over the candidates `allowed`, offer what is found, and return the bound on every choice.

    Raises:
        ModelError: the solver's choice misses the deadline: its fault.
    """
    part = pipe if allowed.all() else pipe.take(np.flatnonzero(allowed))
    model = build_pipeline(priced_for_solver(part, search.cost))
    known = {} if search.best is None else _point(part, pipe, search.best)
    found = search.solve(model, start=known, keep_blocks=_KEEP)
    if found is None:
        return -math.inf
    if found.has_point:
        _take(search, pipe, part, found)
    if found.status is Status.INFEASIBLE:
        if search.best is None:
            search.end(Termination.INFEASIBLE, found.report.message or "no choice meets the deadline")
        return cutoff
    return min(found.bound, cutoff)


def _take(search: Search[Ints], pipe: PipelineInput, part: PipelineInput, solution: Solution) -> None:
    chosen = _inside(part, pipe, picked(part, solution))
    course = follow(pipe, chosen)
    if course.end_hours.max(initial=0.0) > pipe.deadline_hours * (1 + TIME_TOLERANCE):
        raise ModelError(
            "pipeline: the solver's choice misses the deadline when it is worked out: a solver fault"
        )
    search.offer(chosen, course.cost_usd)
    if pipe.start_by is None:  # which single changes may break
        better = improved(pipe, chosen, _moment(search))
        search.offer(better, follow(pipe, better).cost_usd)


def _in_least_time(search: Search[Ints], pipe: PipelineInput) -> Ints | None:
    """The choice of least time where no dive meets the deadline; ends the search where even that misses it."""
    chosen, least, bound = _least(pipe, search, LEAST_TIME_SHARE)
    search.note("least time")
    if chosen is not None and least <= pipe.deadline_hours:
        return improved(pipe, chosen, _moment(search, LEAST_TIME_SHARE))
    if bound > pipe.deadline_hours * (1 + TIME_TOLERANCE):
        search.end(
            Termination.INFEASIBLE,
            f"no choice of the candidates given ends within the deadline: at least {bound:.4g} h are needed",
        )
    return None


def _moment(search: Search[Ints], share: float = 1.0) -> float:
    """The moment of `time.perf_counter` at which a share of the time limit has passed."""
    return time.perf_counter() + search.left_s(share)


def _point(part: PipelineInput, whole: PipelineInput, chosen: Ints) -> dict[Hashable, float]:
    """A choice in `whole` as a point of the model of `part`, {} where `part` has not all of it."""
    known = set(part.keys)
    if not all(whole.keys[k] in known for k in chosen.tolist()):
        return {}
    return point_of(part, _inside(whole, part, chosen))


def _inside(whole: PipelineInput, part: PipelineInput, chosen: Ints) -> Ints:
    """Positions in `part` of candidates chosen in `whole`."""
    position = {key: at for at, key in enumerate(part.keys)}
    return np.asarray([position[whole.keys[k]] for k in chosen.tolist()], dtype=np.int64)


def not_found(limit_s: float) -> str:
    """What is said where the time limit, seconds, ended the search without a plan or a proof."""
    return f"no plan found within {limit_s:g} s; none is proven impossible"


def _result(
    search: Search[Ints], pipe: PipelineInput, way: str, dropped: Mapping[str, int]
) -> PipelineResult:
    search.settle()
    method = f"{way} ({search.solver})" if search.solver else way
    message = search.message
    if search.best is None:
        if search.status is Status.NO_SOLUTION:
            message = not_found(search.options.time_limit_s)
        return PipelineResult(
            {}, None, search.bound, search.status, method, search.elapsed_s, dropped, message
        )
    names = {name: pipe.keys[k] for name, k in zip(pipe.tasks, search.best.tolist(), strict=True)}
    course = follow(pipe, search.best)
    return PipelineResult(
        names, course, search.bound, search.status, method, search.elapsed_s, dropped, message
    )


def point_of(pipe: PipelineInput, chosen: Ints) -> dict[Hashable, float]:
    """A choice as a point of `build_pipeline`, by column key; columns at 0 left out."""
    place, course = pipe.place[chosen], follow(pipe, chosen)
    point: dict[Hashable, float] = {pipe.keys[k]: 1.0 for k in chosen.tolist()}
    for edge, (u, v) in enumerate(zip(pipe.source.tolist(), pipe.target.tolist(), strict=True)):
        if place[u] != place[v]:
            point[Move(edge, int(pipe.group[place[u]]), int(pipe.group[place[v]]))] = 1.0
            if (pipe.place[pipe.task == v] == place[u]).any():
                point[Depart(edge, int(place[u]))] = 1.0
    if pipe.timed:
        point |= {Start(task): hours for task, hours in enumerate(course.start_hours.tolist())}
    return point


def picked(pipe: PipelineInput, solution: Solution) -> Ints:
    """The candidate of each task in a solution of `build_pipeline`, shape `(n_tasks,)`."""
    position = {key: at for at, key in enumerate(pipe.keys)}
    chosen = np.full(pipe.n_tasks, -1, dtype=np.int64)
    for key, value in solution.x.items():
        if value > 0.5 and key in position:
            chosen[pipe.task[position[key]]] = position[key]
    return chosen


def least_hours(pipe: PipelineInput, options: SolveOptions | None = None) -> tuple[float, float]:
    """The least time in which the pipeline can end, whatever it costs.

    Returns:
        (hours of the best choice known, hours that no choice beats); both inf where a task has no candidate.
    """
    _, hours, bound = _least(pipe, Search(options or SolveOptions(gap=1e-3)), 1.0)
    return hours, bound


def _least(pipe: PipelineInput, search: Search[Ints], share: float) -> tuple[Ints | None, float, float]:
    """The choice of least time known, its hours, and the hours that no choice beats."""
    # cost stands for hours here, so that only the fastest candidate per place stays
    free = replace(pipe, cost_usd=pipe.hours, deadline_hours=loose_hours(pipe))
    smaller, _ = reduce(free)
    if len(distinct_values(smaller.task)) < pipe.n_tasks:
        return None, math.inf, math.inf
    chosen = shortest(smaller, _moment(search, share))
    hours = float(follow(smaller, chosen).end_hours.max(initial=0.0))
    earliest, _ = windows(smaller)
    fastest = np.full(pipe.n_tasks, np.inf)
    np.minimum.at(fastest, smaller.task, smaller.hours)
    bound = float((earliest + fastest).max(initial=0.0))
    if bound < hours:
        problem = build_pipeline(smaller, objective="time")
        found = search.solve(problem, search.left_s(share), keep_blocks=_KEEP, gap=1e-3)
        if found is not None:
            bound = max(bound, found.bound)
            if found.has_point:
                other = picked(smaller, found)
                ends = float(follow(smaller, other).end_hours.max(initial=0.0))
                chosen, hours = (other, ends) if ends < hours else (chosen, hours)
    return _inside(smaller, pipe, chosen), hours, min(bound, hours)


def loose_hours(pipe: PipelineInput) -> float:
    """A deadline that binds nothing: every task at its slowest and every move at its longest, in a row."""
    slowest = np.zeros(pipe.n_tasks)
    np.maximum.at(slowest, pipe.task, pipe.hours)
    return float(slowest.sum() + np.max(pipe.move_hours, axis=(1, 2), initial=0.0).sum()) + 1.0
