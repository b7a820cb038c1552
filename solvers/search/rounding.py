"""Rounding cuts: rows that a capacity limit on integer columns implies and that a point of the relaxation violates.

480 vCPUs hold two machines of 192, not 2.5. For integer x in 0..u and sum_j a_j x_j <= L (all a_j and L integers,
a_j > 0) it follows, with R the largest value of the sum that is at most L, and any d > 0:

    sum_j a_j x_j <= R                                                             (subset sums)
    sum_j (floor(a_j / d) + max(0, f_j - f) / (1 - f)) x_j <= floor(R / d)         (mixed-integer rounding)

f_j and f are the fractional parts of a_j / d and R / d; d is each of the a_j in turn (Nemhauser and Wolsey, "A
recursive procedure to generate all cuts for 0-1 mixed integer programs", Mathematical Programming 46, 1990,
doi:10.1007/BF01585752). Where the limit is L times a binary column y, right-hand sides are times y: with y = 0 all x
are 0. Only cuts that the given point violates are returned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solvers.problem.milp import Bools, Floats, Ints, Milp

BROKEN = 1e-4  # least violation of a cut that is worth adding
LARGEST_LIMIT = 1_000_000  # beyond it sums of columns are not enumerated
WHOLE = 1e-6  # distance from a whole number up to which a value counts as one
SAFE = 1e-12  # relative weakening of coefficients, so that cuts are valid in exact arithmetic


class Limit(NamedTuple):
    """A row sum_j amount_j x_j <= most, times the column `switch` where there is one (else -1)."""

    columns: Ints
    amounts: Ints
    most: int
    switch: int


def rounding_rows(problem: Milp, x: Floats) -> tuple[Floats, Floats]:
    """Return cuts `coefficients @ x >= lower`: valid for all points of `problem`, violated by `x`.

    Args:
        problem: the model.
        x: a point of its relaxation, shape `(n_columns,)`.

    Returns:
        coefficients, shape `(k, n_columns)`; lower, shape `(k,)`: at most one cut per limit, the deepest.
    """
    rows, lower = [], []
    for limit in _limits(problem, x):
        columns, amounts, most, switch = limit
        opened = 1.0 if switch < 0 else float(x[switch])
        best, depth = None, 0.0
        for weights, right in _rounded(limit, largest_sum(amounts, problem.ub[columns], most)):
            over = float(weights @ x[columns]) - right * opened
            size = over / float(np.sqrt(weights @ weights))
            if over > BROKEN and size > depth:
                best, depth = (weights, right), size
        if best is not None:
            row = np.zeros(problem.n_columns)
            row[columns] = -best[0]
            if switch >= 0:
                row[switch] = best[1]
            rows.append(row)
            lower.append(0.0 if switch >= 0 else -float(best[1]))
    return np.array(rows).reshape(len(rows), problem.n_columns), np.array(lower)


def largest_sum(amounts: Ints, most_each: Floats, limit: int) -> int:
    """Return the largest subset sum at most `limit`, each of `amounts` used up to `most_each` times.

    Bounded knapsack by dynamic programming, one bit per sum; `limit` itself where it is above `LARGEST_LIMIT`.
    """
    if limit > LARGEST_LIMIT:
        return limit
    sums, within = 1, (1 << (limit + 1)) - 1
    for amount, most in zip(amounts.tolist(), most_each.tolist(), strict=True):
        left, step = int(min(most, limit // amount)), 1
        while left > 0:  # 1, 2, 4 ... times, and the rest: all counts up to the most
            taken = min(step, left)
            sums |= (sums << (amount * taken)) & within
            left, step = left - taken, 2 * step
    return sums.bit_length() - 1


def _limits(problem: Milp, x: Floats) -> list[Limit]:
    """The rows with integers alone in which a column of `x` is fractional."""
    part = problem.integrality & (np.abs(x - np.rint(x)) > WHOLE) & (problem.lb == 0)
    columns, rows = problem.column_of_entry(), problem.indices
    used: Bools = np.zeros(problem.n_rows, dtype=np.bool_)
    used[rows[part[columns] & (problem.data > 0)]] = True
    fit = problem.integrality[columns] & (problem.lb[columns] == 0) & (problem.data % 1.0 == 0)
    used[rows[~fit]] = False
    sides = np.where(np.isfinite(problem.row_hi), problem.row_hi, 0.5)  # no side is no whole number
    used &= (sides % 1.0 == 0) & ~np.isfinite(problem.row_lo)
    entries = np.flatnonzero(used[rows])
    order = entries[np.argsort(rows[entries], kind="stable")]
    edges = np.flatnonzero(np.diff(rows[order], prepend=-1, append=-1))
    found = []
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        at = order[first:last]
        limit = _limit(columns[at], problem.data[at], float(problem.row_hi[rows[at[0]]]), problem.ub)
        if limit is not None:
            found.append(limit)
    return found


def _limit(columns: Ints, values: Floats, side: float, upper: Floats) -> Limit | None:
    """A row as a limit; None where its sides are of another form."""
    positive = values > 0
    amounts = values[positive].astype(np.int64)
    if positive.all():
        return Limit(columns, amounts, int(side), -1) if side >= 0 else None
    others = columns[~positive]
    if side or len(others) > 1 or upper[others[0]] != 1.0:
        return None
    return Limit(columns[positive], amounts, int(-values[~positive][0]), int(others[0]))


def _rounded(limit: Limit, most: int) -> list[tuple[Floats, int]]:
    """Coefficients of the limit's columns and the right-hand side, for every candidate cut."""
    amounts = limit.amounts
    rows = [(amounts.astype(np.float64), most)] if most < limit.most else []
    for divisor in np.unique(amounts).tolist():
        whole, rest, left = amounts // divisor, amounts % divisor, most % divisor
        more = np.maximum(rest - left, 0) / (divisor - left)
        rows.append((np.where(more > 0, (whole + more) * (1 - SAFE), whole), most // divisor))
    return [(weights, right) for weights, right in rows if weights.any()]
