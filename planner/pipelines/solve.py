"""Router of the pipeline: dynamic programming on trees, else the MILP; answers are worked out from definitions."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from planner.pipelines.local_search import local_choice
from planner.pipelines.model import Move, Start, Stay, build_pipeline
from planner.pipelines.question import Course, Floats, Ints, PipelineInput, follow, reduce
from planner.pipelines.tree import solve_tree
from solvers.backends.registry import get_backend
from solvers.errors import ModelError
from solvers.options import SolveOptions
from solvers.problem import Milp
from solvers.solution import Solution, Status, relative_gap
from solvers.solve import solve

# A solver keeps a deadline to its own tolerance: so much of it may be missed (a third of a second in four days).
TIME_TOLERANCE = 1e-6
CORE_ABOVE = 1_500  # candidates; fewer are solved at once
SUPPORT = 1e-6  # a candidate that the relaxation uses at all
CORE_TIME_SHARE = 0.4  # of the time left, at most, for the restricted stage
_KEEP = ("f", "s", "start", "last")


@dataclass(frozen=True)
class PipelineResult:
    """The best choice known, with its bound.

    Attributes:
        chosen: key of the candidate per task name, empty without a choice.
        course: what the choice comes to, None without one.
        bound_usd: no choice that keeps the deadline costs less; -inf unknown, +inf none exists.
        status: what the answer is worth.
        method: how it was found.
        dropped: candidates that the exact reductions dropped, by rule.
        seconds: wall-clock seconds.
        message: the solver's last words.
    """

    chosen: Mapping[str, Hashable]
    course: Course | None
    bound_usd: float
    status: Status
    method: str
    seconds: float
    dropped: Mapping[str, int] = field(default_factory=dict)
    message: str = ""

    @property
    def gap(self) -> float:
        """(cost - bound) / cost; NaN without a choice."""
        return math.nan if self.course is None else relative_gap(self.course.cost_usd, self.bound_usd)


def solve_pipeline(
    pipe: PipelineInput, options: SolveOptions | None = None, *, method: Literal["auto", "milp"] = "auto"
) -> PipelineResult:
    """Find the cheapest choice that keeps the deadline.

    Args:
        pipe: the question.
        options: gap, time limit, backend.
        method: `milp` keeps trees from dynamic programming (the test oracle).
    """
    begin = time.perf_counter()
    smaller, dropped = reduce(pipe)
    if len(np.unique(smaller.task)) < pipe.n_tasks:
        return _none(begin, "exact reduction", dropped, "a task has no candidate within its window")
    if method == "auto":
        chosen = solve_tree(smaller)
        if chosen is not None and not len(chosen):
            return _none(begin, "dynamic programming", dropped, "no choice keeps the deadline")
        if chosen is not None:
            course = follow(smaller, chosen)
            names = _names(smaller, chosen)
            return PipelineResult(names, course, course.cost_usd, Status.OPTIMAL, "dynamic programming",
                                  time.perf_counter() - begin, dropped)  # fmt: skip
    return _by_solver(smaller, options or SolveOptions(), begin, dropped)


def _by_solver(
    pipe: PipelineInput, options: SolveOptions, begin: float, dropped: Mapping[str, int]
) -> PipelineResult:
    """The MILP, early answers first: local search, then the candidates of least reduced cost, then all.

    The relaxation bounds every choice, so the second stage often proves its answer good enough.
    """
    problem = build_pipeline(pipe)
    start = local_choice(pipe)
    if len(pipe.keys) < CORE_ABOVE:
        return _from_solver(pipe, _solve(pipe, problem, start, options, begin), begin, dropped)
    relaxed = get_backend(options.backend).relax(problem, _left(options, begin))
    if relaxed.x is not None:
        # a relaxation is a bound up to the solver's tolerance: that much is given away
        bound = relaxed.objective - 1e-7 * abs(relaxed.objective)
        core = pipe.take(_core(pipe, relaxed.x[: len(pipe.keys)], start))
        allowed = replace(options, gap=options.gap / 2, time_limit_s=_left(options, begin) * CORE_TIME_SHARE)
        known = None if start is None else _inside(pipe, core, start)
        solution = _solve(core, build_pipeline(core), known, allowed, time.perf_counter())
        if solution.has_point:
            start = _inside(core, pipe, picked(core, solution))
            cost = follow(pipe, start).cost_usd
            if relative_gap(cost, bound) <= options.gap:
                proven = replace(solution, status=Status.OPTIMAL, bound=min(bound, cost))
                return _from_solver(core, proven, begin, dropped)
    return _from_solver(pipe, _solve(pipe, problem, start, options, begin), begin, dropped)


def _left(options: SolveOptions, begin: float) -> float:
    """Wall-clock seconds left of the time limit, never quite none."""
    return max(options.time_limit_s - (time.perf_counter() - begin), 0.02 * options.time_limit_s)


def _solve(
    pipe: PipelineInput, problem: Milp, start: Ints | None, options: SolveOptions, begin: float
) -> Solution:
    point = {} if start is None else point_of(pipe, start)
    return solve(
        problem, replace(options, time_limit_s=_left(options, begin), keep_blocks=_KEEP, start=point)
    )


def _core(pipe: PipelineInput, relaxed: Floats, start: Ints | None) -> Ints:
    """Of each task the candidates at places that the relaxation (or the choice known) uses for it or next to it.

    Args:
        pipe: the question.
        relaxed: the relaxation's values of the candidates, shape `(n,)`.
        start: the choice known, None without one.
    """
    used = relaxed > SUPPORT
    if start is not None:
        used[start] = True
    places = int(pipe.place.max(initial=0)) + 1
    at = np.zeros((pipe.n_tasks, places), dtype=np.bool_)
    at[pipe.task[used], pipe.place[used]] = True
    near = at.copy()
    np.logical_or.at(near, pipe.source, at[pipe.target])
    np.logical_or.at(near, pipe.target, at[pipe.source])
    return np.flatnonzero(near[pipe.task, pipe.place])


def _inside(whole: PipelineInput, part: PipelineInput, chosen: Ints) -> Ints:
    """Positions in `part` of candidates chosen in `whole`."""
    position = {key: at for at, key in enumerate(part.keys)}
    return np.asarray([position[whole.keys[k]] for k in chosen.tolist()], dtype=np.int64)


def _none(begin: float, method: str, dropped: Mapping[str, int], message: str) -> PipelineResult:
    seconds = time.perf_counter() - begin
    return PipelineResult({}, None, math.inf, Status.INFEASIBLE, method, seconds, dropped, message)


def _names(pipe: PipelineInput, chosen: Ints) -> dict[str, Hashable]:
    return {name: pipe.keys[k] for name, k in zip(pipe.tasks, chosen.tolist(), strict=True)}


def _from_solver(
    pipe: PipelineInput, solution: Solution, begin: float, dropped: Mapping[str, int]
) -> PipelineResult:
    seconds = time.perf_counter() - begin
    method = f"MILP ({solution.report.backend})"
    if not solution.has_point:
        bound = math.inf if solution.status is Status.INFEASIBLE else solution.bound
        message = solution.report.message
        return PipelineResult({}, None, bound, solution.status, method, seconds, dropped, message)
    chosen = picked(pipe, solution)
    course = follow(pipe, chosen)
    if course.end_hours.max(initial=0.0) > pipe.deadline_hours * (1 + TIME_TOLERANCE):
        raise ModelError(
            "pipeline: the solver's choice misses the deadline when it is worked out: a solver fault"
        )
    bound = min(solution.bound, course.cost_usd)
    return PipelineResult(
        _names(pipe, chosen),
        course,
        bound,
        solution.status,
        method,
        seconds,
        dropped,
        solution.report.message,
    )


def point_of(pipe: PipelineInput, chosen: Ints) -> dict[Hashable, float]:
    """A choice as a point of `build_pipeline`, by column key; columns at 0 left out."""
    place, course = pipe.place[chosen], follow(pipe, chosen)
    point: dict[Hashable, float] = {pipe.keys[k]: 1.0 for k in chosen.tolist()}
    for edge, (u, v) in enumerate(zip(pipe.source.tolist(), pipe.target.tolist(), strict=True)):
        point[Move(edge, int(pipe.group[place[u]]), int(pipe.group[place[v]]))] = 1.0
        if place[u] == place[v]:
            point[Stay(edge, int(place[u]))] = 1.0
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
    # cost stands for hours here, so that only the fastest candidate per place stays
    free = replace(pipe, cost_usd=pipe.hours, deadline_hours=_loose(pipe))
    smaller, _ = reduce(free)
    if len(np.unique(smaller.task)) < pipe.n_tasks:
        return math.inf, math.inf
    problem = build_pipeline(smaller, objective="time")
    solution = solve(problem, replace(options or SolveOptions(), keep_blocks=_KEEP))
    if not solution.has_point:
        return math.inf, solution.bound
    hours = float(follow(smaller, picked(smaller, solution)).end_hours.max(initial=0.0))
    return hours, min(solution.bound, hours)


def _loose(pipe: PipelineInput) -> float:
    """A deadline that binds nothing: every task at its slowest and every move at its longest, in a row."""
    slowest = np.zeros(pipe.n_tasks)
    np.maximum.at(slowest, pipe.task, pipe.hours)
    return float(slowest.sum() + np.max(pipe.move_hours, axis=(1, 2), initial=0.0).sum()) + 1.0
