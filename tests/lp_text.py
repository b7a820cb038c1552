"""A model as LP text (CPLEX LP format): for golden files and for trying a model in another solver."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from solvers.problem.milp import Floats, Milp

TERMS_PER_LINE = 6


def lp_text(problem: Milp) -> str:
    """Return `problem` as LP text; a row with two different finite sides is written as two rows."""
    columns = problem.column_names()
    lines = [f"\\ {problem.name}: {problem.n_rows} rows, {problem.n_columns} columns", "Minimize"]
    priced = np.flatnonzero(problem.c)
    lines += _expression("obj", priced.tolist(), problem.c, columns)
    lines.append("Subject To")
    lines += _rows(problem, columns)
    lines.append("Bounds")
    lines += [_bounds(problem, number, name) for number, name in enumerate(columns)]
    whole = [name for name, flag in zip(columns, problem.integrality, strict=True) if flag]
    if whole:
        lines += ["General", *(f" {name}" for name in whole)]
    return "\n".join([*lines, "End", ""])


def _rows(problem: Milp, columns: list[str]) -> Iterator[str]:
    order = np.argsort(problem.indices, kind="stable")
    column = problem.column_of_entry()[order]
    starts = np.searchsorted(problem.indices[order], np.arange(problem.n_rows + 1))
    for row, name in enumerate(problem.row_names()):
        part = slice(int(starts[row]), int(starts[row + 1]))
        values = dict(zip(column[part].tolist(), problem.data[order][part].tolist(), strict=True))
        for suffix, sign, side in _sides(float(problem.row_lo[row]), float(problem.row_hi[row])):
            lines = _expression(name + suffix, values, values, columns)
            lines[-1] += f" {sign} {_number(side)}"
            yield from lines


def _sides(low: float, high: float) -> list[tuple[str, str, float]]:
    if low == high:
        return [("", "=", low)]
    sides = []
    if math.isfinite(low):
        sides.append(("", ">=", low))
    if math.isfinite(high):
        sides.append(("..hi" if sides else "", "<=", high))
    return sides


def _expression(
    name: str, numbers: Iterable[int], values: dict[int, float] | Floats, columns: list[str]
) -> list[str]:
    terms = []
    for number in numbers:
        value = float(values[number])
        terms.append(f"{'-' if value < 0 else '+'} {_number(abs(value))} {columns[number]}")
    terms = terms or [f"0 {columns[0]}"]
    parts = [terms[at : at + TERMS_PER_LINE] for at in range(0, len(terms), TERMS_PER_LINE)]
    lines = [f" {name}: {' '.join(parts[0])}"]
    return lines + [f"   {' '.join(part)}" for part in parts[1:]]


def _bounds(problem: Milp, number: int, name: str) -> str:
    low, high = float(problem.lb[number]), float(problem.ub[number])
    if math.isinf(low) and math.isinf(high):
        return f" {name} free"
    if math.isinf(high):
        return f" {name} >= {_number(low)}"
    return f" {_number(low) if math.isfinite(low) else '-inf'} <= {name} <= {_number(high)}"


def _number(value: float) -> str:
    return f"{value:.12g}"
