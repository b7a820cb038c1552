"""An answer as headed blocks of text: what the terminal and Markdown say, and in which order, is decided once here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.records import record
from planner.render.currency import currency_words
from planner.render.model import Answer, Chart, Column, Figure, Section, Table
from planner.render.units import (
    bare,
    cells,
    column_label,
    column_places,
    compact,
    is_numeric,
    number_of,
    placed,
    tidy,
    unit_words,
)
from planner.render.whole_amounts import amount_texts, figure_texts
from planner.version import __version__

_MAX_CHART_ROWS = 15
_AMOUNTS = frozenset(("money", "money_short", "span"))


@record(frozen=True)
class Facts:
    """Labelled values, one per row."""

    title: str
    rows: tuple[tuple[str, str], ...]
    detail: bool = False


@record(frozen=True)
class Grid:
    """Rows under a header; `align` holds `l` or `r` per column, `notes` stand below."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str
    notes: tuple[str, ...] = ()
    detail: bool = False
    total: bool = False  # the last row sums the others


@record(frozen=True)
class Notes:
    """Sentences, or a warning that must not be overlooked."""

    title: str
    items: tuple[str, ...]
    warning: bool = False
    detail: bool = False


@record(frozen=True)
class Bars:
    """Parts of a whole: label, amount and share (0..1) of each, drawn as bars where there is room."""

    title: str
    rows: tuple[tuple[str, str, float], ...]
    notes: tuple[str, ...] = ()
    detail: bool = False


Block = Facts | Grid | Notes | Bars
_MOST_SOURCES = 20  # as rows of a table in a page


@record(frozen=True)
class Document:
    """The verdict and what supports it. `detail` blocks may be folded where a format can fold.

    `front`: what fits on a screen; a terminal shows it in place of the blocks, other texts before them.
    """

    headline: str
    summary: tuple[str, ...]
    blocks: tuple[Block, ...]
    success: bool
    front: tuple[Block, ...] = ()


def build_document(answer: Answer) -> Document:
    """Return the answer as headed blocks, every section in its order."""
    behind, before = told_once(answer.behind), told_once(answer.front)
    blocks = [block for section in behind for block in section_blocks(section, answer.currency)]
    front = [block for section in before for block in section_blocks(section, answer.currency)]
    if answer.sources:
        shown, more = answer.sources[:_MOST_SOURCES], len(answer.sources) - _MOST_SOURCES
        rest = (f"and {more:,} more: -o json names them all",) if more > 0 else ()
        blocks.append(Notes("Sources", (*(tidy(source) for source in shown), *rest, made_by(answer))))
    return Document(answer.title, answer.summary, tuple(blocks), answer.success, tuple(front))


def made_by(answer: Answer) -> str:
    """When and by what the answer was made."""
    values = answer.values if isinstance(answer.values, dict) else {}
    version = tidy(values.get("planner_version", __version__))
    when = f" {answer.created:%Y-%m-%d %H:%M}" if answer.created is not None else ""
    return f"created{when} by planner {version}"


def status_words(status: str, reason: str) -> str:
    """`Withheld: reason`; empty where all is well."""
    if status == "ok":
        return ""
    words = tidy(reason)
    return f"{status.capitalize()}: {words}" if words else f"{status.capitalize()}."


def told_once(sections: Sequence[Section]) -> tuple[Section, ...]:
    """Sections of which each reason to withhold is said once: later ones name the section that says it."""
    first: dict[str, str] = {}
    out = []
    for section in sections:
        reason = section.reason if section.status == "withheld" else ""
        is_told = reason in first
        out.append(replace(section, reason=f'see "{tidy(first[reason])}"') if is_told else section)
        if reason and not is_told:
            first[reason] = section.title
    return tuple(out)


def section_blocks(section: Section, currency: str) -> list[Block]:
    """The blocks of one section: its sentences, figures, charts and tables."""
    title, blocks, detail = tidy(section.title), list[Block](), section.detail
    warning = status_words(section.status, section.reason)
    sentences = (*((warning,) if warning else ()), *(tidy(text) for text in section.sentences))
    if sentences:
        blocks.append(Notes(title, sentences, bool(warning) or section.warning, detail))
    figures = tuple(figure for figure in section.figures if not figure.checked)
    if figures:
        blocks.append(_figures(figures, "Figures" if sentences else title, currency, detail))
    for chart in section.charts:
        blocks += _chart(chart, tidy(chart.title) or title, currency, detail)
    for table in section.tables:
        blocks += _tables(table, title, currency, detail) if table.columns else []
    drawn = section.charts and all(chart.drawn_only for chart in section.charts)
    return blocks if blocks or drawn else [Notes(title, ("nothing to say",))]


def _figures(figures: Sequence[Figure], title: str, currency: str, detail: bool) -> Block:
    texts = figure_texts(figures, currency)
    if any(figure.words for figure in figures):
        return Facts(
            title, tuple(zip((tidy(figure.label) for figure in figures), texts, strict=True)), detail
        )
    rows = [
        (tidy(figure.label), text, status_words(figure.status, figure.reason) or tidy(figure.note))
        for figure, text in zip(figures, texts, strict=True)
    ]
    notes = ["", *(note for _, _, note in rows)]
    rows = [
        (label, value, "as above" if note and note == before else note)
        for (label, value, note), before in zip(rows, notes, strict=False)
    ]
    header, shown, align = without_empty(("figure", "value", "note"), rows, "lrl")
    return Grid(title, header, shown, align, detail=detail)


def _tables(table: Table, section_title: str, currency: str, detail: bool) -> list[Block]:
    """The grid, and below it what its rows say in columns that take no width of it, by the rows' numbers."""
    below = placed(table, "below")
    shown = placed(table, "cell")
    if not below.columns or not table.rows:
        return [_table(shown, section_title, currency, detail)]
    numbered = tuple((f"{n}. {tidy(row[0])}", *row[1:]) for n, row in enumerate(shown.rows, start=1))
    grid = _table(replace(shown, rows=numbered), section_title, currency, detail)
    items: list[str] = []
    for number, row in enumerate(cells(below, currency, table.shown), start=1):
        said = [(column.label, text) for column, text in zip(below.columns, row, strict=True) if text]
        items += [f"{tidy(label)}: {tidy(text)}" if at else f"{number}. {tidy(text)}"
                  for at, (label, text) in enumerate(said)]  # fmt: skip
    return [grid, Notes("In detail", tuple(items), detail=detail)] if items else [grid]


def _table(table: Table, section_title: str, currency: str, detail: bool) -> Block:
    title, notes = tidy(table.title) or section_title, note_lines(table)
    if not table.rows:
        return Notes(title, ("no rows", *notes), detail=detail)
    header = [_header(column, currency) for column in table.columns]
    first = table.rows[: table.shown]
    more = len(table.rows) - len(first)
    if more and table.total:
        first = (*first[:-1], table.rows[-1])
    rows = cells(replace(table, rows=first), currency)
    align = "".join("r" if is_numeric(column.unit) else "l" for column in table.columns)
    names, body, sides = without_empty(header, rows, align)
    if more:
        notes = (f"{more:,} more {'row' if more == 1 else 'rows'}: -o csv, json or xlsx has them all", *notes)
    amounts = any(column.unit in _AMOUNTS for column in table.columns)
    return Grid(
        _titled(title, currency_words(currency) if amounts else ""),
        names,
        body,
        sides,
        notes,
        detail,
        table.total,
    )


def undrawn_figures(section: Section) -> list[Figure]:
    """Figures beside pictures: none that only proves another one, none that a waterfall draws.

    Of a drawn one it is shown what its section does not say already: why it alone is flagged or withheld.
    """
    bridges = [chart for chart in section.charts if chart.kind == "bridge" and chart.drawn_only]
    drawn = {label for chart in bridges for label in chart.labels}
    said = ("", section.reason)
    return [
        one for one in section.figures if not (one.checked or (one.label in drawn and one.reason in said))
    ]


def note_lines(table: Table) -> tuple[str, ...]:
    """The sentences below a table."""
    notes = (table.note,) if isinstance(table.note, str) else table.note
    return tuple(said for text in notes if (said := tidy(text)))


def _header(column: Column, currency: str) -> str:
    """At a terminal there is no room for the currency in each header: the title has it."""
    label = tidy(column.label)
    return label if column.unit in _AMOUNTS or not label else column_label(column, currency)


def _titled(title: str, unit: str) -> str:
    return f"{title}, {tidy(unit)}" if unit else title


def _chart(chart: Chart, title: str, currency: str, detail: bool) -> list[Block]:
    """A short chart as bars or a table; of a long one what it says."""
    values, captions = chart_values(chart), (tidy(chart.alt),) if chart.alt else ()
    if chart.drawn_only:
        return []
    if (
        not chart.labels
        or len(chart.labels) > _MAX_CHART_ROWS
        or chart.kind in ("lines", "fan", "steps", "dots")
    ):
        return [Notes(title, captions, detail=detail)] if captions else []
    drawn = [value for value in values[0] if value is not None] if values else []
    whole = max(drawn, default=0.0) if chart.kind == "funnel" else chart.shared_whole
    if whole > 0 and (chart.kind == "parts" or (chart.kind == "funnel" and min(drawn) >= 0)):
        rows = tuple(
            (tidy(label), text, (value or 0.0) / whole)
            for label, value, text in zip(
                chart.labels, values[0], _amounts(values[0], chart, currency), strict=True
            )
        )
        return [Bars(title, rows, captions, detail)]
    names = [tidy(name) or "value" for name, _ in chart.series]
    title = _titled(title, unit_words(chart.unit, currency))
    return [Grid(title, ("", *names), chart_cells(chart, currency), "l" + "r" * len(names), captions, detail)]


def _amounts(values: Sequence[float | None], chart: Chart, currency: str) -> list[str]:
    known = [value for value in values if value is not None]
    if chart.kind == "parts":
        texts = amount_texts(chart.unit, currency, known)
    else:
        behind = unit_words(chart.unit, currency)
        texts = {value: f"{compact(value, chart.unit)} {behind}".strip() for value in known}
    return ["unknown" if value is None else texts[value] for value in values]


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
    by_series = []
    for _, values in chart.series:
        numbers = [number_of(value) for value in values[:count]]
        by_series.append([*numbers, *[None] * (count - len(numbers))])
    return by_series


def without_empty(
    header: Sequence[str], rows: Sequence[Sequence[str]], align: str
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], str]:
    """Drop the columns in which every cell is empty, such as zones where no price depends on one."""
    shown = [i for i in range(len(header)) if any(row[i] for row in rows)]
    return (
        tuple(header[i] for i in shown),
        tuple(tuple(row[i] for i in shown) for row in rows),
        "".join(align[i] for i in shown),
    )
