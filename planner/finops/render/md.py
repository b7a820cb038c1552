"""A review as Markdown for a pull request, a chat or a wiki; hostile text is disarmed."""

from __future__ import annotations

from planner.finops.render.document import chart_cells, made_by, status_words
from planner.finops.render.values import cells, column_label, figure_text, is_numeric, tidy
from planner.finops.review.model import Chart, Review, Section, Table
from planner.render.md import escape

MAX_ROWS = 15
_MAX_CHART_ROWS = 12


def render(review: Review, *, width: int = 100, color: bool = False) -> str:
    """Render a review as GitHub-flavoured Markdown."""
    del width, color  # whoever shows it wraps and colours
    lines = [f"# Cloud cost review {escape(review.month)}", "", f"**{_inline(review.verdict)}**", ""]
    for section in review.sections:
        lines += _section(section, review.currency)
    lines += [
        "---",
        "",
        *(f"- {_inline(source)}" for source in review.sources),
        f"- {_inline(made_by(review))}",
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _inline(text: str) -> str:
    return escape(tidy(text)) or "\N{EN DASH}"


def _section(section: Section, currency: str) -> list[str]:
    lines = [f"## {_inline(section.title)}", ""]
    said = status_words(section.status, section.reason)
    lines += [f"> \N{WARNING SIGN} **{_inline(said)}**", ""] if said else []
    for sentence in section.sentences:
        lines += [_inline(sentence), ""]
    if section.figures:
        rows = []
        for figure in section.figures:
            note = status_words(figure.status, figure.reason)
            rows.append([tidy(figure.label), figure_text(figure, currency), note])
        noted = any(row[2] for row in rows)
        count = 3 if noted else 2
        lines += _grid(["figure", "value", "note"][:count], [row[:count] for row in rows], "lrl"[:count])
    for chart in section.charts:
        lines += _chart(chart, currency)
    for table in section.tables:
        lines += _table(table, currency)
    return lines


def _grid(header: list[str], rows: list[list[str]], align: str) -> list[str]:
    marks = ["---:" if side == "r" else "---" for side in align]
    body = [[_inline(cell) for cell in row] for row in rows]
    table = [[escape(tidy(name)) for name in header], marks, *body]
    return [*(f"| {' | '.join(row)} |" for row in table), ""]


def _table(table: Table, currency: str) -> list[str]:
    if not table.columns:
        return []
    lines = [f"### {_inline(table.title)}", ""]
    if table.rows:
        align = "".join("r" if is_numeric(column.unit) else "l" for column in table.columns)
        header = [column_label(column, currency) for column in table.columns]
        lines += _grid(header, cells(table, currency, MAX_ROWS), align)
    else:
        lines += ["No rows.", ""]
    if len(table.rows) > MAX_ROWS:
        lines += [f"{len(table.rows) - MAX_ROWS:,} more rows are in the CSV, JSON and XLSX forms.", ""]
    return [*lines, *([_inline(table.note), ""] if table.note else [])]


def _chart(chart: Chart, currency: str) -> list[str]:
    """What a chart says; the values too where they are few."""
    lines = [f"### {_inline(chart.title)}", "", *([_inline(chart.alt), ""] if chart.alt else [])]
    if chart.kind in ("lines", "fan") or not 0 < len(chart.labels) <= _MAX_CHART_ROWS or not chart.series:
        return lines if chart.alt else []
    rows = [list(row) for row in chart_cells(chart, currency)]
    names = [tidy(name) or "value" for name, _ in chart.series]
    return [*lines, *_grid(["", *names], rows, "l" + "r" * len(names))]
