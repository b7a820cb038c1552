"""A review as data: sections of sentences, figures, tables and charts of the one answer model."""

from __future__ import annotations

from datetime import datetime

from planner.records import record
from planner.render.model import Chart, Column, Figure, Section, Status, Table, Unit, Value
from planner.render.presentable import Presentable

__all__ = ["Chart", "Column", "Figure", "Review", "Section", "Status", "Table", "Unit", "Value"]


@record(frozen=True)
class Review(Presentable):
    """The review of one month.

    Attributes:
        month: `2026-10`.
        currency: ISO 4217 of all money.
        verdict: one line: spend, against last month, budget and forecast.
        sections: in reading order: `sections/registry.py`; one that has nothing to say is there with a sentence why.
        sources: files read, with rows and FOCUS version.
        created: when.
        lines: the flat sheet of a workbook, to pivot; None where it was not requested.
        command: the `planner review` of this bill and month without its output options; empty for a bill without files.
    """

    REPORT = "planner.finops.review.report:review_answer"
    __repr__ = Presentable.__repr__

    month: str
    currency: str
    verdict: str
    sections: tuple[Section, ...]
    sources: tuple[str, ...]
    created: datetime
    planner_version: str
    command: str = ""
    lines: Table | None = None
