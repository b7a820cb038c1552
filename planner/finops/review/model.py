"""A review as data: sections of sentences, figures, tables and charts. Renderers know these and no KPI."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from planner.records import record

Unit = Literal[
    "money", "money_per_hour", "unit_price", "ratio", "count", "hours", "days", "date", "text", "quantity"
]
Status = Literal["ok", "flagged", "withheld"]
Value = float | int | str | None


@record(frozen=True)
class Figure:
    """One number with its meaning.

    Attributes:
        key: stable name for programs, unit included (`esr_list_ratio`).
        label: for people.
        value: None where withheld or unknown.
        unit: how it is formatted; `money` is in the review's currency, `ratio` is 0..1.
        status, reason: `flagged` and `withheld` say why.
    """

    key: str
    label: str
    value: Value
    unit: Unit
    status: Status = "ok"
    reason: str = ""


@record(frozen=True)
class Column:
    """A column of a table."""

    key: str
    label: str
    unit: Unit


@record(frozen=True)
class Table:
    """Rows in the order of the columns; `note` stands below the table."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str = ""


@record(frozen=True)
class Chart:
    """A static chart.

    Attributes:
        kind: `bridge` (start, steps, end), `bars`, `lines`, `fan` (line with band), `funnel` (falling levels).
        labels: x values as text (dates ISO), or step names.
        series: name -> values, one per label; None leaves a gap. bridge: one series of signed steps, the first and
            last being totals. fan: `actual`, `expected`, `low`, `high`.
        alt: what the chart says, for screen readers.
    """

    key: str
    title: str
    kind: Literal["bridge", "bars", "lines", "fan", "funnel"]
    labels: tuple[str, ...]
    series: tuple[tuple[str, tuple[float | None, ...]], ...]
    unit: Unit
    alt: str


@record(frozen=True)
class Section:
    """One question of the review and its answer."""

    key: str
    title: str
    sentences: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    status: Status = "ok"
    reason: str = ""


@record(frozen=True)
class Review:
    """The review of one month.

    Attributes:
        month: `2026-10`.
        currency: ISO 4217 of all money.
        verdict: one line: spend, against last month, budget and forecast.
        sections: in reading order: quality, bridge, movers, commitments, gpu, allocation, anomalies, forecast,
            plan_vs_actual, actions; one that has nothing to say is there with a sentence why.
        sources: files read, with rows and FOCUS version.
        created: when.
    """

    month: str
    currency: str
    verdict: str
    sections: tuple[Section, ...]
    sources: tuple[str, ...]
    created: datetime
    planner_version: str
