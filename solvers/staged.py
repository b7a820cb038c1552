"""Solve in stages, so that an answer comes early: relaxation (bound), restricted model (plan), full model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from solvers.backends.base import Backend, Checked, Relaxation, feasible_start
from solvers.backends.registry import get_backend
from solvers.options import SolveOptions
from solvers.presolve import restrict
from solvers.problem import Floats, Ints, Milp
from solvers.solution import Termination, relative_gap

CORE_ABOVE = 3  # the restricted stage pays only when the model has this many times its columns
CORE_TIME_SHARE = 0.4  # of the time left, at most, for the restricted model
PROVEN_EMPTY = (Termination.INFEASIBLE, Termination.UNBOUNDED)


@dataclass
class Progress:
    """The best point and bound so far, and when each stage ended."""

    began: float = field(default_factory=time.perf_counter)
    best: Checked = field(default_factory=lambda: Checked(Termination.UNKNOWN))
    stages: list[tuple[str, float, float, float]] = field(default_factory=list)

    @property
    def elapsed_s(self) -> float:
        """Wall-clock seconds since the start."""
        return time.perf_counter() - self.began

    def take(self, stage: str, found: Checked) -> None:
        """Merge a stage's result: the better point, the higher bound, the last words."""
        best = self.best
        better = found.x is not None and (best.x is None or found.objective < best.objective)
        x, objective = (found.x, found.objective) if better else (best.x, best.objective)
        bound = max(best.bound, found.bound) if not math.isnan(found.bound) else best.bound
        if x is not None:
            bound = min(bound, objective)
        self.best = Checked(found.termination, x, objective, bound, found.nodes, found.message)
        self.stages.append((stage, self.elapsed_s, objective, bound))

    def gap(self) -> float:
        """Relative gap of the best point; inf without one."""
        return math.inf if self.best.x is None else relative_gap(self.best.objective, self.best.bound)


def run_stages(
    problem: Milp,
    options: SolveOptions,
    *,
    emit: Callable[[str, Checked], None] = lambda _stage, _found: None,
) -> Progress:
    """Run the stages in this process; `emit` is called after each with what it found."""
    progress = Progress()

    def take(stage: str, found: Checked) -> None:
        progress.take(stage, found)
        emit(stage, found)

    backend = get_backend(options.backend)
    start = feasible_start(problem, options.start)
    if start is not None:
        take("start", Checked(Termination.ITERATION_LIMIT, start, float(problem.c @ start)))
    if options.core_columns and problem.n_integers > CORE_ABOVE * options.core_columns:
        _early_plan(problem, options, backend, progress, take)
        if progress.best.termination in PROVEN_EMPTY:
            return progress
        if progress.gap() <= options.gap:
            take("proof", replace(progress.best, termination=Termination.GAP_REACHED))
            return progress
    left = options.time_limit_s - progress.elapsed_s
    if left <= 0:
        take("full", Checked(Termination.TIME_LIMIT, message="the time limit passed before the full model"))
        return progress
    take("full", backend.solve_vector(problem, replace(options, time_limit_s=left)))
    if progress.best.termination is Termination.TIME_LIMIT and progress.gap() <= options.gap:
        take("proof", replace(progress.best, termination=Termination.GAP_REACHED))
    return progress


def _early_plan(
    problem: Milp,
    options: SolveOptions,
    backend: Backend,
    progress: Progress,
    take: Callable[[str, Checked], None],
) -> None:
    """Relaxation for the bound, then the restricted model for a plan."""
    relaxation = backend.relax(problem, options.time_limit_s - progress.elapsed_s)
    if relaxation.termination is Termination.INFEASIBLE:
        take("relaxation", Checked(relaxation.termination, bound=math.inf, message=relaxation.message))
        return
    if relaxation.x is None or relaxation.reduced_costs is None:
        return
    # An LP optimum is a bound up to the solver's tolerance; give that tolerance away.
    bound = relaxation.objective - 1e-7 * abs(relaxation.objective)
    take("relaxation", Checked(Termination.ITERATION_LIMIT, bound=bound, message=relaxation.message))
    core = restrict(problem, _core(problem, options, relaxation))
    left = (options.time_limit_s - progress.elapsed_s) * CORE_TIME_SHARE
    if left <= 0:
        return
    found = backend.solve_vector(core, replace(options, time_limit_s=left, start={}))
    if found.x is None:
        return  # an empty restriction says nothing about the model
    x = np.array(problem.lb)
    position = {key: number for number, key in enumerate(problem.column_keys)}
    x[[position[key] for key in core.column_keys]] = found.x
    take("restricted", Checked(Termination.ITERATION_LIMIT, x, float(problem.c @ x), -math.inf, found.nodes))


def _core(problem: Milp, options: SolveOptions, relaxation: Relaxation) -> Ints:
    """The columns in the relaxation's support and those of least reduced cost."""
    assert relaxation.x is not None and relaxation.reduced_costs is not None
    rank: Floats = np.maximum(relaxation.reduced_costs, 0.0)
    rank = np.where(relaxation.x > problem.lb + 1e-9, -1.0, rank)
    for block in problem.column_blocks:
        if block.name in options.keep_blocks:
            rank[block.indices] = -2.0
    rank[~problem.integrality] = -2.0
    kept = int(np.count_nonzero(rank <= -2.0))
    size = min(kept + options.core_columns, problem.n_columns)
    return np.argsort(rank, kind="stable")[:size]
