"""The cells of a workbook: tables without compounds, and those that its charts are drawn from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from planner.render.document import chart_values
from planner.render.model import Chart, Column, Table, Value
from planner.render.units import number_of, style_of

ISO_DAY = re.compile(r"\d{4}-\d{2}(-\d{2})?")
_NO_FILL = {"fill": {"none": True}, "border": {"none": True}, "gap": 50}
WATERFALL: Mapping[
    str, dict[str, Any]
] = {  # the columns of a bridge, stacked: what it stands on is not drawn
    "Base": _NO_FILL,
    "Total": {"fill": {"color": "#3B5B7A"}},
    "Rise": {"fill": {"color": "#B4532A"}},
    "Fall": {"fill": {"color": "#3F7F5F"}},
}


def chart_table(chart: Chart) -> Table:
    """The values of a chart as a table: one row per label."""
    values = chart_values(chart)
    dated = bool(chart.labels) and all(ISO_DAY.fullmatch(label) for label in chart.labels)
    columns = (
        Column("label", "Day" if len(chart.labels[0]) > 7 else "Month", "date")
        if dated
        else Column("label", "Name", "text"),
        *(Column(f"s{i}", name or "value", chart.unit) for i, (name, _) in enumerate(chart.series)),
    )
    rows = tuple((label, *(series[index] for series in values)) for index, label in enumerate(chart.labels))
    if chart.kind == "bridge" and (parts := waterfall(values[0])):
        columns += tuple(Column(name.lower(), name, chart.unit) for name in WATERFALL)
        rows = tuple(
            (*row, *(part or None for part in cells)) for row, cells in zip(rows, parts, strict=True)
        )
    return Table(f"chart {chart.key}", chart.title, columns, rows, chart.alt)


def columns_of(chart: Chart, table: Table) -> list[int]:
    """Columns of a table whose first rows are the values of the chart's series; empty where one is not there."""
    count, simple = len(chart.labels), simple_table(table)
    found = []
    for values in chart_values(chart):
        alike = (
            at for at in range(len(simple.columns))
            if len(simple.rows) >= count and [number_of(row[at]) for row in simple.rows[:count]] == values
        )  # fmt: skip
        found.append(next(alike, -1))
    return found if found and -1 not in found else []


def waterfall(values: Sequence[float | None]) -> list[tuple[float, ...]]:
    """What each step of a bridge stands on, and its height as total, rise or fall; nothing where a level is below 0."""
    steps = [value or 0.0 for value in values]
    out: list[tuple[float, ...]] = []
    level = 0.0
    for at, step in enumerate(steps):
        is_total = at in (0, len(steps) - 1)
        before, level = (0.0, step) if is_total else (level, level + step)
        if min(before, level) < 0:
            return []
        height = abs(level - before)
        out.append((
            0.0 if is_total else min(before, level), height if is_total else 0.0,
            height if not is_total and step > 0 else 0.0, height if not is_total and step < 0 else 0.0,
        ))  # fmt: skip
    return out


def simple_table(table: Table) -> Table:
    """The table with each part of a compound in a column of its own: nodes and type instead of `4 x p4d`."""
    columns: list[Column] = []
    for column in table.columns:
        for at, (label, unit) in enumerate(style_of(column.unit).parts or (("", column.unit),)):
            columns.append(Column(f"{column.key}_{at}" if at else column.key, label or column.label, unit))
    rows = []
    for row in table.rows:
        cells: list[Value] = []
        for column, value in zip(table.columns, row, strict=False):
            count = len(style_of(column.unit).parts)
            if not count:
                cells.append(value)
            elif isinstance(value, tuple):
                cells += [*value[:count], *[None] * (count - len(value))]
            else:
                cells += [value, *[None] * (count - 1)]
        rows.append(tuple(cells))
    kept = [at for at in range(len(columns)) if not rows or any(_filled(row[at : at + 1]) for row in rows)]
    return Table(
        table.key,
        table.title,
        tuple(columns[at] for at in kept),
        tuple(tuple(row[at] for at in kept if at < len(row)) for row in rows),
        table.note,
    )


def _filled(cell: Sequence[object]) -> bool:
    return bool(cell) and cell[0] not in (None, "")
