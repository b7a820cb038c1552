"""Solve in stages, so that an answer comes early: relaxation (bound), restricted model (plan), full model."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from solvers.backends.base import Backend, Checked, Relaxation, feasible_start
from solvers.backends.registry import get_backend
from solvers.execution.dive import dive
from solvers.execution.worker import decode_problem, encode_result, frame, read_frame
from solvers.problem.milp import Floats, Ints, Milp
from solvers.problem.options import SolveOptions
from solvers.problem.presolve import restrict, whole_limits
from solvers.problem.solution import Termination, relative_gap

CORE_ABOVE = 3  # the restricted stage pays only when the model has this many times its columns
WIDE = (1, 4, 16, 64)  # times `core_columns` are tried where a restricted model has no point
CORE_COVER = 2  # times over: what the core's columns can do for each row with something to cover
CORE_COLUMNS, CORE_MOST = 10, 200  # times that many columns, at least; columns per row, at most
TINY = 1e-9
CORE_TIME_SHARE = 0.6  # of the time left, at most, for the restricted model
CORE_NODES = 1_000  # of branch and bound there; nearly all need one
DIVE_TIME_SHARE = 0.7  # the same where it has no point: a plan is worth more than a better bound
EARLY = 0.03  # of the time limit: the solver is asked to stop this much earlier, as it stops late
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

    def take(self, stage: str, checked: Checked) -> None:
        """Merge a stage's result: the better point, the higher bound, the latest message."""
        best = self.best
        better = checked.x is not None and (best.x is None or checked.objective < best.objective)
        x, objective = (checked.x, checked.objective) if better else (best.x, best.objective)
        bound = max(best.bound, checked.bound) if not math.isnan(checked.bound) else best.bound
        message = checked.message
        if x is not None:
            bound = min(bound, objective)
            if checked.termination in PROVEN_EMPTY:
                message = f"solver fault: it says {checked.termination.value}, but a feasible point is known; {message}"
        self.best = Checked(checked.termination, x, objective, bound, checked.nodes, message)
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
    """Run the stages in this process; `emit` is called after each with its result."""
    progress = Progress()

    def take(stage: str, checked: Checked) -> None:
        progress.take(stage, checked)
        emit(stage, checked)

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
    left = options.time_limit_s * (1 - EARLY) - progress.elapsed_s
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
    problem = replace(problem, ub=whole_limits(problem)[0])
    relaxation = backend.relax(problem, options.time_limit_s - progress.elapsed_s)
    if relaxation.termination is Termination.INFEASIBLE:
        take("relaxation", Checked(relaxation.termination, bound=math.inf, message=relaxation.message))
        return
    if relaxation.x is None or relaxation.reduced_costs is None:
        return
    # An LP optimum is a bound up to the solver's tolerance; give that tolerance away.
    bound = relaxation.objective - 1e-7 * abs(relaxation.objective)
    take("relaxation", Checked(Termination.ITERATION_LIMIT, bound=bound, message=relaxation.message))
    left = options.time_limit_s - progress.elapsed_s
    if left <= 0:
        return
    point = _from_core(problem, options, backend, relaxation, time.perf_counter() + left * CORE_TIME_SHARE)
    if point is None:
        point = _by_diving(
            problem, options, backend, relaxation, time.perf_counter() + left * DIVE_TIME_SHARE
        )
    if point is not None:
        take("restricted", Checked(Termination.ITERATION_LIMIT, point, float(problem.c @ point), -math.inf))


def _by_diving(
    problem: Milp, options: SolveOptions, backend: Backend, relaxation: Relaxation, until_s: float
) -> Floats | None:
    """A feasible point found by diving on the switches, then over more and more columns."""
    wide = restrict(problem, _core(problem, options, relaxation, options.core_columns * WIDE[-1]))
    dived = dive(wide, backend.relax(wide, _left_s(until_s)), backend, until_s)
    for times in WIDE if dived is not None else ():
        assert dived is not None
        wider = replace(options, core_columns=options.core_columns * times)
        part = _from_core(dived[0], wider, backend, dived[1], until_s)
        if part is not None:
            return _lifted(problem, wide, part)
    return None


def _left_s(until_s: float) -> float:
    return max(until_s - time.perf_counter(), 0.01)


def _from_core(
    problem: Milp, options: SolveOptions, backend: Backend, relaxation: Relaxation, until_s: float
) -> Floats | None:
    """A feasible point of the restricted model; None does not mean that the model has none."""
    columns = _core(problem, options, relaxation, options.core_columns)
    if 2 * len(columns) > problem.n_columns:
        return None
    core = restrict(problem, columns)
    most = CORE_NODES if options.most_nodes is None else min(options.most_nodes, CORE_NODES)
    limited = replace(options, time_limit_s=_left_s(until_s), start={}, most_nodes=most)
    checked = backend.solve_vector(core, limited)
    return None if checked.x is None else _lifted(problem, core, checked.x)


def _lifted(problem: Milp, core: Milp, part: Floats) -> Floats:
    """Extend a point of the restriction `core` to a point of `problem`."""
    x = np.array(problem.lb)
    x[[problem.position[key] for key in core.column_keys]] = part
    return x


def _core(problem: Milp, options: SolveOptions, relaxation: Relaxation, count: int) -> Ints:
    """Columns of the restricted model: the relaxation's support and those of least reduced cost, also for each row."""
    assert relaxation.x is not None and relaxation.reduced_costs is not None
    rank: Floats = np.maximum(relaxation.reduced_costs, 0.0)
    rank = np.where(relaxation.x > problem.lb + 1e-9, -1.0, rank)
    for block in problem.column_blocks:
        if block.name in options.keep_blocks:
            rank[block.indices] = -2.0
    rank[~problem.integrality] = -2.0
    rank[problem.lb == problem.ub] = np.inf  # a restriction leaves them where they are anyway
    n_needed = int(np.count_nonzero(rank <= -2.0))
    size = min(n_needed + count, problem.n_columns)
    core = np.argsort(rank, kind="stable")[:size]
    for _ in range(2):  # helpers may need helpers
        core = np.union1d(core, _helpers(problem, relaxation, rank, core))
    return core


def _helpers(problem: Milp, relaxation: Relaxation, rank: Floats, core: Ints) -> Ints:
    """For each row that `core` must satisfy, the columns of least rank that can cover it `CORE_COVER` times over.

    These are the covering rows, which 0 violates, and rows that are tight at 0 and that columns of the core consume
    (x <= u y: the switch y of each x in the core), by as much as they do in the relaxation. No single column counts for
    more than a tenth.
    """
    assert relaxation.x is not None
    columns, rows = problem.column_of_entry(), problem.indices
    chosen = np.zeros(problem.n_columns, dtype=np.bool_)
    chosen[core] = True
    helpers = []
    for values, sides in ((problem.data, -problem.row_hi), (-problem.data, problem.row_lo)):
        pushes = (values > 0) & chosen[columns]
        most = np.bincount(
            rows[pushes], weights=(values * relaxation.x[columns])[pushes], minlength=problem.n_rows
        )
        pushed = np.bincount(rows[pushes], minlength=problem.n_rows) > 0
        need = np.where(sides > 0, sides, np.where((sides == 0) & pushed, np.maximum(most, TINY), 0.0))
        helps = (values < 0) & np.isfinite(need[rows]) & (need[rows] > 0) & (rank[columns] < np.inf)
        at, row = columns[helps], rows[helps]
        order = np.lexsort((rank[at], row))
        at, row = at[order], row[order]
        share = np.minimum(-values[helps][order] * problem.ub[at] / need[row], 1 / CORE_COLUMNS)
        before = np.cumsum(share) - share
        first = np.searchsorted(row, row)  # where the row's own entries begin
        near = np.arange(len(row)) - first < CORE_MOST
        helpers.append(at[near & (before - before[first] < CORE_COVER - 1e-9)])
    best: Ints = np.concatenate(helpers)
    return best


def main() -> None:
    """Run in the child process of `worker`: read one model, write a message per stage and a last one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    # HiGHS prints to the C-level standard output now and then: the messages get a descriptor of their own.
    out = os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    content = read_frame(sys.stdin.buffer)
    if content is None:
        return

    def emit(stage: str, checked: Checked | None, error: Exception | None = None) -> None:
        out.write(frame(encode_result(stage, checked, error)))
        out.flush()

    try:
        problem, options = decode_problem(content)
        if hasattr(signal, "alarm") and math.isfinite(options.time_limit_s):
            signal.alarm(math.ceil(options.time_limit_s * 1.2) + 1)  # if the parent died, nobody else ends us
        run_stages(problem, options, emit=emit)
    except Exception as error:  # noqa: BLE001 - carried to the parent
        emit("", None, error)
        return
    emit("", None)
