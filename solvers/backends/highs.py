"""HiGHS through `highspy`: optional; cheaper to import than scipy, accepts a start, can be cancelled."""

from __future__ import annotations

import importlib.util
import math
import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from solvers.backends.base import (
    JUMP,
    JUMP_ABOVE,
    Feature,
    Growing,
    Raw,
    Relaxation,
    Resolve,
    ScalingBackend,
    require_plain,
    unscaled,
)
from solvers.backends.quiet import quiet_moment
from solvers.backends.sifting import Widened, sift
from solvers.problem.milp import Bools, Floats, Ints, Milp
from solvers.problem.options import Sifting
from solvers.problem.presolve import part_of
from solvers.problem.scaling import Scaled, scale, scale_grown
from solvers.problem.solution import Termination

# HighsModelStatus name -> our word; anything not listed is UNKNOWN, which is an ERROR.
_TERMINATIONS = {
    "kOptimal": Termination.GAP_REACHED,
    "kInfeasible": Termination.INFEASIBLE,
    "kUnbounded": Termination.UNBOUNDED,
    "kUnboundedOrInfeasible": Termination.INFEASIBLE_OR_UNBOUNDED,
    "kTimeLimit": Termination.TIME_LIMIT,
    "kIterationLimit": Termination.ITERATION_LIMIT,
    "kSolutionLimit": Termination.ITERATION_LIMIT,
    "kObjectiveTarget": Termination.ITERATION_LIMIT,
    "kObjectiveBound": Termination.ITERATION_LIMIT,
    "kInterrupt": Termination.INTERRUPTED,
    "kHighsInterrupt": Termination.INTERRUPTED,
    "kMemoryLimit": Termination.MEMORY_LIMIT,
    "kLoadError": Termination.SOLVER_ERROR,
    "kModelError": Termination.SOLVER_ERROR,
    "kPresolveError": Termination.SOLVER_ERROR,
    "kSolveError": Termination.SOLVER_ERROR,
    "kPostsolveError": Termination.SOLVER_ERROR,
}

PRIMAL = 4  # HiGHS' number of its primal simplex method
_OBJECTIVE_ERROR = 1e-6  # relative; what rounding makes of an objective is far below


class HighsBackend(ScalingBackend):
    """The `highspy` package."""

    name = "highspy"
    features = frozenset({Feature.LP_DUALS, Feature.START, Feature.CANCEL})
    module = "highspy"
    import_s = 0.1

    def is_available(self) -> bool:
        """Whether highspy is installed."""
        return importlib.util.find_spec("highspy") is not None

    def _run(
        self,
        problem: Milp,
        gap: float,
        time_limit_s: float,
        start: Floats | None,
        most_nodes: int | None = None,
    ) -> Raw:
        solver = _load(problem, problem.integrality, time_limit_s)
        solver.setOptionValue("mip_rel_gap", gap)
        solver.setOptionValue(JUMP, problem.n_columns > JUMP_ABOVE)
        if most_nodes is not None:
            solver.setOptionValue("mip_max_nodes", most_nodes)
        if start is not None:
            import highspy

            point = highspy.HighsSolution()
            point.col_value = start.tolist()
            solver.setSolution(point)
        _solve(solver)
        termination = _TERMINATIONS.get(solver.getModelStatus().name, Termination.UNKNOWN)
        if termination in (Termination.INFEASIBLE_OR_UNBOUNDED, Termination.SOLVER_ERROR):
            # Presolve may stop at "one of the two", or fail; without it HiGHS decides.
            solver.setOptionValue("presolve", "off")
            _solve(solver)
            termination = _TERMINATIONS.get(solver.getModelStatus().name, Termination.UNKNOWN)
        info = solver.getInfo()
        message = str(solver.modelStatusToString(solver.getModelStatus()))
        has_point = math.isfinite(info.objective_function_value) and info.primal_solution_status == 2
        usable = has_point and termination not in (Termination.INFEASIBLE, Termination.UNBOUNDED)
        x = np.asarray(solver.getSolution().col_value, dtype=np.float64) if usable else None
        if start is not None and x is not None and _strays(problem, x, info.objective_function_value):
            again = self._run(problem, gap, time_limit_s - solver.getRunTime(), None, most_nodes)
            late = again.x is None and again.termination is Termination.TIME_LIMIT
            return replace(again, x=x) if late else again
        if problem.integrality.any():
            bound = float(info.mip_dual_bound)
        else:
            bound = (
                float(info.objective_function_value) if termination is Termination.GAP_REACHED else -math.inf
            )
        return Raw(termination, x, bound, max(int(info.mip_node_count), 0), message)

    def _relax(self, problem: Milp, time_limit_s: float) -> Relaxation:
        return _relaxed(_load(problem, np.zeros(problem.n_columns, dtype=np.bool_), time_limit_s))

    def sifted(self, problem: Milp, sifting: Sifting, time_limit_s: float) -> Relaxation:
        """Solve the linear relaxation by sifting."""
        began, scaled = time.perf_counter(), scale(problem)
        found = sift(scaled.problem, sifting, partial(_widened, scaled.problem), time_limit_s)
        if found is not None:
            return unscaled(scaled, found)
        left = time_limit_s - (time.perf_counter() - began)
        return self.relax(problem, left) if left > 0 else Relaxation(Termination.TIME_LIMIT)

    def _resolver(self, problem: Milp) -> Resolve:
        """Warm starts: each relaxation continues from the last basis with the dual simplex method."""
        solver = _load(problem, np.zeros(problem.n_columns, dtype=np.bool_), math.inf)
        solver.setOptionValue("presolve", "off")
        columns = np.arange(problem.n_columns, dtype=np.int32)
        rows = np.arange(problem.n_rows, dtype=np.int32)

        def relax(limited: Milp, time_limit_s: float, cutoff: float) -> Relaxation:
            solver.changeColsBounds(len(columns), columns, limited.lb, limited.ub)
            solver.changeRowsBounds(len(rows), rows, limited.row_lo, limited.row_hi)
            # HiGHS' clock is not reset between solves
            solver.setOptionValue("time_limit", solver.getRunTime() + max(time_limit_s, 1e-3))
            solver.setOptionValue("objective_bound", cutoff)
            relaxation = _relaxed(solver)
            if solver.getModelStatus().name == "kObjectiveBound":
                return replace(relaxation, objective=cutoff)
            return relaxation

        return relax

    def growing(self) -> Growing:
        """Warm starts: each relaxation continues from the last basis, in which new rows are basic."""
        solver: Any = None
        before: Scaled | None = None

        def relax(problem: Milp) -> Relaxation:
            nonlocal solver, before
            if before is None:
                scaled = scale(problem)
                solver = _load(scaled.problem, np.zeros(problem.n_columns, dtype=np.bool_), math.inf)
                solver.setOptionValue("presolve", "off")
            else:
                scaled = scale_grown(problem, before)
                _grow(solver, scaled.problem, before.problem.n_rows)
            before = scaled
            found = _relaxed(solver)
            if found.termination is not Termination.GAP_REACHED:  # perhaps because of the last basis
                return self.relax(problem, math.inf)
            return unscaled(scaled, found)

        return relax


def _grow(solver: Any, problem: Milp, known: int) -> None:
    """Append the rows of `problem` beyond the first `known`, and update the sides of those."""
    new = np.flatnonzero(problem.indices >= known)
    row = problem.indices[new] - known
    order = np.argsort(row, kind="stable")
    count = problem.n_rows - known
    starts = np.append(0, np.cumsum(np.bincount(row, minlength=count)))[:-1].astype(np.int32)
    columns = problem.column_of_entry()[new][order].astype(np.int32)
    lower, upper = problem.row_lo, problem.row_hi
    rows = np.arange(known, dtype=np.int32)
    solver.changeRowsBounds(known, rows, lower[:known], upper[:known])
    solver.addRows(count, lower[known:], upper[known:], len(new), starts, columns, problem.data[new][order])


def _widened(problem: Milp, first: Bools) -> Widened:
    """The relaxation over the `first` columns, to which others are added; each continues from the last basis."""
    small = part_of(problem, first, np.ones(problem.n_rows, dtype=np.bool_))
    solver = _load(small, np.zeros(small.n_columns, dtype=np.bool_), math.inf)
    solver.setOptionValue("presolve", "off")

    def relax(new: Ints, time_limit_s: float) -> Relaxation:
        if len(new):
            _add_columns(solver, problem, new)
            solver.setOptionValue("simplex_strategy", PRIMAL)  # the basis is primal but not dual feasible
        solver.setOptionValue("time_limit", solver.getRunTime() + time_limit_s)
        return _relaxed(solver)

    return relax


def _add_columns(solver: Any, problem: Milp, new: Ints) -> None:
    counts = np.diff(problem.indptr)[new]
    starts = np.append(0, np.cumsum(counts))[:-1]
    entries = np.arange(counts.sum()) + np.repeat(problem.indptr[new] - starts, counts)
    solver.addCols(
        len(new), problem.c[new], problem.lb[new], problem.ub[new], len(entries), starts.astype(np.int32),
        problem.indices[entries].astype(np.int32), problem.data[entries],
    )  # fmt: skip


def _strays(problem: Milp, x: Floats, objective: float) -> bool:
    """Whether the reported objective differs from that of the point.

    After presolve, HiGHS 1.16 underestimates the objective of some starts, stops there, and returns the start as the
    optimum.
    """
    return abs(float(problem.c @ x) - objective) > _OBJECTIVE_ERROR * max(abs(objective), 1.0)


def _relaxed(solver: Any) -> Relaxation:
    """Solve the linear model that `solver` holds."""
    _solve(solver)
    termination = _TERMINATIONS.get(solver.getModelStatus().name, Termination.UNKNOWN)
    message = str(solver.modelStatusToString(solver.getModelStatus()))
    if termination is not Termination.GAP_REACHED:
        return Relaxation(termination, message=message)
    point = solver.getSolution()
    objective = float(solver.getInfo().objective_function_value)
    columns = np.asarray(point.col_value), np.asarray(point.col_dual)
    return Relaxation(termination, objective, *columns, message, np.asarray(point.row_dual))


def _solve(solver: Any) -> None:
    """Run the solver on this thread alone.

    HiGHS starts worker threads for every thread that solves; they spin and find next to nothing to do. If HiGHS was
    used on this thread with another number of workers before, it refuses to change it: then they are kept.
    """
    refused = solver.run().name == "kError" and solver.getModelStatus().name == "kNotset"
    if refused:
        solver.setOptionValue("threads", 0)
        solver.run()


def _load(problem: Milp, integrality: Any, time_limit_s: float) -> Any:
    import highspy

    require_plain(problem)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = problem.n_columns, problem.n_rows
    model.col_cost_, model.col_lower_, model.col_upper_ = problem.c, problem.lb, problem.ub
    model.row_lower_, model.row_upper_ = problem.row_lo, problem.row_hi
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.num_col_, model.a_matrix_.num_row_ = problem.n_columns, problem.n_rows
    model.a_matrix_.start_, model.a_matrix_.index_ = problem.indptr, problem.indices
    model.a_matrix_.value_ = problem.data
    if integrality.any():
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[int(flag)] for flag in integrality]
    with quiet_moment():  # HiGHS 1.16 names itself before any option can be set
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    if math.isfinite(time_limit_s):
        solver.setOptionValue("time_limit", max(time_limit_s, 1e-3))
    solver.passModel(model)
    return solver
