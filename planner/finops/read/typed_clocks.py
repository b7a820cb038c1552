"""The clock of Parquet files: texts with an offset from UTC, or billing periods that begin at midnight elsewhere."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from planner.finops.read.cells import TYPED_MOMENTS, Spelling
from planner.finops.read.clocks import Clock, clock_of, own_clocks
from planner.finops.read.columns import match_columns
from planner.finops.read.fields import Field, names_of
from planner.records import record

_MAY_BE_MOMENT = re.compile(r"date|time|period|start|end", re.IGNORECASE)
_SAMPLE, _CELL = 10_000, 64  # rows, and letters of a cell
_PERIODS = ("BillingPeriodStart", "BillingPeriodEnd")
_FARTHEST_BEHIND, _FARTHEST_AHEAD = -12 * 60, 14 * 60  # minutes from UTC
_LAST_SECOND = 1 << 36  # the year 4147

Ask = Callable[[str], Sequence[tuple[Any, ...]]]


@record(frozen=True)
class FileClock:
    """What a Parquet file tells of its clock.

    Attributes:
        columns: of the file.
        texts: moments written as text.
        ahead: minutes ahead of UTC by which its billing periods begin and end with a month; 0 for one that does not.
    """

    columns: tuple[str, ...]
    texts: Clock
    ahead: frozenset[int]


@record(frozen=True)
class ExportClock:
    """The clock of an export's files.

    Attributes:
        texts: whether days and months are those of the offsets that texts are written with.
        minutes: how far ahead of UTC typed moments are read.
    """

    texts: bool = False
    minutes: int = 0

    def __str__(self) -> str:
        """What a reader is told of it; empty for UTC."""
        if self.texts:
            return "its own clock, not of UTC"
        hours, rest = divmod(abs(self.minutes), 60)
        name = f"UTC{'+' if self.minutes > 0 else '-'}{hours:02d}:{rest:02d}"
        return f"{name}, where its billing periods begin at midnight" if self.minutes else ""


def clock_of_file(fields: Sequence[Field], table: str, ask: Ask) -> FileClock:
    """Look at the moments of a Parquet file.

    Args:
        fields: of the file.
        table: FROM item of the file.
        ask: answers a query.
    """
    return FileClock(tuple(names_of(fields)), _texts(fields, table, ask), _ahead(fields, table, ask))


def export_clocks(files: Mapping[str, FileClock]) -> dict[str, ExportClock]:
    """Return the clock of each file: files with the same columns are parts of one export, and are judged together.

    A zone with summer time is no one offset: half of its files with one clock and half with another would count the
    days between them twice, or not at all.

    Args:
        files: file -> what it tells.
    """
    texts = own_clocks(
        {name: one.texts for name, one in files.items()}, {name: one.columns for name, one in files.items()}
    )
    ahead: dict[tuple[str, ...], frozenset[int]] = {}
    for one in files.values():
        ahead[one.columns] = ahead.get(one.columns, frozenset()) | one.ahead
    minutes = {columns: min(found) if len(found) == 1 else 0 for columns, found in ahead.items()}
    return {
        name: ExportClock(texts=True) if name in texts else ExportClock(minutes=minutes[one.columns])
        for name, one in files.items()
    }


def with_clock(fields: Sequence[Field], clock: ExportClock) -> list[Field]:
    """The fields of a Parquet file, whose days and months are those of a clock."""
    if clock.texts:
        return [replace(one, spelling=Spelling(own_clock=True)) for one in fields]
    if not clock.minutes:
        return list(fields)
    return [
        replace(one, value=f"({one.value} + INTERVAL '{clock.minutes}' MINUTE)")
        if one.type_name in TYPED_MOMENTS
        else one
        for one in fields
    ]


def _texts(fields: Sequence[Field], table: str, ask: Ask) -> Clock:
    cells = [one.value for one in fields if one.type_name == "varchar" and _MAY_BE_MOMENT.search(one.name)]
    if not cells:
        return clock_of(b"")
    starts = ", ".join(f"LEFT({cell}, {_CELL})" for cell in cells)
    rows = ask(f"SELECT {starts} FROM {table} LIMIT {_SAMPLE}")
    return clock_of("\n".join(cell for row in rows for cell in row if cell).encode())


def _ahead(fields: Sequence[Field], table: str, ask: Ask) -> frozenset[int]:
    own, by_name = match_columns(names_of(fields)), {one.name: one for one in fields}
    cells = [by_name[own[name]] for name in _PERIODS if name in own]
    if not cells or any(one.type_name not in TYPED_MOMENTS for one in cells):
        return frozenset((0,))
    # numbers, for texts of moments are in the session's zone
    numbers = ", ".join(f"TRY_CAST(EPOCH({one.value}) AS BIGINT)" for one in cells)
    found = {second for row in ask(f"SELECT DISTINCT {numbers} FROM {table}") for second in row}
    minutes = frozenset(0 if second is None else _to_month(int(second)) for second in found)
    return minutes if minutes == {0} or _can_be_shifted(fields, table, ask) else frozenset((0,))


def _can_be_shifted(fields: Sequence[Field], table: str, ask: Ask) -> bool:
    """Whether no moment is so late that a shift leaves what DuckDB can hold: that would end every query."""
    moments = [f"EPOCH(MAX({one.value}))" for one in fields if one.type_name in TYPED_MOMENTS]
    (latest,) = ask(f"SELECT {', '.join(moments)} FROM {table}")
    return all(second is None or not math.isfinite(second) or second <= _LAST_SECOND for second in latest)


def _to_month(second: int) -> int:
    """Minutes from a second since 1970 to the first moment of a month that is near it; 0 where none is."""
    if not 0 <= second <= _LAST_SECOND:
        return 0
    moment = datetime(1970, 1, 1) + timedelta(seconds=second)
    month = datetime(moment.year, moment.month, 1)
    for start in (month, datetime(moment.year + moment.month // 12, moment.month % 12 + 1, 1)):
        minutes, rest = divmod(round((start - moment).total_seconds()), 60)
        if not rest and minutes % 15 == 0 and _FARTHEST_BEHIND <= minutes <= _FARTHEST_AHEAD:
            return minutes
    return 0
