"""Diving: where the columns of least reduced cost have no feasible point, fix the switches one by one and price anew.

Restricting a model to its columns of least reduced cost fails when a few switches (opened regions, say) may be on and
each of them has only a few of those columns. So the switch that the relaxation turns on most is fixed, the relaxation
solved again, and so on until none is fractional; the reduced costs then rank the columns behind the chosen switches.
(Diving is a textbook primal heuristic: Berthold 2006, "Primal heuristics for mixed integer programs".)
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from solvers.backends.base import Backend, Relaxation
from solvers.problem.milp import Bools, Floats, Ints, Milp

MOST_FIXED = 12
ROUNDS = 4
WHOLE = 1e-6


def switches(problem: Milp) -> Bools:
    """Binary columns that open others: alone of their sign, negative in a row `<= 0` or positive in a row `>= 0`."""
    columns, rows = problem.column_of_entry(), problem.indices
    allows = (problem.data < 0) & (problem.row_hi[rows] == 0)
    allows |= (problem.data > 0) & (problem.row_lo[rows] == 0)
    per_row = np.bincount(rows[allows], minlength=problem.n_rows)
    alone = allows & (per_row[rows] == 1)
    is_switch = np.zeros(problem.n_columns, dtype=np.bool_)
    is_switch[columns[alone]] = True
    return np.asarray(is_switch & problem.integrality & (problem.lb == 0) & (problem.ub == 1), dtype=np.bool_)


def dive(
    problem: Milp, relaxation: Relaxation, backend: Backend, until_s: float
) -> tuple[Milp, Relaxation] | None:
    """Return `problem` with its switches fixed and its relaxation; None if there is nothing to fix or no time.

    Args:
        problem: the model.
        relaxation: its relaxation, with a point.
        backend: solves the relaxations.
        until_s: value of `time.perf_counter()` at which to give up.
    """
    which = np.flatnonzero(switches(problem))
    if not len(which):
        return None
    for _ in range(MOST_FIXED):
        if relaxation.x is None or time.perf_counter() >= until_s:
            return None
        column = _next(problem, which, relaxation.x)
        if column is None:
            break
        problem = _fixed(problem, column, 1.0)
        relaxation = backend.relax(problem, max(until_s - time.perf_counter(), 0.01))
        if relaxation.x is None:
            problem = _fixed(problem, column, 0.0)
            relaxation = backend.relax(problem, max(until_s - time.perf_counter(), 0.01))
    if relaxation.x is None:
        return None
    return _without_parts(_closed(problem, which, relaxation.x), relaxation, backend, until_s)


def _without_parts(
    problem: Milp, relaxation: Relaxation, backend: Backend, until_s: float
) -> tuple[Milp, Relaxation]:
    """Fix at 0 the columns of which the relaxation uses a fraction of one: machines too large to pay as a whole."""
    for _ in range(ROUNDS):
        if relaxation.x is None or time.perf_counter() >= until_s:
            break
        x = relaxation.x
        parts = problem.integrality & (problem.lb == 0) & (x > WHOLE) & (x < 1 - WHOLE)
        without = replace(problem, ub=np.where(parts, 0.0, problem.ub))
        again = backend.relax(without, max(until_s - time.perf_counter(), 0.01))
        if not parts.any() or again.x is None:
            break
        problem, relaxation = without, again
    return problem, relaxation


def _next(problem: Milp, which: Ints, x: Floats) -> int | None:
    """The fractional free switch of the largest value; None when none is fractional."""
    free = which[(problem.lb[which] < problem.ub[which]) & (np.abs(x[which] - np.rint(x[which])) > WHOLE)]
    return int(free[np.argmax(x[free])]) if len(free) else None


def _closed(problem: Milp, which: Ints, x: Floats) -> Milp:
    """Fix at 0 the switches that are off, and the columns that no other switch opens."""
    upper = problem.ub.copy()
    upper[which[x[which] <= WHOLE]] = 0.0
    columns, rows = problem.column_of_entry(), problem.indices
    for sign, side in ((1, problem.row_hi), (-1, problem.row_lo)):
        against = (sign * problem.data > 0) & (side[rows] == 0) & (problem.lb[columns] == 0)
        allowing = (sign * problem.data < 0) & (upper[columns] > 0)
        allowed = np.bincount(rows[allowing], minlength=problem.n_rows) > 0
        upper[columns[against & ~allowed[rows]]] = 0.0
    return replace(problem, ub=np.maximum(upper, problem.lb))


def _fixed(problem: Milp, column: int, value: float) -> Milp:
    lower, upper = problem.lb.copy(), problem.ub.copy()
    lower[column] = upper[column] = value
    return replace(problem, lb=lower, ub=upper)
