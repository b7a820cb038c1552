"""Checks the certificate of any mixed-integer linear program: the point, its cost, and the bound that duals prove.

Weak duality, in whole numbers: for any y every point costs at least

    sum_i min(y_i lower_i, y_i upper_i) + sum_j min over the column's bounds of (c_j - sum_i a_ij y_i) x_j.

Numbers are taken at their exact binary value. Columns without a bound on the side asked for get one from the listed
derivations, each of which is checked: a row (or the cost of the point: what is dearer does not matter) leaves it no
other value.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from fractions import Fraction
from operator import mul
from typing import Any

ARRAYS = ("cost", "lower", "upper", "integer", "row_lower", "row_upper", "values", "rows", "starts")
# Of a row's size (its terms, a side, its largest coefficient): the most that rounding of floating-point parts may break
# it by.
LOOSEST = 1e-6
MOST_BITS = 2_000
OBJECTIVE = -1
Number = int | float
Term = tuple[int, Number]  # a column and its coefficient


class Model:
    """A model as read from a certificate; every array has its full length."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        """Read `content`.

        Raises:
            ValueError: the arrays do not fit together, or a number is none.
        """
        self.content = content
        self.n_columns, self.n_rows = int(content["n_columns"]), int(content["n_rows"])
        self.starts: list[int] = _whole(content["starts"])
        self.rows: list[int] = _whole(content["rows"])
        entries = len(self.rows)
        self.cost = _floats(content["cost"], self.n_columns, None)
        self.values = _floats(content["values"], entries, None)
        self.lower = _floats(content["lower"], self.n_columns, -math.inf)
        self.upper = _floats(content["upper"], self.n_columns, math.inf)
        self.integer = _floats(content["integer"], self.n_columns, None)
        self.row_lower = _floats(content["row_lower"], self.n_rows, -math.inf)
        self.row_upper = _floats(content["row_upper"], self.n_rows, math.inf)
        ordered = all(
            start <= following for start, following in zip(self.starts, self.starts[1:], strict=False)
        )
        if (
            len(self.starts) != self.n_columns + 1
            or self.starts[0]
            or self.starts[-1] != entries
            or not ordered
        ):
            raise ValueError("starts does not divide the entries among the columns")
        if entries and not (min(self.rows) >= 0 and max(self.rows) < self.n_rows):
            raise ValueError("an entry is in a row that does not exist")

    def column(self, number: int) -> list[Term]:
        """The rows and coefficients of a column."""
        part = slice(self.starts[number], self.starts[number + 1])
        return list(zip(self.rows[part], self.values[part], strict=True))

    def sha256(self) -> str:
        """The fingerprint: SHA-256 over the numbers as little-endian doubles."""
        digest = hashlib.sha256(f"{self.n_columns} {self.n_rows}".encode())
        for name in ARRAYS:
            part = self.content[name] if isinstance(self.content[name], list) else [self.content[name]]
            numbers = [math.nan if value is None else value for value in part]
            digest.update(f"{name} {len(part)}".encode())
            digest.update(struct.pack(f"<{len(numbers)}d", *numbers))
        return digest.hexdigest()


def check(certificate: Mapping[str, Any]) -> list[str]:
    """Return every fault of a `milp` certificate."""
    model = Model(certificate["model"])
    if model.sha256() != certificate["model_sha256"]:
        return ["the model is not the one of the certificate (model_sha256 differs)"]
    faults: list[str] = []
    objective: Fraction | None = None
    if certificate["point"] is not None:
        objective, faults = _check_point(model, certificate)
    if certificate["bound"] is not None:
        faults += _check_bound(model, certificate, objective)
    return faults + gap_faults(certificate)


def gap_faults(certificate: Mapping[str, Any]) -> list[str]:
    """Whether the stated gap follows from the stated objective and bound; for every kind of certificate."""
    objective, bound, gap = certificate["objective"], certificate["bound"], certificate["gap_ratio"]
    if objective is None or bound is None:
        return [] if gap is None else ["a gap is stated without an objective and a bound"]
    top, low = Fraction(objective), Fraction(bound)
    if not top and low < top:
        return [] if gap is None else ["the gap to an objective of 0 has no ratio"]
    true = max(Fraction(0), (top - low) / abs(top)) if top else Fraction(0)
    if gap is None or abs(true - Fraction(gap)) > Fraction(1, 10**12):
        return [f"the gap is {float(true):.3e}, the certificate says {gap}"]
    return []


def _check_point(model: Model, certificate: Mapping[str, Any]) -> tuple[Fraction, list[str]]:
    point: dict[int, Number] = {}
    faults = []
    for column, value, *_ in certificate["point"]:
        if column in point or not 0 <= column < model.n_columns or isinstance(column, bool):
            return Fraction(0), [f"the point gives column {column} twice, or there is no such column"]
        point[column] = _finite(value)
    for column in range(model.n_columns):
        value = point.get(column, 0)
        if not model.lower[column] <= value <= model.upper[column]:
            faults.append(f"column {column} is {value}, outside {model.lower[column]}..{model.upper[column]}")
        elif model.integer[column] and value != int(value):
            faults.append(f"column {column} is {value}, not a whole number")
    cost = sum((Fraction(model.cost[at]) * Fraction(value) for at, value in point.items()), Fraction(0))
    stated = Fraction(_finite(certificate["objective"]))
    unit = 1 if str(certificate.get("unit")).startswith("micro_") else abs(cost) * Fraction(1, 10**15)
    if not cost <= stated <= cost + unit:
        faults.append(f"the point costs {float(cost)!r}, the certificate says {certificate['objective']!r}")
    return stated, faults + _check_rows(model, point, _finite(certificate["row_tolerance_ratio"]))


def _check_rows(model: Model, point: Mapping[int, Number], tolerance: float) -> list[str]:
    if not 0 <= tolerance <= LOOSEST:
        return [f"row_tolerance_ratio {tolerance} is not within 0..{LOOSEST}"]
    activity, size = [Fraction(0)] * model.n_rows, [Fraction(0)] * model.n_rows
    largest: list[Number] = [0] * model.n_rows
    for row, factor in zip(model.rows, model.values, strict=True):
        largest[row] = max(largest[row], abs(factor))
    for column, value in point.items():
        for row, factor in model.column(column):
            term = Fraction(factor) * Fraction(value)
            activity[row] += term
            size[row] += abs(term)
    faults = []
    for row, (low, high) in enumerate(zip(model.row_lower, model.row_upper, strict=True)):
        sides = [Fraction(side) for side in (low, high) if math.isfinite(side)]
        room = Fraction(tolerance) * max([size[row], Fraction(largest[row]), *map(abs, sides)])
        below = math.isfinite(low) and activity[row] < Fraction(low) - room
        if below or (math.isfinite(high) and activity[row] > Fraction(high) + room):
            faults.append(f"row {row} is {float(activity[row])}, outside {low}..{high}")
    return faults


def _check_bound(model: Model, certificate: Mapping[str, Any], objective: Fraction | None) -> list[str]:
    bits = certificate["dual_bits"]
    if not isinstance(bits, int) or not 0 <= bits <= MOST_BITS:
        return [f"dual_bits is {bits!r}"]
    duals = [0] * model.n_rows
    for row, dual in certificate["duals"]:
        if not isinstance(dual, int) or not 0 <= row < model.n_rows:
            return [f"dual of row {row} is {dual!r}: not a whole number, or no such row"]
        duals[row] = dual
    lower, upper, faults = _derived(model, certificate.get("implied", []), objective)
    if faults:
        return faults
    bound = _dual_bound(model, duals, bits, lower, upper)
    if bound is None:
        return ["the duals prove nothing: a row or a column that they need has no bound on that side"]
    stated = Fraction(_finite(certificate["bound"]))
    if objective is not None:
        bound = min(bound, objective)
    if stated > bound:
        return [f"the duals prove {float(bound)!r}, the certificate says {certificate['bound']!r}"]
    return []


def _dual_bound(
    model: Model, duals: Sequence[int], bits: int, lower: Sequence[Number], upper: Sequence[Number]
) -> Fraction | None:
    """The bound that duals x 2^-bits prove; None where it is minus infinity."""
    total = Fraction(0)
    sides = []
    for dual, low, high in zip(duals, model.row_lower, model.row_upper, strict=True):
        side = 0 if not dual else low if dual > 0 else high
        if math.isinf(side):
            return None
        sides.append(side)
    whole_sides, side_shift = _shifted(sides)
    total += Fraction(sum(map(mul, duals, whole_sides)), 2 ** (bits + side_shift))
    reduced, shift = _reduced_costs(model, duals, bits)
    rests = [
        low if cost > 0 else high if cost else 0
        for cost, low, high in zip(reduced, lower, upper, strict=True)
    ]
    if any(map(math.isinf, rests)):
        return None
    whole_rests, rest_shift = _shifted(rests)
    return total + Fraction(sum(map(mul, reduced, whole_rests)), 2 ** (shift + rest_shift))


def _reduced_costs(model: Model, duals: Sequence[int], bits: int) -> tuple[list[int], int]:
    """Return c - A'y as whole numbers times 2^-shift."""
    cost, cost_shift = _shifted(model.cost)
    values, value_shift = _shifted(model.values)
    shift = max(cost_shift, value_shift + bits)
    up, entry_up = 2 ** (shift - cost_shift), 2 ** (shift - value_shift - bits)
    terms = list(map(mul, values, map(duals.__getitem__, model.rows)))
    starts = model.starts
    reduced = [
        cost[column] * up - sum(terms[starts[column] : starts[column + 1]]) * entry_up
        for column in range(model.n_columns)
    ]
    return reduced, shift


def _derived(
    model: Model, steps: Sequence[Sequence[Any]], objective: Fraction | None
) -> tuple[list[Number], list[Number], list[str]]:
    """The columns' bounds with the listed derivations added, each of them checked."""
    lower, upper = list(model.lower), list(model.upper)
    if not steps:
        return lower, upper, []
    activities = _Activities(model, lower, upper)
    for column, is_upper, row, value in steps:
        known = (
            0 <= column < model.n_columns and OBJECTIVE <= row < model.n_rows and isinstance(is_upper, bool)
        )
        if not known or (row == OBJECTIVE and objective is None):
            return lower, upper, [f"derivation of column {column} from row {row}: there is none"]
        if not activities.proves(column, is_upper, row, Fraction(_finite(value)), objective):
            side = "at most" if is_upper else "at least"
            return lower, upper, [f"row {row} does not prove that column {column} is {side} {value}"]
        activities.enter(column, is_upper, value)
    return lower, upper, []


class _Activities:
    """Least and most of each row over the columns' bounds, kept up to date: (finite part, number of infinities)."""

    def __init__(self, model: Model, lower: list[Number], upper: list[Number]) -> None:
        self._model, self._lower, self._upper = model, lower, upper
        self._sums: dict[tuple[int, bool], tuple[Fraction, int]] = {}
        self._members: dict[int, list[Term]] = {OBJECTIVE: list(enumerate(model.cost))}
        for column in range(model.n_columns):
            for row, factor in model.column(column):
                self._members.setdefault(row, []).append((column, factor))

    def proves(
        self, column: int, is_upper: bool, row: int, value: Fraction, objective: Fraction | None
    ) -> bool:
        """Whether `row` leaves no room beyond `value` for the column."""
        factor = next(
            (Fraction(coefficient) for at, coefficient in self._terms_of(column) if at == row), Fraction(0)
        )
        if not factor:
            return False
        least = (factor > 0) == is_upper  # the row's upper side speaks, against the least of the other terms
        if row == OBJECTIVE:
            side: Number | Fraction | None = objective if least else None
        else:
            side = self._model.row_upper[row] if least else self._model.row_lower[row]
        if side is None or (isinstance(side, float) and math.isinf(side)):
            return False
        finite, infinities = self._sum(row, least)
        bound = self._bound(column, factor, least)
        if infinities - math.isinf(bound):
            return False
        room = Fraction(side) - finite + (0 if math.isinf(bound) else factor * Fraction(bound))
        if self._model.integer[column] and value.denominator == 1:
            # the next whole number beyond is impossible already
            beyond = room - factor * (value + (1 if is_upper else -1))
            return beyond < 0 if least else beyond > 0
        return room <= factor * value if least else room >= factor * value

    def enter(self, column: int, is_upper: bool, value: Number) -> None:
        """Take the bound `value`, where it is tighter than what the column has."""
        bounds = self._upper if is_upper else self._lower
        before = bounds[column]
        if value >= before if is_upper else value <= before:
            return
        bounds[column] = value
        for row, number in self._terms_of(column):
            factor = Fraction(number)
            key = (row, (factor > 0) != is_upper)
            if factor and key in self._sums:
                finite, infinities = self._sums[key]
                finite += factor * (Fraction(value) - (0 if math.isinf(before) else Fraction(before)))
                self._sums[key] = (finite, infinities - math.isinf(before))

    def _terms_of(self, column: int) -> list[Term]:
        return [(OBJECTIVE, self._model.cost[column]), *self._model.column(column)]

    def _bound(self, column: int, factor: Number | Fraction, least: bool) -> Number:
        return self._lower[column] if (factor > 0) == least else self._upper[column]

    def _sum(self, row: int, least: bool) -> tuple[Fraction, int]:
        if (row, least) not in self._sums:
            finite, infinities = Fraction(0), 0
            for column, factor in self._members.get(row, []):
                bound = self._bound(column, factor, least)
                if factor and math.isinf(bound):
                    infinities += 1
                elif factor:
                    finite += Fraction(factor) * Fraction(bound)
            self._sums[row, least] = (finite, infinities)
        return self._sums[row, least]


def _shifted(values: Sequence[Number]) -> tuple[list[int], int]:
    """Whole numbers n and a shift with values = n x 2^-shift, exactly."""
    if all(type(value) is int for value in values):
        return list(values), 0  # type: ignore[arg-type]
    ratios = [value.as_integer_ratio() for value in values]
    shift = max(bottom.bit_length() - 1 for _, bottom in ratios)
    return [top << (shift - bottom.bit_length() + 1) for top, bottom in ratios], shift


def _floats(values: Any, count: int, missing: float | None) -> list[Number]:
    """An array as written: a list, or one value for all; null only where `missing` (an infinite side) is given."""
    parts = values if isinstance(values, list) else [values]
    if not all(type(value) in (int, float) or (value is None and missing is not None) for value in parts):
        raise ValueError("an array has a value that is not a number")
    if not all(value is None or (math.isfinite(value) and float(value) == value) for value in parts):
        raise ValueError("an array holds a number that no float can hold")
    known: list[Number] = parts
    if missing is not None and None in parts:
        known = [missing if value is None else value for value in parts]
    result = known if isinstance(values, list) else known * count
    if len(result) != count:
        raise ValueError(f"an array has {len(result)} numbers, not {count}")
    return result


def _whole(values: Any) -> list[int]:
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        raise ValueError("an array of whole numbers holds something else")
    return values


def _finite(value: Any) -> Any:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return value


def set_of(_certificate: Mapping[str, Any]) -> str:
    """Name the points that the bound is of."""
    return "of those that its model allows"
