"""A review as the document that the terminal format lays out: the same words, charts as tables."""

from __future__ import annotations

from planner.finops.currency import currency_words
from planner.finops.render.values import (
    bare,
    cells,
    column_label,
    column_places,
    compact,
    figure_text,
    is_numeric,
    number_of,
    tidy,
    unit_words,
)
from planner.finops.review.model import Chart, Review, Section, Table
from planner.render.document import Bars, Block, Document, Grid, Notes, without_empty

MAX_ROWS = 20
_MAX_CHART_ROWS = 15


def build_document(review: Review) -> Document:
    """Return the review as headed blocks, every section in its order."""
    blocks: list[Block] = []
    for section in review.sections:
        blocks += section_blocks(section, review.currency)
    blocks.append(Notes("Sources", (*(tidy(source) for source in review.sources), made_by(review))))
    held = [section for section in review.sections if section.status != "ok"]
    names = ", ".join(f"{tidy(section.title)} ({section.status})" for section in held)
    summary = (f"Read with care: {names}",) if held else ()
    return Document(f"{tidy(review.month)}: {tidy(review.verdict)}", summary, tuple(blocks), success=not held)


def made_by(review: Review) -> str:
    """When and by what the review was made."""
    return f"made {review.created:%Y-%m-%d %H:%M} by planner {tidy(review.planner_version)}"


def status_words(status: str, reason: str) -> str:
    """`Withheld: reason`; empty where all is well."""
    if status == "ok":
        return ""
    said = tidy(reason)
    return f"{status.capitalize()}: {said}" if said else f"{status.capitalize()}."


def section_blocks(section: Section, currency: str) -> list[Block]:
    """The blocks of one section: its sentences, figures, charts and tables."""
    title, blocks = tidy(section.title), list[Block]()
    warning = status_words(section.status, section.reason)
    said = (*((warning,) if warning else ()), *(tidy(text) for text in section.sentences))
    if said:
        blocks.append(Notes(title, said, level="warning" if warning else "info"))
    if section.figures:
        blocks.append(_figures(section, "Figures" if said else title, currency))
    for chart in section.charts:
        blocks += _chart(chart, currency)
    blocks += [_table(table, currency) for table in section.tables if table.columns]
    return blocks or [Notes(title, ("nothing to say",))]


def _figures(section: Section, title: str, currency: str) -> Block:
    rows = [
        (tidy(one.label), figure_text(one, currency), status_words(one.status, one.reason))
        for one in section.figures
    ]
    notes = ["", *(note for _, _, note in rows)]
    rows = [
        (label, value, "as above" if note and note == before else note)
        for (label, value, note), before in zip(rows, notes, strict=False)
    ]
    header, shown, align = without_empty(("figure", "value", "note"), rows, "lrl")
    return Grid(title, header, shown, align)


def _table(table: Table, currency: str) -> Block:
    if not table.rows:
        return Notes(tidy(table.title), ("no rows", *((tidy(table.note),) if table.note else ())))
    units = {column.unit for column in table.columns}
    header = tuple(
        tidy(column.label) or tidy(column.key) if column.unit == "money" else column_label(column, currency)
        for column in table.columns
    )
    rows = tuple(tuple(row) for row in cells(table, currency, MAX_ROWS))
    align = "".join("r" if is_numeric(column.unit) else "l" for column in table.columns)
    notes = (tidy(table.note),) if table.note else ()
    if len(table.rows) > MAX_ROWS:
        notes = (f"{len(table.rows) - MAX_ROWS:,} more rows: -o csv, json or xlsx has them all", *notes)
    return Grid(
        _titled(table.title, currency_words(currency) if "money" in units else ""), header, rows, align, notes
    )


def _titled(title: str, unit: str) -> str:
    """The title with the unit of what stands below it: at a terminal there is no room for it in each header."""
    return f"{tidy(title)}, {tidy(unit)}" if unit else tidy(title)


def _chart(chart: Chart, currency: str) -> list[Block]:
    """A short chart as bars or a table; of a long one what it says."""
    title, values = tidy(chart.title), chart_values(chart)
    told = (tidy(chart.alt),) if chart.alt else ()
    if not chart.labels or len(chart.labels) > _MAX_CHART_ROWS or chart.kind in ("lines", "fan"):
        return [Notes(title, told)] if told else []
    known = [value for value in values[0] if value is not None] if values else []
    if chart.kind == "funnel" and known and min(known) >= 0 and max(known) > 0:
        unit = unit_words(chart.unit, currency)
        rows = tuple(
            (
                tidy(label),
                "unknown" if value is None else f"{compact(value, chart.unit)} {unit}".strip(),
                part,
            )
            for label, value in zip(chart.labels, values[0], strict=True)
            for part in ((value or 0.0) / max(known),)
        )
        return [Bars(title, rows, told)]
    names = [tidy(name) or "value" for name, _ in chart.series]
    title = _titled(chart.title, unit_words(chart.unit, currency))
    return [Grid(title, ("", *names), chart_cells(chart, currency), "l" + "r" * len(names), told)]


def chart_cells(chart: Chart, currency: str) -> tuple[tuple[str, ...], ...]:
    """One row per label: the label and the value of each series, money with the same decimals in a column."""
    columns = [
        [
            bare(value, chart.unit, currency, places=column_places(values, chart.unit, currency))
            for value in values
        ]
        for values in chart_values(chart)
    ]
    return tuple(zip((tidy(label) for label in chart.labels), *columns, strict=True))


def chart_values(chart: Chart) -> list[list[float | None]]:
    """Values of every series, one per label."""
    count = len(chart.labels)
    found = []
    for _, values in chart.series:
        known = [number_of(value) for value in values[:count]]
        found.append([*known, *[None] * (count - len(known))])
    return found
