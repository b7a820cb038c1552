"""A review as an answer: the shape of its machine form is `review.v1.json` beside this file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from planner.finops.review.brief import brief_sections
from planner.finops.review.model import Chart, Review, Section, Table, Value
from planner.render import render_answer
from planner.render.document import note_lines
from planner.render.model import Answer, Cell
from planner.render.plain import plain_value
from planner.render.units import tidy

SCHEMA_VERSION = 1
_NAMED = 2  # flagged sections; more are counted
COLUMNS = ("month", "currency", "section", "table", "row", "column", "value", "unit", "status", "reason")
_Row = dict[str, Cell]


def review_answer(review: Review) -> Answer:
    """The review in the one answer model."""
    held = [section for section in review.sections if section.status != "ok"]
    flagged = [section for section in held if section.status == "flagged"]
    named = held if len(flagged) <= _NAMED else [section for section in held if section.status != "flagged"]
    names = [f"{tidy(section.title)} ({section.status})" for section in named]
    names += [] if named is held else [f"{len(flagged)} sections (flagged)"]
    head: _Row = {"month": review.month, "currency": review.currency}
    return Answer(
        f"Cloud cost review {review.month}",
        tidy(review.verdict),
        _cautions(review, ", ".join(names)),
        review.sections,
        review_values(review),
        COLUMNS,
        [{**head, **row} for row in _rows(review)],
        success=not held,
        currency=review.currency,
        sources=review.sources,
        created=review.created,
        brief=brief_sections(review),
        flat=review.lines or Table("lines", "", (), ()),
    )


def _cautions(review: Review, held: str) -> tuple[str, ...]:
    """What stands below the verdict: sections that are held back, and checks of the data that fail."""
    failing = (s for s in review.sections if s.key == "quality" and not s.detail)
    said = tuple(f"Data quality: {tidy(sentence)}" for s in failing for sentence in s.sentences[:1])
    return ((f"Read with care: {held}",) if held else ()) + said


def render_review(review: Review, fmt: str, *, width: int = 100, color: bool = False) -> str | bytes:
    """Render a review; see `planner.render.render_answer`."""
    return render_answer(review_answer(review), fmt, width=width, color=color)


def review_values(review: Review) -> dict[str, Any]:
    """The review as plain values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "planner_version": review.planner_version,
        "month": review.month,
        "currency": review.currency,
        "verdict": review.verdict,
        "created": review.created.isoformat(),
        "sources": list(review.sources),
        "sections": [_section(section) for section in review.sections],
    }


def _section(section: Section) -> dict[str, Any]:
    return {
        "key": section.key,
        "title": section.title,
        "status": section.status,
        "reason": section.reason,
        "sentences": list(section.sentences),
        "figures": [
            {
                "key": figure.key,
                "label": figure.label,
                "value": plain_value(figure.value),
                "unit": figure.unit,
                "status": figure.status,
                "reason": figure.reason,
            }
            for figure in section.figures
        ],
        "tables": [_table(table) for table in section.tables],
        "charts": [_chart(chart) for chart in section.charts],
    }


def _table(table: Table) -> dict[str, Any]:
    return {
        "key": table.key,
        "title": table.title,
        "note": " ".join(note_lines(table)),
        "columns": [
            {"key": column.key, "label": column.label, "unit": column.unit} for column in table.columns
        ],
        "rows": plain_value(table.rows),
    }


def _chart(chart: Chart) -> dict[str, Any]:
    return {
        "key": chart.key,
        "title": chart.title,
        "kind": chart.kind,
        "unit": chart.unit,
        "alt": chart.alt,
        "labels": list(chart.labels),
        "series": [{"name": name, "values": plain_value(values)} for name, values in chart.series],
    }


def _rows(review: Review) -> Iterator[_Row]:
    yield _text("review", 1, "verdict", review.verdict)
    for number, source in enumerate(review.sources, start=1):
        yield _text("review", number, "source", source)
    for section in review.sections:
        yield from _section_rows(section)


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


def _section_rows(section: Section) -> Iterator[_Row]:
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
        yield from _table_rows(section.key, table)
    for chart in section.charts:
        yield from _chart_rows(section.key, chart)


def _table_rows(section: str, table: Table) -> Iterator[_Row]:
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


def _chart_rows(section: str, chart: Chart) -> Iterator[_Row]:
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
