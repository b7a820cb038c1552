"""Parts of an answer in a notebook: pictures and tables that need no plotting library and no network."""

from __future__ import annotations

from planner.records import record
from planner.render.charts import WIDE_PX, draw
from planner.render.document import Document, note_lines, section_blocks, status_words, undrawn_figures
from planner.render.model import Answer, Chart, Section, Table
from planner.render.svg import INK, MUTED, escaped, tag
from planner.render.table import render_document
from planner.render.units import cells, column_label, is_numeric, placed, tidy
from planner.render.whole_amounts import figure_texts

MAX_ROWS = 30


@record(frozen=True)
class Shown:
    """A part of an answer that a notebook draws, and a terminal prints."""

    section: Section
    currency: str

    def _repr_html_(self) -> str:
        section = self.section
        parts = [tag("p", {"style": f"color:{INK};font-weight:600"}, escaped(_warning(section)))]
        parts = parts if section.status != "ok" else []
        parts += [tag("p", {}, escaped(text)) for text in section.sentences]
        if figures := undrawn_figures(section):
            rows = [
                [tidy(figure.label), text, status_words(figure.status, figure.reason)]
                for figure, text in zip(figures, figure_texts(figures, self.currency), strict=True)
            ]
            parts.append(_grid(["figure", "value", ""], rows, [False, True, False]))
        parts += [_picture(chart, self.currency) for chart in section.charts]
        parts += [_table(table, self.currency) for table in section.tables if table.columns]
        return tag("div", {"style": "max-width:960px"}, *parts)

    def __repr__(self) -> str:
        """The same as text."""
        blocks = tuple(section_blocks(self.section, self.currency))
        return render_document(
            Document(tidy(self.section.title), (), blocks, success=True), width=100, color=False
        )


def show(part: Section | Table | Chart, currency: str) -> Shown:
    """What a notebook shows as the value of a cell.

    Args:
        part: a section of an answer, one table or one chart.
        currency: ISO 4217 of its money.
    """
    if isinstance(part, Table):
        return Shown(Section(part.key, part.title, tables=(part,)), currency)
    if isinstance(part, Chart):
        return Shown(Section(part.key, part.title, charts=(part,)), currency)
    return Shown(part, currency)


def _warning(section: Section) -> str:
    return status_words(section.status, section.reason)


def _picture(chart: Chart, currency: str) -> str:
    title = tag("div", {"style": "font-weight:600;margin-top:1em"}, escaped(chart.title))
    picture = tag("div", {"style": "background:#fff"}, draw(chart, currency=currency, width_px=WIDE_PX))
    caption = tag("div", {"style": f"color:{MUTED};font-size:smaller"}, escaped(chart.alt))
    return title + picture + caption


def _table(table: Table, currency: str) -> str:
    below, table = placed(table, "below"), placed(table, "cell")
    header = [column_label(column, currency) for column in table.columns]
    numeric = [is_numeric(column.unit) for column in table.columns]
    title = tag("div", {"style": "font-weight:600;margin-top:1em"}, escaped(table.title))
    more = len(table.rows) - MAX_ROWS
    notes = [f"{more:,} more rows"] if more > 0 else []
    notes += note_lines(table)
    captions = "".join(
        tag("div", {"style": f"color:{MUTED};font-size:smaller"}, escaped(note)) for note in notes
    )
    rows = cells(table, currency, MAX_ROWS)
    said = [
        [
            f"{tidy(column.label)}: {tidy(text)}"
            for column, text in zip(below.columns, row, strict=True)
            if text
        ]
        for row in (cells(below, currency, MAX_ROWS) if below.columns else [])
    ]
    return title + _grid(header, rows, numeric, said) + captions


def _grid(
    header: list[str], rows: list[list[str]], numeric: list[bool], below: list[list[str]] | None = None
) -> str:
    """A table; `below`: what is said of each row, under it."""
    kept = [at for at in range(len(header)) if not rows or any(row[at] for row in rows)]
    header, numeric = [header[at] for at in kept], [numeric[at] for at in kept]
    rows = [[row[at] for at in kept] for row in rows]
    sides = [{"style": f"text-align:{'right' if number else 'left'}"} for number in numeric]
    head = [tag("th", side, escaped(name) or "\u00a0") for name, side in zip(header, sides, strict=True)]
    body = []
    for row, lines in zip(rows, below or [[]] * len(rows), strict=True):
        texts = [tag("td", side, escaped(cell) or "\u00a0") for cell, side in zip(row, sides, strict=True)]
        body.append(tag("tr", {}, *texts))
        if lines:
            style = {"colspan": str(len(header)), "style": f"text-align:left;color:{MUTED};font-size:smaller"}
            body.append(tag("tr", {}, tag("td", style, *(tag("div", {}, escaped(line)) for line in lines))))
    return tag("table", {}, tag("thead", {}, tag("tr", {}, *head)), tag("tbody", {}, *(body or [""])))


def show_answer(answer: Answer) -> str:
    """A whole answer as HTML for a notebook: its verdict, then its sections; those of detail are folded.

    Args:
        answer: what a question answered.
    """
    parts = [tag("p", {"style": f"color:{INK};font-weight:600"}, escaped(tidy(answer.title)))]
    parts += [tag("p", {}, escaped(tidy(text))) for text in answer.summary]
    for section in (*answer.front, *answer.behind):
        body = Shown(section, answer.currency)._repr_html_()
        heading = escaped(tidy(section.title))
        if section.detail:
            parts.append(tag("details", {}, tag("summary", {}, heading), body))
        else:
            parts += [tag("h4", {}, heading), body]
    return tag("div", {"style": "max-width:960px"}, *parts)
