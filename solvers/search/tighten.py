"""Reduced-cost fixing and bound tightening, from the linear relaxation and a known solution; no better point is lost.

With a lower bound L of the relaxation, reduced costs d >= 0 at lower bounds and a known cost Z, any point
with x_j = lb_j + k costs at least L + k d_j; where that reaches the cutoff, x_j can be capped without losing
a better point. (Reduced-cost fixing and optimality-based bound tightening are textbook: Savelsbergh 1994,
Caprara and Locatelli 2010.)
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from solvers.backends.base import Backend, Relaxation
from solvers.problem.milp import Block, Floats, Milp
from solvers.problem.solution import Termination

LP_TOLERANCE = 1e-7  # relative; given away from every bound that a floating-point relaxation claims
# Relative, outward, of a bound put on a column, beyond the solver's own tolerance (1e-6): with a
# bound 1e-9 or 1e-7 above the only optimum, HiGHS' presolve (1.12 and 1.15) has cut it off.
BOUND_MARGIN = 1e-5


def with_cutoff(problem: Milp, cutoff: float) -> Milp:
    """Return `problem` with the extra row c.x <= cutoff."""
    priced = np.flatnonzero(problem.c)
    per_column = np.diff(problem.indptr)
    added = np.zeros(problem.n_columns, dtype=np.int64)
    added[priced] = 1
    indptr = np.zeros(problem.n_columns + 1, dtype=np.int32)
    np.cumsum(per_column + added, out=indptr[1:])
    is_new = np.zeros(int(indptr[-1]), dtype=np.bool_)
    is_new[indptr[priced + 1] - 1] = True  # the new row is the last entry of its column
    data, indices = np.empty(len(is_new)), np.empty(len(is_new), dtype=np.int32)
    data[is_new], indices[is_new] = problem.c[priced], problem.n_rows
    data[~is_new], indices[~is_new] = problem.data, problem.indices
    return replace(
        problem,
        row_lo=np.append(problem.row_lo, -math.inf),
        row_hi=np.append(problem.row_hi, cutoff),
        data=data,
        indices=indices,
        indptr=indptr,
        row_blocks=(*problem.row_blocks, Block("cutoff", problem.n_rows, problem.n_rows + 1)),
    )


def largest(problem: Milp, column: int, *, cutoff: float, backend: Backend, time_limit_s: float) -> float:
    """Return an upper bound on column `column` over all points that cost at most `cutoff`."""
    objective = np.zeros(problem.n_columns)
    objective[column] = -1.0
    limited = with_cutoff(problem, cutoff) if math.isfinite(cutoff) else problem
    relaxation = backend.relax(replace(limited, c=objective), time_limit_s)
    if relaxation.termination is not Termination.GAP_REACHED:
        return float(problem.ub[column])
    most = -relaxation.objective
    return min(float(problem.ub[column]), most + BOUND_MARGIN * abs(most))


def safe_bound(relaxation: Relaxation) -> float:
    """Return the relaxation's objective less the solver's tolerance; -inf without an optimum."""
    if relaxation.termination is not Termination.GAP_REACHED:
        return -math.inf
    return relaxation.objective - LP_TOLERANCE * abs(relaxation.objective)


def caps_from_reduced_costs(problem: Milp, relaxation: Relaxation, cutoff: float) -> Floats:
    """Return upper bounds that every point cheaper than `cutoff` satisfies, shape `(n_columns,)`."""
    upper = problem.ub.copy()
    if relaxation.x is None or relaxation.reduced_costs is None or not math.isfinite(cutoff):
        return upper
    slack = cutoff - safe_bound(relaxation)
    resting = problem.integrality & (relaxation.x <= problem.lb + 1e-9)
    positive = resting & (relaxation.reduced_costs > 1e-9 * max(abs(relaxation.objective), 1e-300))
    steps = np.floor(max(slack, 0.0) / relaxation.reduced_costs[positive] * (1 + 1e-9) + 1e-9)
    upper[positive] = np.minimum(upper[positive], problem.lb[positive] + steps)
    return upper
