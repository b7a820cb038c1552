"""Answers other than plans as text: one document, one set of values and one table serve all formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from planner.records import record
from planner.render.document import Document

if TYPE_CHECKING:
    from planner.render.model import Cell


@record(frozen=True)
class Report:
    """What a command found.

    Attributes:
        document: what people read (table, md).
        values: what programs read (json, yaml): plain values with units in the key names; `schema_version` and
            `planner_version` are added.
        columns, rows: what spreadsheets read (csv).
        schema_version: version of `values`.
    """

    document: Document
    values: Mapping[str, Any]
    columns: Sequence[str]
    rows: Sequence[Mapping[str, Cell]]
    schema_version: int = 1


def render_report(report: Report, fmt: str, *, width: int = 100, color: bool = False) -> str:
    """Render a report as one of `REPORT_FORMATS`; the text ends in one newline.

    Args:
        report: the answer.
        fmt: a name in `REPORT_FORMATS`.
        width: columns that no line of a text layout may exceed.
        color: whether terminal colour codes may be used.

    Raises:
        ValueError: there is no such format.
    """
    if fmt not in REPORT_FORMATS:
        raise ValueError(f"no output format {fmt!r}; there are {', '.join(REPORT_FORMATS)}")
    if fmt != "table":
        return _WRITERS[fmt](report)
    from planner.render.table import render_document

    return render_document(report.document, width=width, color=color)


def _values(report: Report) -> dict[str, Any]:
    from planner.render.plain import plain_value
    from planner.version import __version__

    head = {"schema_version": report.schema_version, "planner_version": __version__}
    return {**head, **{str(key): plain_value(value) for key, value in report.values.items()}}


def _json(report: Report) -> str:
    import json

    return json.dumps(_values(report), indent=2, sort_keys=True, allow_nan=False) + "\n"


def _csv(report: Report) -> str:
    from planner.render.csv import csv_text

    return csv_text(report.columns, report.rows)


def _yaml(report: Report) -> str:
    import yaml

    return yaml.safe_dump(_values(report), sort_keys=True, width=100, default_flow_style=False)


def _md(report: Report) -> str:
    from planner.render.md import render_document

    return render_document(report.document)


_WRITERS: dict[str, Callable[[Report], str]] = {"json": _json, "csv": _csv, "yaml": _yaml, "md": _md}
REPORT_FORMATS = ("table", *_WRITERS)
