"""Bounds that hold in exact arithmetic, and certificates that anyone can re-check without a solver.

For any row duals y, right or wrong, every point x of a model costs at least

    sum_i min(y_i row_lo_i, y_i row_hi_i) + sum_j min over lb_j <= x_j <= ub_j of (c_j - sum_i a_ij y_i) x_j

(weak duality; Neumaier and Shcherbina, "Safe bounds in linear and mixed-integer linear programming", 2004). Duals of
the relaxation make it tight; they are rounded to multiples of 2^-bits, and every product and sum is one of whole
numbers, so no rounding of the solver's enters. Where a column has no bound on the side that its reduced cost asks for,
one is implied by a row, or by the cost of the known point: what costs more than that is no better.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from solvers.backends.base import rounded
from solvers.problem.milp import Floats, Milp
from solvers.problem.presolve import whole_limits
from solvers.search.implied import Implied, implied_bounds

VERSION = 1
DUAL_BITS = 40  # significant binary digits kept of the smallest dual that matters
NOISE = 1e-13  # of the largest cost; a dual whose row moves costs by less is taken as 0
MICRO = "micro_"
Whole = npt.NDArray[Any]  # of Python integers


@dataclass(frozen=True)
class ExactBound:
    """A lower bound proven in exact arithmetic.

    Attributes:
        value: no point (cheaper than the cutoff) costs less; None when nothing is proven.
        duals: dual per row times 2^bits.
        bits: see `duals`.
        implied: bounds that were derived for columns without one, in order.
    """

    value: Fraction | None
    duals: tuple[int, ...]
    bits: int
    implied: tuple[Implied, ...] = ()

    def as_float(self) -> float:
        """The bound as a float that is never above it; -inf when nothing is proven."""
        return -math.inf if self.value is None else float_below(self.value)


def exact_bound(problem: Milp, duals: Floats, *, cutoff: float = math.inf) -> ExactBound:
    """Return the bound that `duals` prove.

    Args:
        problem: the model; its floats are taken at their exact binary value.
        duals: dual per row, shape `(n_rows,)`; any numbers give a valid bound, an LP's optimal ones a tight one.
        cutoff: cost of a known point: the bound then holds for every point that is not dearer.
    """
    whole_duals, bits = _rounded(problem, duals)
    reduced, shift = _reduced_costs(problem, whole_duals, bits)
    sign = np.array([(value > 0) - (value < 0) for value in reduced.tolist()], dtype=np.int8)
    upper, by_row = whole_limits(problem)
    rests = np.where(sign > 0, problem.lb, np.where(sign < 0, upper, 0.0))
    capped = np.flatnonzero((sign < 0) & (by_row >= 0))
    implied = tuple(Implied(at, True, int(by_row[at]), float(upper[at])) for at in capped.tolist())
    missing = np.flatnonzero(np.isinf(rests))
    if len(missing):
        steps = implied_bounds(problem, missing, sign, cutoff)
        implied += steps
        for step in steps:
            if (sign[step.column] < 0) == step.upper and np.isinf(rests[step.column]):
                rests[step.column] = step.value
        if np.isinf(rests).any():
            return ExactBound(None, tuple(whole_duals.tolist()), bits, implied)
    sides = np.array([_side(problem, row, dual) for row, dual in enumerate(whole_duals.tolist())])
    total = _dot(whole_duals, bits, sides) + _dot(reduced, shift, rests)
    if math.isfinite(cutoff):
        total = min(total, Fraction(cutoff))
    return ExactBound(total, tuple(whole_duals.tolist()), bits, implied)


def _rounded(problem: Milp, duals: Floats) -> tuple[Whole, int]:
    """Duals as whole multiples of 2^-bits, of the signs that the rows' sides allow."""
    largest = np.zeros(problem.n_rows)
    np.maximum.at(largest, problem.indices, np.abs(problem.data))
    usable = np.where(duals > 0, np.isfinite(problem.row_lo), np.isfinite(problem.row_hi))
    matters = np.abs(duals) * largest > NOISE * float(np.max(np.abs(problem.c), initial=0.0))
    clean = np.where(usable & matters & np.isfinite(duals), duals, 0.0)
    sizes = np.abs(clean[clean != 0])
    bits = DUAL_BITS if not len(sizes) else max(DUAL_BITS, DUAL_BITS - math.floor(math.log2(sizes.min())))
    whole = np.empty(len(clean), dtype=object)
    whole[:] = [round(Fraction(value) * 2**bits) if value else 0 for value in clean.tolist()]
    return whole, bits


def _reduced_costs(problem: Milp, duals: Whole, bits: int) -> tuple[Whole, int]:
    """Return c - A'y as whole numbers times 2^-shift."""
    cost, cost_shift = whole_numbers(problem.c)
    values, value_shift = whole_numbers(problem.data)
    shift = max(cost_shift, value_shift + bits)
    result = cost * 2 ** (shift - cost_shift)
    filled = np.flatnonzero(np.diff(problem.indptr))
    if len(filled):
        sums = np.add.reduceat(values * duals[problem.indices], problem.indptr[filled])
        result[filled] = result[filled] - sums * 2 ** (shift - value_shift - bits)
    return result, shift


def _side(problem: Milp, row: int, dual: int) -> float:
    return float(problem.row_lo[row] if dual > 0 else problem.row_hi[row]) if dual else 0.0


def _dot(whole: Whole, shift: int, floats: Floats) -> Fraction:
    """Exact sum of whole x floats x 2^-shift."""
    numbers, own_shift = whole_numbers(floats)
    total = int(np.sum(whole * numbers)) if len(whole) else 0
    return Fraction(total, 2 ** (shift + own_shift))


def whole_numbers(values: Floats) -> tuple[Whole, int]:
    """Return Python integers n and a shift with values = n x 2^-shift, exactly."""
    result = np.empty(len(values), dtype=object)
    if not (values % 1.0).any() and np.abs(values).max(initial=0.0) < 2**62:
        result[:] = values.astype(np.int64).tolist()
        return result, 0
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    power = np.where(whole == 0, 0, exponent.astype(np.int64) - 53)
    # short binary fractions such as 0.5 keep the shift, and so the numbers, small: the lowest bit set is a power of two
    twos = np.frexp((whole & -whole).astype(np.float64))[1].astype(np.int64) - 1
    spare = np.where(whole == 0, 0, np.minimum(twos, np.maximum(-power, 0)))
    whole >>= spare
    power += spare
    shift = max(0, -int(power.min(initial=0)))
    result[:] = [number << (at + shift) for number, at in zip(whole.tolist(), power.tolist(), strict=True)]
    return result, shift


def float_below(value: Fraction) -> float:
    """Return the largest float at or below `value`."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


def in_millionths(problem: Milp) -> Milp:
    """Return `problem` with costs rounded to whole millionths (micro-dollars where costs are dollars)."""
    return replace(problem, c=np.rint(problem.c * 1e6))


def build_dual_certificate(
    problem: Milp, duals: Floats, x: Floats | None, *, unit: str = "1", tolerance: float = 1e-9
) -> dict[str, Any]:
    """Return a certificate of the `milp` kind: model, point, duals, and the bound that follows; JSON-able.

    Args:
        problem: the model.
        duals: dual per row, shape `(n_rows,)`.
        x: the best point known, shape `(n_columns,)`; None where there is none.
        unit: what the objective counts, for messages; of `micro_...` (see `in_millionths`) the cost is given rounded up
            and the bound rounded down to whole numbers.
        tolerance: by how much of its own size a row may be broken by `x` (rounding of floating-point parts).
    """
    x = None if x is None else rounded(problem, x)
    micro = unit.startswith(MICRO)
    objective = None if x is None else _objective(problem, x)
    if objective is not None and micro:
        objective = Fraction(math.ceil(objective))
    proven = exact_bound(problem, duals, cutoff=math.inf if objective is None else float_above(objective))
    model = _model(problem)
    value = proven.value
    if value is not None and micro:
        value = Fraction(math.floor(value))
    bound = None if value is None else _number(value, down=True)
    stated = None if objective is None else _number(objective, down=False)
    names = problem.column_names()
    used = [] if x is None else np.flatnonzero(x).tolist()
    return {
        "certificate_version": VERSION,
        "kind": "milp",
        "unit": unit,
        "model_sha256": fingerprint(model),
        "objective": stated,
        "bound": bound,
        "gap_ratio": _gap(stated, bound),
        "row_tolerance_ratio": tolerance,
        "point": [[at, _plain(float(x[at])), names[at]] for at in used] if x is not None else None,
        "dual_bits": proven.bits,
        "duals": [[row, dual] for row, dual in enumerate(proven.duals) if dual],
        "implied": [[step.column, step.upper, step.row, step.value] for step in proven.implied],
        "model": model,
    }


def _objective(problem: Milp, x: Floats) -> Fraction:
    used = np.flatnonzero(x)
    return sum(
        (
            Fraction(cost) * Fraction(value)
            for cost, value in zip(problem.c[used].tolist(), x[used].tolist(), strict=True)
        ),
        Fraction(0),
    )


def float_above(value: Fraction) -> float:
    """Return the smallest float at or above `value`."""
    return -float_below(-value)


def _number(value: Fraction, *, down: bool) -> int | float:
    if value.denominator == 1:
        return value.numerator
    return float_below(value) if down else float_above(value)


def _gap(objective: float | None, bound: float | None) -> float | None:
    if objective is None or bound is None or (not objective and bound < objective):
        return None
    return max(0.0, (objective - bound) / abs(objective)) if objective else 0.0


def _model(problem: Milp) -> dict[str, Any]:
    """The model as JSON: arrays of one repeated value are written once, infinite sides are null."""
    arrays: Mapping[str, npt.NDArray[Any]] = {
        "cost": problem.c,
        "lower": problem.lb,
        "upper": problem.ub,
        "integer": problem.integrality.astype(np.int64),
        "row_lower": problem.row_lo,
        "row_upper": problem.row_hi,
        "values": problem.data,
    }
    return {
        "name": problem.name,
        "n_columns": problem.n_columns,
        "n_rows": problem.n_rows,
        **{name: _compact(values) for name, values in arrays.items()},
        "rows": problem.indices.tolist(),
        "starts": problem.indptr.tolist(),
    }


def _compact(values: npt.NDArray[Any]) -> Any:
    if len(values) and (values == values[0]).all():
        return _plain(float(values[0]))
    if np.abs(values).max(initial=0) < 2**53 and not (values % 1).any():
        return values.astype(np.int64).tolist()
    return [_plain(float(value)) for value in values.tolist()]


def _plain(value: float) -> int | float | None:
    if math.isinf(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def fingerprint(model: Mapping[str, Any]) -> str:
    """SHA-256 of a model as `_model` writes it, over its numbers as little-endian doubles."""
    digest = hashlib.sha256(f"{model['n_columns']} {model['n_rows']}".encode())
    for name in (
        "cost",
        "lower",
        "upper",
        "integer",
        "row_lower",
        "row_upper",
        "values",
        "rows",
        "starts",
    ):
        part = model[name] if isinstance(model[name], list) else [model[name]]
        numbers = [math.nan if value is None else value for value in part]
        digest.update(f"{name} {len(part)}".encode())
        digest.update(np.asarray(numbers, dtype="<f8").tobytes())
    return digest.hexdigest()
