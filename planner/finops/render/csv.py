"""A review as CSV in long form: one row per value, safe to open in a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from planner.finops.review.model import Chart, Review, Section, Table, Value
from planner.render.csv import Cell, csv_text
from planner.render.plain import plain_value

COLUMNS = ("month", "currency", "section", "table", "row", "column", "value", "unit", "status", "reason")
_Row = dict[str, Cell]


def render(review: Review, *, width: int = 100, color: bool = False) -> str:
    """Render a review as CSV with a header; `table` is `text`, `figures`, or the key of a table or chart."""
    del width, color  # data formats are always complete
    head: _Row = {"month": review.month, "currency": review.currency}
    return csv_text(COLUMNS, ({**head, **row} for row in _rows(review)))


def _rows(review: Review) -> Iterator[_Row]:
    yield _text("review", 1, "verdict", review.verdict)
    for number, source in enumerate(review.sources, start=1):
        yield _text("review", number, "source", source)
    for section in review.sections:
        yield from _section(section)


def _text(section: str, row: int, column: str, text: str) -> _Row:
    return {
        "section": section,
        "table": "text",
        "row": row,
        "column": column,
        "value": text,
        "unit": "text",
        "status": "ok",
    }


def _section(section: Section) -> Iterator[_Row]:
    yield {
        **_text(section.key, 1, "title", section.title),
        "status": section.status,
        "reason": section.reason,
    }
    for number, sentence in enumerate(section.sentences, start=1):
        yield _text(section.key, number, "sentence", sentence)
    for figure in section.figures:
        yield {
            "section": section.key,
            "table": "figures",
            "row": figure.key,
            "column": "value",
            "value": _cell(figure.value),
            "unit": figure.unit,
            "status": figure.status,
            "reason": figure.reason,
        }
    for table in section.tables:
        yield from _table(section.key, table)
    for chart in section.charts:
        yield from _chart(section.key, chart)


def _table(section: str, table: Table) -> Iterator[_Row]:
    for number, row in enumerate(table.rows, start=1):
        for column, value in zip(table.columns, row, strict=False):
            yield {
                "section": section,
                "table": table.key,
                "row": number,
                "column": column.key,
                "value": _cell(value),
                "unit": column.unit,
                "status": "ok",
            }


def _chart(section: str, chart: Chart) -> Iterator[_Row]:
    for name, values in chart.series:
        for label, value in zip_longest(chart.labels, values[: len(chart.labels)]):
            yield {
                "section": section,
                "table": chart.key,
                "row": label,
                "column": name,
                "value": _cell(value),
                "unit": chart.unit,
                "status": "ok",
            }


def _cell(value: Value) -> Cell:
    plain = plain_value(value)
    return plain if isinstance(plain, str | int | float) else None
