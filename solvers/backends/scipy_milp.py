"""The default backend: HiGHS as bundled in `scipy.optimize.milp` (always installed).

Known weaknesses, and what we do about them: the time limit is soft (see `solvers.execution.solve`: a thread or a child
process keeps it), no duals come from `milp` (`linprog` gives them), no start is accepted (the caller's point
stays the incumbent), and status words arrive as text.
"""

from __future__ import annotations

import importlib.util
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from solvers.backends.base import (
    JUMP,
    JUMP_ABOVE,
    Feature,
    Raw,
    Relaxation,
    Resolve,
    ScalingBackend,
    require_plain,
)
from solvers.problem.milp import Floats, Milp
from solvers.problem.presolve import alive, part_of
from solvers.problem.solution import Termination

JUMP_SINCE = (1, 17)  # of scipy, which bundles HiGHS 1.12
# scipy.optimize.milp's integer status; 4 ("other") is classified by its message.
_TERMINATIONS = {
    0: Termination.GAP_REACHED,
    1: Termination.TIME_LIMIT,
    2: Termination.INFEASIBLE,
    3: Termination.UNBOUNDED,
}


class ScipyBackend(ScalingBackend):
    """`scipy.optimize.milp` and `linprog`."""

    name = "scipy"
    features = frozenset({Feature.LP_DUALS})
    module = "scipy.optimize"
    import_s = 0.8

    def is_available(self) -> bool:
        """Whether scipy is installed."""
        return importlib.util.find_spec("scipy") is not None

    def _run(
        self,
        problem: Milp,
        gap: float,
        time_limit_s: float,
        start: Floats | None,  # noqa: ARG002
        most_nodes: int | None = None,
    ) -> Raw:
        from scipy.optimize import Bounds, LinearConstraint, milp

        require_plain(problem)
        options: dict[str, Any] = {"mip_rel_gap": gap}
        if math.isfinite(time_limit_s):
            options["time_limit"] = max(time_limit_s, 1e-3)
        if most_nodes is not None:
            options["node_limit"] = most_nodes
        if problem.n_columns <= JUMP_ABOVE and knows_jump():
            options[JUMP] = False
        rows = LinearConstraint(_matrix(problem), problem.row_lo, problem.row_hi) if problem.n_rows else None
        solve = partial(
            _without_jump_warning,
            milp,
            problem.c,
            integrality=problem.integrality.astype(np.uint8),
            bounds=Bounds(problem.lb, problem.ub),
            constraints=rows,
        )
        began = time.perf_counter()
        result = solve(options={**options})  # scipy takes some keys out
        termination = _termination(int(result.status), str(result.message))
        if termination is Termination.SOLVER_ERROR:
            # Presolve may fail where the search itself does not.
            if math.isfinite(time_limit_s):
                options["time_limit"] = max(time_limit_s - (time.perf_counter() - began), 1e-3)
            result = solve(options={**options, "presolve": False})
            termination = _termination(int(result.status), str(result.message))
        if termination is Termination.INFEASIBLE_OR_UNBOUNDED:
            # without an objective nothing is unbounded
            termination = self._decide(problem, time_limit_s) if problem.c.any() else Termination.INFEASIBLE
        x = None if result.x is None else np.asarray(result.x, dtype=np.float64)
        bound = _bound(result, problem, termination)
        return Raw(termination, x, bound, int(result.get("mip_node_count") or 0), str(result.message))

    def _decide(self, problem: Milp, time_limit_s: float) -> Termination:
        """Tell infeasible from unbounded by solving without an objective."""
        raw = self._run(replace(problem, c=np.zeros(problem.n_columns)), 0.0, time_limit_s, None)
        if raw.x is not None:
            return Termination.UNBOUNDED
        return raw.termination if raw.termination is Termination.INFEASIBLE else Termination.SOLVER_ERROR

    def _resolver(self, problem: Milp) -> Resolve:  # noqa: ARG002
        """Each relaxation is solved from scratch, without the columns that its bounds fix at 0."""
        return lambda limited, time_limit_s, _cutoff: _relax_nonzero(
            limited, partial(self._relax, time_limit_s=time_limit_s)
        )

    def _relax(self, problem: Milp, time_limit_s: float) -> Relaxation:
        from scipy.optimize import linprog
        from scipy.sparse import vstack

        require_plain(problem)
        matrix = _matrix(problem).tocsr()
        equal = problem.row_lo == problem.row_hi
        above = np.isfinite(problem.row_hi) & ~equal
        below = np.isfinite(problem.row_lo) & ~equal
        limits = np.concatenate([problem.row_hi[above], -problem.row_lo[below]])
        result = linprog(
            problem.c,
            A_ub=vstack([matrix[above], -matrix[below]]) if len(limits) else None,
            b_ub=limits if len(limits) else None,
            A_eq=matrix[equal] if equal.any() else None,
            b_eq=problem.row_lo[equal] if equal.any() else None,
            bounds=np.column_stack([problem.lb, problem.ub]),
            method="highs",
            options={"time_limit": max(time_limit_s, 1e-3)} if math.isfinite(time_limit_s) else {},
        )
        termination = _termination(int(result.status), str(result.message))
        if termination is not Termination.GAP_REACHED:
            return Relaxation(termination, message=str(result.message))
        reduced = np.asarray(result.lower.marginals) + np.asarray(result.upper.marginals)
        duals = np.zeros(problem.n_rows)
        duals[equal] = result.eqlin.marginals
        marginals = np.asarray(result.ineqlin.marginals)
        duals[above] += marginals[: np.count_nonzero(above)]
        duals[below] -= marginals[np.count_nonzero(above) :]
        point = np.asarray(result.x)
        return Relaxation(termination, float(result.fun), point, reduced, str(result.message), duals)


def _relax_nonzero(problem: Milp, relax: Callable[[Milp], Relaxation]) -> Relaxation:
    """Relax a model without its columns fixed at 0 and the rows emptied thereby; the answer covers all of them."""
    columns, rows = alive(problem)
    if 2 * np.count_nonzero(columns) > problem.n_columns or not columns.any():
        return relax(problem)
    found = relax(part_of(problem, columns, rows))
    if found.x is None or found.duals is None:
        return found
    x, duals = np.zeros(problem.n_columns), np.zeros(problem.n_rows)
    x[columns], duals[rows] = found.x, found.duals
    priced = np.bincount(
        problem.column_of_entry(),
        weights=problem.data * duals[problem.indices],
        minlength=problem.n_columns,
    )
    return replace(found, x=x, duals=duals, reduced_costs=problem.c - priced)


def knows_jump() -> bool:
    """Whether the bundled HiGHS has the option `JUMP`."""
    import scipy

    return tuple(int(part) for part in scipy.__version__.split(".")[:2]) >= JUMP_SINCE


def _without_jump_warning(milp: Callable[..., Any], *given: Any, options: dict[str, Any], **more: Any) -> Any:
    """Call `milp`, suppressing scipy's warning that it passes the option `JUMP` on unchecked."""
    if JUMP not in options:
        return milp(*given, options=options, **more)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", f"Unrecognized options detected: {{'{JUMP}'}}", RuntimeWarning)
        return milp(*given, options=options, **more)


def _matrix(problem: Milp) -> Any:
    from scipy.sparse import csc_array

    shape = (problem.n_rows, problem.n_columns)
    return csc_array((problem.data, problem.indices, problem.indptr), shape=shape)


def _bound(result: Any, problem: Milp, termination: Termination) -> float:
    """The proven lower bound; a pure linear program's optimum is its own bound."""
    bound = result.get("mip_dual_bound")
    if bound is not None:
        return float(bound)
    solved = termination is Termination.GAP_REACHED and result.fun is not None
    return float(result.fun) if solved and not problem.integrality.any() else -math.inf


def _termination(status: int, message: str) -> Termination:
    if status == 1 and "time limit" not in message.lower():
        return Termination.ITERATION_LIMIT
    if status in _TERMINATIONS:
        return _TERMINATIONS[status]
    words = message.lower()
    if "solution limit" in words:  # what HiGHS calls a limit on nodes, too
        return Termination.ITERATION_LIMIT
    if "unbounded or infeasible" in words or "infeasible or unbounded" in words:
        return Termination.INFEASIBLE_OR_UNBOUNDED
    if "memory" in words:
        return Termination.MEMORY_LIMIT
    return Termination.UNKNOWN if "not set" in words or "unknown" in words else Termination.SOLVER_ERROR
