"""The clock of a Parquet file: texts with an offset from UTC, or billing periods that begin at midnight elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from planner.finops.read.cells import Spelling
from planner.finops.read.clocks import clock_of, own_clocks
from planner.finops.read.columns import match_columns
from planner.finops.read.fields import Field, names_of

_MAY_BE_MOMENT = re.compile(r"date|time|period|start|end", re.IGNORECASE)
_SAMPLE = 10_000  # rows
_PERIODS = ("BillingPeriodStart", "BillingPeriodEnd")
_TYPED = ("timestamp", "timestamp with time zone")
_FARTHEST_BEHIND, _FARTHEST_AHEAD = -12 * 60, 14 * 60  # minutes from UTC
_LAST_SECOND = 1 << 36  # the year 4147

Ask = Callable[[str], Sequence[tuple[Any, ...]]]


def with_own_clock(fields: Sequence[Field], table: str, ask: Ask) -> tuple[list[Field], str]:
    """The fields of a Parquet file, whose days and months are those of its own clock where it has one.

    Args:
        fields: of the file.
        table: FROM item of the file.
        ask: answers a query.

    Returns:
        The fields, and which clock they are read by; empty where that is UTC.
    """
    if _texts_have_clock(fields, table, ask):
        return [
            replace(one, spelling=Spelling(own_clock=True)) for one in fields
        ], "its own clock, not of UTC"
    minutes = _minutes_ahead(fields, table, ask)
    if not minutes:
        return list(fields), ""
    hours, rest = divmod(abs(minutes), 60)
    name = f"UTC{'+' if minutes > 0 else '-'}{hours:02d}:{rest:02d}"
    shifted = [
        replace(one, value=f"({one.value} + INTERVAL '{minutes}' MINUTE)") if one.type_name in _TYPED else one
        for one in fields
    ]
    return shifted, f"{name}, where its billing periods begin at midnight"


def _texts_have_clock(fields: Sequence[Field], table: str, ask: Ask) -> bool:
    cells = [one.value for one in fields if one.type_name == "varchar" and _MAY_BE_MOMENT.search(one.name)]
    if not cells:
        return False
    rows = ask(f"SELECT {', '.join(cells)} FROM {table} LIMIT {_SAMPLE}")
    chunk = "\n".join(cell for row in rows for cell in row if cell).encode()
    return bool(own_clocks({table: clock_of(chunk)}, {table: names_of(fields)}))


def _minutes_ahead(fields: Sequence[Field], table: str, ask: Ask) -> int:
    """How far ahead of UTC a clock is by which all billing periods begin and end with a month; 0 where none is."""
    own, by_name = match_columns(names_of(fields)), {one.name: one for one in fields}
    cells = [by_name[own[name]] for name in _PERIODS if name in own]
    if not cells or any(one.type_name not in _TYPED for one in cells):
        return 0
    # numbers, for texts of moments are in the session's zone
    numbers = ", ".join(f"TRY_CAST(EPOCH({one.value}) AS BIGINT)" for one in cells)
    found = {second for row in ask(f"SELECT DISTINCT {numbers} FROM {table}") for second in row}
    ahead = {0 if second is None else _to_month(int(second)) for second in found}
    return ahead.pop() if len(ahead) == 1 else 0


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
