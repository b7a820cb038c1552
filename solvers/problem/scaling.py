"""Bring a model into the range where floating-point solvers tell the truth, and back.

HiGHS works with *absolute* tolerances: a gap of 1e-6 in the objective and 1e-6 per row. A fleet priced in
millions of dollars is therefore "optimal" while 1 % too dear, and throughput in FLOP/s is refused outright.
So the objective is multiplied into 1e2..1e6 and every fractional row into 1e-3..1e6, by powers of two (exact
in binary, nothing is rounded).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from solvers.problem.errors import SpreadError
from solvers.problem.milp import Floats, Milp

MAX_SPREAD = 1e9  # largest |a| over smallest |a| of one row, or of the objective
COST_LOW, COST_HIGH = 1e2, 1e6
ROW_LOW, ROW_HIGH = 1e-3, 1e6
ROW_TARGET = 1024.0  # largest coefficient of a scaled row: 1e-6 absolute is then about 1e-9 relative
# of models in use: one solve asks for it up to five times, to check a start as well
_SCALED: WeakKeyDictionary[Milp, Scaled] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Scaled:
    """A scaled model with the factors that were applied.

    Attributes:
        problem: the scaled model (same columns, keys and blocks).
        cost_factor: scaled cost = cost x cost_factor.
        row_factors: scaled row = row x factor, shape `(n_rows,)`.
    """

    problem: Milp
    cost_factor: float
    row_factors: Floats


def scale(problem: Milp) -> Scaled:
    """Scale `problem`; what it comes to is kept as long as the model.

    Raises:
        SpreadError: a row or the objective spreads over more than 1e9, so no unit makes it safe.
    """
    known = _SCALED.get(problem)
    if known is None:
        known = _SCALED[problem] = _scaled(problem, _cost_factor(problem), _row_factors(problem))
    return known


def scale_grown(problem: Milp, before: Scaled) -> Scaled:
    """Scale a model that was scaled `before`, and has got rows behind its own and other limits of rows.

    Raises:
        SpreadError: a row spreads over more than 1e9.
    """
    return _scaled(problem, before.cost_factor, _row_factors(problem, before.row_factors))


def _scaled(problem: Milp, cost_factor: float, row_factors: Floats) -> Scaled:
    scaled = replace(
        problem,
        c=problem.c * cost_factor,
        data=problem.data * row_factors[problem.indices],
        row_lo=problem.row_lo * row_factors,
        row_hi=problem.row_hi * row_factors,
    )
    return Scaled(scaled, cost_factor, row_factors)


def _cost_factor(problem: Milp) -> float:
    sizes = np.abs(problem.c[problem.c != 0])
    if not len(sizes):
        return 1.0
    low, high = float(sizes.min()), float(sizes.max())
    if high / low > MAX_SPREAD:
        raise SpreadError(
            f"{problem.name}: costs spread from {low:g} to {high:g}, more than {MAX_SPREAD:g} apart; "
            "drop the columns that can never pay or change their unit"
        )
    # The typical cost goes to 1e4 (the middle of 1e2..1e6), but never the largest above 1e6.
    ordered = np.sort(sizes)  # `median` would import numpy.ma
    middle = float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    return _power_of_two(min(math.sqrt(COST_LOW * COST_HIGH) / middle, COST_HIGH / high))


def _row_factors(problem: Milp, known: Floats | None = None) -> Floats:
    """Factors of all rows; those of the first ones are `known`."""
    data, indices, first = problem.data, problem.indices, 0
    if known is not None:
        first = len(known)
        new = indices >= first
        data, indices = data[new], indices[new] - first
    count = problem.n_rows - first
    sizes = np.abs(data)
    sizes = np.where(sizes > 0, sizes, np.nan)  # an explicit zero is no coefficient
    high = np.zeros(count)
    np.fmax.at(high, indices, sizes)
    low = np.full(count, math.inf)
    np.fmin.at(low, indices, sizes)
    used = high > 0
    spread = np.divide(high, low, out=np.ones_like(high), where=used)
    if (spread > MAX_SPREAD).any():
        at = int(np.argmax(spread))
        raise SpreadError(
            f"{problem.name}: row {problem.row_names()[first + at]} mixes coefficients {low[at]:g} to {high[at]:g}, "
            f"more than {MAX_SPREAD:g} apart; change a unit or tighten the limit behind the largest one"
        )
    fractional = np.bincount(indices, weights=data % 1.0 != 0, minlength=count) > 0
    # Whole-number rows stay as they are: solvers derive cuts from their integrality.
    change = used & (fractional | (high > ROW_HIGH))
    target = np.full(count, 1.0)
    np.divide(ROW_TARGET, high, out=target, where=change)
    lift = np.divide(ROW_LOW, low, out=np.zeros_like(low), where=change)
    ceiling = np.divide(ROW_HIGH, high, out=np.ones_like(high), where=change)
    factor = np.minimum(np.maximum(target, lift), ceiling)
    factors = np.where(change, 2.0 ** np.floor(np.log2(factor)), 1.0)
    return factors if known is None else np.concatenate([known, factors])


def _power_of_two(value: float) -> float:
    return 2.0 ** math.floor(math.log2(value))
