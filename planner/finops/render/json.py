"""A review as JSON: every value with its key, unit and status; the shape is `review.v1.json` beside this file."""

from __future__ import annotations

import json
from typing import Any

from planner.finops.review.model import Chart, Review, Section, Table
from planner.render.plain import plain_value

SCHEMA_VERSION = 1


def render(review: Review, *, width: int = 100, color: bool = False) -> str:
    """Render a review as JSON with sorted keys; unknown numbers are null."""
    del width, color  # data formats are always complete
    return json.dumps(review_values(review), indent=1, sort_keys=True, allow_nan=False) + "\n"


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
        "note": table.note,
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
