"""CSV of steps: a header and one row per step, with a time or a throughput."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from planner.calibration.logs import Log, ReadOptions, read_text
from planner.calibration.logs.look import STEP_COLUMNS
from planner.errors import InputError
from planner.files.tables import delimiter_of


def read(path: Path, options: ReadOptions) -> Log:
    """Read one value per row from the first column whose name is known."""
    del options
    lines = read_text(path).splitlines()
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    header = lines[start] if lines else ""
    delimiter = delimiter_of(header)
    names = [name.strip().strip('"').lower() for name in header.split(delimiter)]
    column = next((position for position, name in enumerate(names) if name in STEP_COLUMNS), None)
    if column is None:
        raise InputError(
            f"{path}:{start + 1}: no column of step times; the header must name one of {', '.join(STEP_COLUMNS)}, or "
            "step and time"
        )
    unit, factor = STEP_COLUMNS[names[column]]
    values = []
    for number, row in enumerate(csv.reader(lines[start + 1 :], delimiter=delimiter), start=start + 2):
        if any(cell.strip() for cell in row):
            values.append(_value(row, column, names[column], f"{path}:{number}") * factor)
    return Log("csv", tuple(values), unit)


def _value(row: list[str], column: int, name: str, place: str) -> float:
    text = row[column].strip() if column < len(row) else ""
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{place}: {name} must be a number, got {text!r}") from None
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{place}: {name} must be above 0, got {text}")
    return value
