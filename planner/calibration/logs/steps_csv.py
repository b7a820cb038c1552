"""CSV of steps: a header and one row per step, with a time or a throughput."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Literal

from planner.calibration.logs import Log, ReadOptions, read_text
from planner.errors import InputError

# Column -> unit and factor to it.
_COLUMNS: dict[str, tuple[Literal["seconds", "tokens", "samples", "steps"], float]] = {
    "seconds": ("seconds", 1.0), "step_seconds": ("seconds", 1.0), "step_time_s": ("seconds", 1.0),
    "time_s": ("seconds", 1.0),
    "milliseconds": ("seconds", 1e-3), "step_time_ms": ("seconds", 1e-3), "time_ms": ("seconds", 1e-3),
    "tokens_per_s": ("tokens", 1.0), "tokens_per_second": ("tokens", 1.0), "tokens/s": ("tokens", 1.0),
    "samples_per_s": ("samples", 1.0), "samples_per_second": ("samples", 1.0), "samples/s": ("samples", 1.0),
    "images_per_s": ("samples", 1.0), "images/s": ("samples", 1.0), "steps_per_s": ("steps", 1.0),
}  # fmt: skip


def read(path: Path, options: ReadOptions) -> Log:
    """Read one value per row from the first column whose name is known."""
    del options
    lines = read_text(path).splitlines()
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    header = lines[start] if lines else ""
    delimiter = max(",;\t", key=header.count)
    names = [name.strip().strip('"').lower() for name in header.split(delimiter)]
    column = next((position for position, name in enumerate(names) if name in _COLUMNS), None)
    if column is None:
        raise InputError(
            f"{path}:{start + 1}: no column of step times; the header must name one of {', '.join(_COLUMNS)}"
        )
    unit, factor = _COLUMNS[names[column]]
    values = []
    for number, row in enumerate(csv.reader(lines[start + 1 :], delimiter=delimiter), start=start + 2):
        if any(cell.strip() for cell in row):
            values.append(_value(row, column, names[column], f"{path}:{number}") * factor)
    return Log("csv", tuple(values), unit)


def names_a_time(head: str) -> bool:
    """Whether the header of a CSV names a time or a throughput of each step."""
    line = next((line for line in head.splitlines() if line.strip()), "")
    return any(
        name.strip().strip('"').lower() in _COLUMNS for name in line.split(max(",;\t", key=line.count))
    )


def _value(row: list[str], column: int, name: str, place: str) -> float:
    text = row[column].strip() if column < len(row) else ""
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"{place}: {name} must be a number, got {text!r}") from None
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{place}: {name} must be above 0, got {text}")
    return value
