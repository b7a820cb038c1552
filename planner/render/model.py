"""An answer as data: titled sections of figures, tables, charts and sentences, each with a stable key and typed values.

A question's room builds one `Answer`; every format is made of it. What a value looks like is decided by its unit in
`planner.render.units`, never where the answer is built, and no format reads another one's text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from planner.records import record
from planner.version import __version__

Unit = Literal[
    "money", "money_per_hour", "unit_price", "ratio", "count", "hours", "days", "date", "text", "quantity",
    "usd", "usd_change", "usd_rounded", "usd_price", "usd_marked", "price", "hours_change", "number",
    "seconds", "gib", "gb", "moment", "measure", "cluster", "devices", "place", "option",
    "percent_change", "moment_short", "of", "span", "chance", "money_short", "interval", "tenths",
    "three", "three_span", "usd_per_hour", "usd_known", "usd_change_known",
]  # fmt: skip
Status = Literal["ok", "flagged", "withheld"]
Scalar = float | int | str | Decimal | None
Value = Scalar | tuple[Scalar, ...]
"""None: not known. An empty text: does not apply. A tuple: the parts of a compound unit, such as nodes and type."""
ALL_ROWS = 1 << 30
Cell = str | int | float | Decimal | None
"""A value of the flat form (csv)."""


@record(frozen=True)
class Figure:
    """One value with its meaning.

    Attributes:
        key: stable name for programs, unit included (`esr_list_ratio`).
        label: for people.
        value: None where withheld or unknown.
        unit: how it is formatted; `money` is in the answer's currency, `ratio` is 0..1.
        status, reason: `flagged` and `withheld` say why.
        words: what people read in place of the bare value: the same value with what surrounds it, such as its interval.
        note: what people read beside it.
        trend: the values that led to it, oldest first, itself the last; a page draws them small. None leaves a gap.
        checked: whether it only proves another one, so that people need not read it; data formats have it.
    """

    key: str
    label: str
    value: Value
    unit: Unit
    status: Status = "ok"
    reason: str = ""
    words: str = ""
    note: str = ""
    trend: tuple[float | None, ...] = ()
    checked: bool = False


@record(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        digits: in place of the usual number of digits of the unit.
        place: `cell`: in the table; `below`: people read it below the table or behind a row, where it takes no width;
            `data`: for programs, such as the id of what a row names. Data formats and workbooks have all of them.
        links: cells name files or addresses that a page leads to.
    """

    key: str
    label: str
    unit: Unit
    digits: int | None = None
    place: Literal["cell", "below", "data"] = "cell"
    links: bool = False


@record(frozen=True)
class Table:
    """Rows in the order of the columns.

    Attributes:
        title: empty where the section's title is enough.
        note: one sentence or several that stand below the table.
        shown: rows that texts show, pages fewer where there is no room. Workbooks hold all.
        total: whether the last row sums the others.
        picked: row that a slider on a page stands on at first, so that one row is read at a time; None: no slider. The
            first column names the slider's positions.
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str | tuple[str, ...] = ""
    shown: int = 20
    total: bool = False
    picked: int | None = None


@record(frozen=True)
class Chart:
    """A static chart.

    Attributes:
        kind: `bridge` (start, steps, end), `bars`, `lines`, `fan` (line with band), `funnel` (falling levels), `parts`
            (of a whole), `steps` (a staircase over a numeric axis), `spans` (from start to end, one row a label),
            `dots` (values with whiskers), `stack` (columns of parts by day).
        labels: x values as text (dates ISO), or the names of steps, parts or rows.
        series: name -> values, one per label; None leaves a gap. bridge: one series of signed steps, the first and
            last being totals. fan: `actual`, `expected`, `low`, `high`. spans: `start`, `end`. steps: `x`, then values.
            dots: `NAME`, `NAME low`, `NAME high` of every NAME.
        unit: of the values; of `spans` and of the axis of `steps` hours.
        alt: what the chart says, for screen readers.
        whole: of `parts`: what they are parts of; by default their sum.
        marks: values at which a line stands.
        drawn_only: a table of the section says the same, so that texts leave the chart out.
        axis: what the numeric axis of `steps` and `dots` counts.
        small: whether a page may set it beside others.
        named: points of `steps` that are pointed out: place on the axis, value, name.
    """

    key: str
    title: str
    kind: Literal["bridge", "bars", "lines", "fan", "funnel", "parts", "steps", "spans", "dots", "stack"]
    labels: tuple[str, ...]
    series: tuple[tuple[str, tuple[float | None, ...]], ...]
    unit: Unit
    alt: str
    whole: float | None = None
    marks: tuple[float, ...] = ()
    drawn_only: bool = False
    axis: str = ""
    small: bool = False
    named: tuple[tuple[float, float, str], ...] = ()

    @property
    def shared_whole(self) -> float:
        """What `parts` are shares of; 0 where refunds leave one of them larger than the whole: none has a share."""
        drawn = [value for value in self.series[0][1] if value is not None] if self.series else []
        whole = self.whole or sum(drawn)
        return whole if max(drawn, default=0.0) <= 1.01 * whole else 0.0


@record(frozen=True)
class Section:
    """One part of the answer.

    Attributes:
        key: stable name.
        sentences: what is said first.
        status, reason: `flagged` and `withheld` say why.
        warning: whether the sentences must not be overlooked.
        detail: whether the section supports the answer instead of being part of it; formats may fold it.
    """

    key: str
    title: str
    sentences: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    status: Status = "ok"
    reason: str = ""
    warning: bool = False
    detail: bool = False


@record(frozen=True)
class Answer:
    """What a command answers.

    Attributes:
        topic: what was asked, such as `Cost by deadline`: the kicker of a page, the title of a workbook.
        title: the verdict, in one line.
        summary: what follows the verdict.
        sections: in reading order.
        values: the machine form (json, yaml): plain values with units in the key names.
        columns, rows: the flat form (csv).
        success: whether the answer is what was hoped for.
        currency: ISO 4217 of values in `money`.
        sources: files and data the answer rests on.
        created: when the answer was made, where that is part of it.
        focus: makes the rows of FOCUS, of answers that have them.
        front: what fits on a screen, before the sections; a terminal shows it, and the summary, in their place.
        brief: what a message for a chat says after the title: each section a label and its sentences; empty where the
            answer has none.
        flat: the sheet of a workbook to pivot, in place of `rows`; one without columns: no such sheet.
        attached: name of the file in which a page hands out `values` as JSON; empty where it does not.
        folder: that a page is written to, from where its links lead to files; empty: where the command runs.
    """

    topic: str
    title: str
    summary: tuple[str, ...]
    sections: tuple[Section, ...]
    values: Mapping[str, Any] | Sequence[Any]
    columns: Sequence[str] = ()
    rows: Sequence[Mapping[str, Cell]] = ()
    success: bool = True
    currency: str = "USD"
    sources: tuple[str, ...] = ()
    created: datetime | None = None
    focus: Callable[[], str] | None = None
    front: tuple[Section, ...] = ()
    attached: str = ""
    brief: tuple[Section, ...] = ()
    flat: Table | None = None
    folder: str = ""

    @property
    def behind(self) -> tuple[Section, ...]:
        """The sections that the screen does not show already; one that it shows in brief says so in its title.

        Warnings that it says already are not said again.
        """
        titles = {shown.title for shown in self.front}
        said = {sentence for shown in self.front if shown.warning for sentence in shown.sentences}
        rest = (_unsaid(one, said) for one in self.sections if all(one is not shown for shown in self.front))
        return tuple(
            replace(one, title=f"{one.title}, in full") if one.title in titles else one
            for one in rest
            if one is not None
        )


def _unsaid(section: Section, said: set[str]) -> Section | None:
    """Warnings without what was said before; None where nothing else is in the section."""
    if not section.warning or said.isdisjoint(section.sentences):
        return section
    left = tuple(sentence for sentence in section.sentences if sentence not in said)
    return (
        replace(section, sentences=left)
        if left or section.figures or section.tables or section.charts
        else None
    )


def versioned(values: Mapping[str, Any], schema_version: int = 1) -> dict[str, Any]:
    """`values` with the versions of their shape and of this program."""
    return {"schema_version": schema_version, "planner_version": __version__, **values}


def facts(
    key: str, title: str, rows: Sequence[tuple[str, str, Value, Unit, str]], *, detail: bool = False
) -> Section:
    """A section of figures with words: (key, label, value, unit, words) each."""
    figures = tuple(Figure(name, label, value, unit, words=words) for name, label, value, unit, words in rows)
    return Section(key, title, figures=figures, detail=detail)


def next_steps(*commands: str) -> Section:
    """The end of an answer: what a person asks next, as it is typed; FILE is what this answer was made of."""
    return Section("next", "Next", commands)


def table_section(
    key: str, title: str, columns: Sequence[Column], rows: Sequence[Sequence[Value]], notes: Sequence[str] = (), *,
    shown: int = ALL_ROWS, total: bool = False, detail: bool = False, charts: tuple[Chart, ...] = (),
) -> Section:  # fmt: skip
    """A section of one table."""
    made = Table(key, "", tuple(columns), tuple(map(tuple, rows)), tuple(notes), shown, total)
    return Section(key, title, tables=(made,), charts=charts, detail=detail)
