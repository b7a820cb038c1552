"""How busy accelerators were: a CSV of the user's, because a bill does not know it.

Columns, one row per day and run, unknown cells empty:

| column | meaning |
| --- | --- |
| `date` | day, `2026-10-03` |
| `run_id` | the run's tag value; empty for use outside runs |
| `allocated_gpu_hours` | accelerator hours that were given to jobs |
| `busy_gpu_hours` | of these, hours in which the accelerators worked |
| `goodput_gpu_hours` | of these, work that was kept: without what interruptions undid, restarts and warm-up |
| `lost_gpu_hours` | optional: hours lost to interruptions (work done again, restarts) |
| `tokens` | optional: tokens trained or served |
| `eflop` | optional: useful computing in 1e18 floating point operations |
"""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path

from planner.errors import InputError
from planner.files.limited import read_limited
from planner.files.tables import comma_hint, csv_rows
from planner.inputs.faults import need_columns
from planner.records import record

NEEDED = ("date", "allocated_gpu_hours", "busy_gpu_hours", "goodput_gpu_hours")
OPTIONAL = ("run_id", "lost_gpu_hours", "tokens", "eflop")
MAX_BYTES = 256 << 20


@record(frozen=True)
class Busy:
    """Sums over days; hours are accelerator hours, None where no row says."""

    allocated: float
    busy: float
    goodput: float
    lost: float | None
    tokens: float | None
    eflop: float | None


@record(frozen=True)
class Row:
    """One line of the file."""

    day: date
    run_id: str
    values: tuple[float | None, ...]  # allocated, busy, goodput, lost, tokens, eflop


@record(frozen=True)
class Utilisation:
    """The file."""

    path: str
    rows: tuple[Row, ...]

    def days(self, start: date, end: date) -> set[date]:
        """Days from `start` to before `end` of which the file has rows."""
        return {row.day for row in self.rows if start <= row.day < end}

    def between(self, start: date, end: date, run_id: str | None = None) -> Busy | None:
        """Sums of the days from `start` to before `end`, of one run or of all; None without rows."""
        own = [r for r in self.rows if start <= r.day < end and run_id in (None, r.run_id)]
        if not own:
            return None
        sums = [_total([row.values[i] for row in own]) for i in range(6)]
        return Busy(sums[0] or 0.0, sums[1] or 0.0, sums[2] or 0.0, *sums[3:])


def _total(values: list[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return math.fsum(known) if known else None


def load_utilisation(path: Path) -> Utilisation:
    """Read the file.

    Raises:
        InputError: it cannot be read, lacks a column, or a cell is not a number or a level is above the one before it.
    """
    try:
        text = read_limited(path, MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
    reader = csv_rows("\n".join(text.splitlines()), path)
    names = [name.strip() for name in reader.fieldnames or []]
    need_columns(path, names, NEEDED)
    reader.fieldnames = names
    return Utilisation(str(path), tuple(_row(path, reader.line_num, cells) for cells in reader))


def _row(path: Path, line: int, cells: dict[str, str | None]) -> Row:
    try:
        day = date.fromisoformat((cells["date"] or "").strip())
    except ValueError:
        raise InputError(
            f"{path}:{line}: date: {str(cells['date'])[:60]!r} is not a day; write like 2026-10-03"
        ) from None
    levels = ("allocated_gpu_hours", "busy_gpu_hours", "goodput_gpu_hours")
    values = [_number(path, line, name, cells.get(name)) for name in (*levels, *OPTIONAL[1:])]
    for (lower, name), (upper, above) in zip(
        zip(values[1:3], levels[1:], strict=True), zip(values[:2], levels[:2], strict=True), strict=True
    ):
        if lower is not None and upper is not None and lower > upper * (1 + 1e-6) + 1e-6:
            raise InputError(
                f"{path}:{line}: {name} {lower:g} is above {above} {upper:g}, of which it is a part"
            )
    return Row(day, (cells.get("run_id") or "").strip(), tuple(values))


def _number(path: Path, line: int, name: str, cell: str | None) -> float | None:
    words = (cell or "").strip()
    if not words:
        return None
    try:
        value = float(words)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise InputError(f"{path}:{line}: {name}: {words[:60]!r} is not a number from 0 up{comma_hint(cell)}")
    return value
