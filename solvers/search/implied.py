"""Implied bounds of unbounded columns, from rows or from the cost of a known point.

From `sum_k a_k x_k <= side` follows a_j x_j <= side - min of the other terms, where every other term is bounded.
Values are given a margin outward, so that the exact check (`planner.plan.certificates.milp`) accepts each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from solvers.problem.milp import Floats, Ints, Milp

OBJECTIVE = -1
MARGIN = 1e-9  # relative, outward; against the rounding of this floating-point derivation
ROUNDS = 4


@dataclass(frozen=True)
class Implied:
    """`column` is at most (`upper`) or at least `value`, by row `row` (-1: the objective at the known cost)."""

    column: int
    upper: bool
    row: int
    value: float


def implied_bounds(
    problem: Milp, columns: Ints, sign: np.ndarray[tuple[int], np.dtype[np.int8]], cutoff: float
) -> tuple[Implied, ...]:
    """Derive a bound for each of `columns` on the side its reduced cost asks for, as far as possible.

    Args:
        problem: the model.
        columns: numbers of the columns wanted.
        sign: sign of each column's reduced cost, shape `(n_columns,)`: negative asks for an upper bound.
        cutoff: cost of a known point (inf: none); points that cost no more are what matters.
    """
    search = _Search(problem, cutoff)
    pending = {(int(column), bool(sign[column] < 0)) for column in columns}
    for _ in range(ROUNDS):
        pending = {item for item in pending if not search.derive(*item)}
        pending |= search.helpers
        search.helpers = set()
        if not pending:
            break
    return tuple(search.steps)


class _Search:
    def __init__(self, problem: Milp, cutoff: float) -> None:
        self.problem, self.cutoff = problem, cutoff
        self.low, self.high = problem.lb.copy(), problem.ub.copy()
        self.steps: list[Implied] = []
        self.helpers: set[tuple[int, bool]] = set()
        order = np.argsort(problem.indices, kind="stable")
        self._columns, self._values = problem.column_of_entry()[order], problem.data[order]
        self._starts = np.searchsorted(problem.indices[order], np.arange(problem.n_rows + 1))
        self._sums: dict[
            tuple[int, bool], tuple[float, int]
        ] = {}  # least/most activity: finite part, infinities

    def derive(self, column: int, upper: bool) -> bool:
        """Find a row that bounds `column`; True when it has a bound on that side now."""
        if math.isfinite((self.high if upper else self.low)[column]):
            return True
        problem = self.problem
        entries = range(int(problem.indptr[column]), int(problem.indptr[column + 1]))
        rows = [(OBJECTIVE, float(problem.c[column]))] if math.isfinite(self.cutoff) else []
        rows += [(int(problem.indices[entry]), float(problem.data[entry])) for entry in entries]
        return any(factor and self._by_row(row, factor, column, upper) for row, factor in rows)

    def _by_row(self, row: int, factor: float, column: int, upper: bool) -> bool:
        # a x_j is bounded from above by the row's upper side, from below by its lower side
        from_above = (factor > 0) == upper
        side = self._side(row, from_above)
        if not math.isfinite(side):
            return False
        finite, infinities = self._activity(row, least=from_above)
        column_term = self._term(factor, column, least=from_above)
        if infinities > (0 if math.isfinite(column_term) else 1):
            return self._ask_for_others(row, column, least=from_above)
        others = finite - (column_term if math.isfinite(column_term) else 0.0)
        size = abs(side) + abs(finite) + (abs(column_term) if math.isfinite(column_term) else 0.0)
        value = (side - others) / factor
        value += (1 if upper else -1) * MARGIN * max(abs(value), size / abs(factor), 1e-300)
        self._set(column, upper, value)
        self.steps.append(Implied(column, upper, row, value))
        return True

    def _side(self, row: int, above: bool) -> float:
        if row == OBJECTIVE:
            return self.cutoff if above else -math.inf
        return float(self.problem.row_hi[row] if above else self.problem.row_lo[row])

    def _members(self, row: int) -> tuple[Ints, Floats]:
        if row == OBJECTIVE:
            columns = np.flatnonzero(self.problem.c)
            return columns, self.problem.c[columns]
        part = slice(int(self._starts[row]), int(self._starts[row + 1]))
        return self._columns[part], self._values[part]

    def _terms(self, row: int, *, least: bool) -> tuple[Ints, Floats]:
        columns, values = self._members(row)
        low_side = (values > 0) == least
        return columns, values * np.where(low_side, self.low[columns], self.high[columns])

    def _term(self, factor: float, column: int, *, least: bool) -> float:
        return factor * float((self.low if (factor > 0) == least else self.high)[column])

    def _activity(self, row: int, *, least: bool) -> tuple[float, int]:
        if (row, least) not in self._sums:
            terms = self._terms(row, least=least)[1]
            finite = np.isfinite(terms)
            self._sums[row, least] = (float(terms[finite].sum()), int(np.count_nonzero(~finite)))
        return self._sums[row, least]

    def _ask_for_others(self, row: int, column: int, *, least: bool) -> bool:
        columns, terms = self._terms(row, least=least)
        values = self._members(row)[1]
        for other, value in zip(
            columns[np.isinf(terms)].tolist(), values[np.isinf(terms)].tolist(), strict=True
        ):
            if other != column:
                self.helpers.add((other, (value > 0) != least))
        return False

    def _set(self, column: int, upper: bool, value: float) -> None:
        """Record the bound and update the activities computed so far."""
        (self.high if upper else self.low)[column] = value
        problem = self.problem
        part = slice(int(problem.indptr[column]), int(problem.indptr[column + 1]))
        factors = dict(zip(problem.indices[part].tolist(), problem.data[part].tolist(), strict=True))
        factors[OBJECTIVE] = float(problem.c[column])
        for row, factor in factors.items():
            least = (factor > 0) != upper
            if factor and (row, least) in self._sums:
                finite, infinities = self._sums[row, least]
                self._sums[row, least] = (finite + factor * value, infinities - 1)
