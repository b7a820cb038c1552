"""Progress of a run: CSV or JSON lines of step and time, the log that `planner track` reads."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planner.calibration.logs import Log, ReadOptions, read_text
from planner.calibration.logs.look import kind_of, object_of
from planner.files.tables import delimiter_of

_BEYOND = 9.0e18  # DCGM writes 9223372036854775794 where a figure is not supported
_EPOCH = 1e8  # figures above are POSIX seconds (1973 on), those below seconds since the start
_MILLI = 1e11


def read(path: Path, options: ReadOptions) -> Log:
    """Read seconds per step between logged steps; a step that was done again begins anew."""
    del options
    values, last = [], (math.nan, math.nan)
    for row in _rows(read_text(path)):
        step, time = number(row.get("step")), moment(row.get("time"))[0]
        if step > last[0] and time > last[1]:
            each = (time - last[1]) / (step - last[0])
            values += [each] if math.isfinite(each) and each > 0 else []
        if math.isfinite(step) and math.isfinite(time):
            last = step, time
    note = "steps are timed between logged rows: what stops them in between is in it"
    return Log("progress", tuple(values), note=note)


def _rows(text: str) -> Iterator[Mapping[str, Any]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if lines and lines[0].lstrip().startswith("{"):
        yield from (_known((object_of(line) or {}).items()) for line in lines)
        return
    cells = csv.reader(lines, delimiter=delimiter_of(lines[0]) if lines else ",")
    names = next(cells, [])
    yield from (_known(zip(names, row, strict=False)) for row in cells)


def _known(cells: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {kind: value for name, value in cells if (kind := kind_of(name)) is not None}


def number(value: Any) -> float:
    """A figure, NaN where it is none; a figure that stands for `not supported` is none."""
    if value is None or isinstance(value, bool):
        return math.nan
    try:
        figure = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return figure if abs(figure) < _BEYOND else math.nan


def moment(value: Any) -> tuple[float, bool]:
    """Seconds, and whether they are a moment: ISO text, POSIX seconds or milliseconds, or seconds since the start."""
    figure = number(value)
    if math.isfinite(figure):
        if figure >= _MILLI:
            return figure / 1e3, True
        return figure, figure >= _EPOCH
    if not isinstance(value, str):
        return math.nan, False
    try:
        at = datetime.fromisoformat(value.strip())
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp(), True
    except (ValueError, OverflowError):
        return math.nan, False
