"""One printable HTML page: nothing fetched, all text escaped, charts as SVG; a script only where there is a slider."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from planner.render.charts import NARROW_PX, PANEL_PX, WIDE_PX, draw
from planner.render.currency import NOT_STATED, UNKNOWN_CURRENCY
from planner.render.document import made_by, note_lines, status_words, told_once, undrawn_figures
from planner.render.json import render as render_json
from planner.render.links import address
from planner.render.model import Answer, Chart, Figure, Section, Table
from planner.render.svg import PALETTE, frame, rect
from planner.render.units import cells, column_label, figure_text, is_numeric, placed, show, tidy
from planner.render.whole_amounts import figure_texts

if TYPE_CHECKING:
    from jinja2 import Template

MAX_BYTES = 300_000  # without the attached JSON
MAX_ATTACHED_BYTES = 1_100_000  # of the attached JSON, encoded
# Rows per table, characters per text, and charts per section, in the order in which they are tried until the page is
# small enough; JSON, CSV and XLSX hold everything.
_LEVELS = ((60, 600, 12), (25, 300, 8), (12, 160, 4), (5, 80, 2), (3, 40, 1), (0, 20, 0))
_MAX_SECTIONS = 60
_ROOMY_COLUMNS, _DENSE_COLUMNS = 7, 11  # a table with more is set smaller, and smaller again
_PHONE_COLUMNS = 3  # of a table with more, a phone shows the cells of a row one below the other
_LONG = 28  # characters of a text that needs a wide column
_SHORT = 12  # of one that is not broken where columns are narrow
_TILE_WIDTH = 24  # characters of a figure's words that a tile has room for; longer ones are a list


def render(answer: Answer, *, width: int = 100, color: bool = False) -> str:
    """Render an answer as a page of at most `MAX_BYTES`, and the attached JSON of at most `MAX_ATTACHED_BYTES`."""
    del width, color  # a browser decides
    attachment = _attachment(answer)
    for level in _LEVELS:
        page = _page(answer, attachment, *level, shortened=level != _LEVELS[0] or _is_long(answer))
        if len(page.encode()) <= MAX_BYTES + len(attachment):
            return page
    return page


def _attachment(answer: Answer) -> str:
    """The JSON form as an address that holds its own content, so that it is saved without a script or a request."""
    if not answer.attached:
        return ""
    text = render_json(answer, width=0, color=False)
    address = f"data:application/json;base64,{base64.b64encode(text.encode()).decode()}"
    return address if len(address) <= MAX_ATTACHED_BYTES else ""


def _is_long(answer: Answer) -> bool:
    """Whether even the first level leaves more out than rows of tables, which say so themselves."""
    rows, _, charts = _LEVELS[0]
    return len(answer.front) + len(answer.behind) > _MAX_SECTIONS or any(
        len(section.charts) > charts or max(len(section.figures), len(section.sentences)) > rows
        for section in answer.sections
    )


def _page(answer: Answer, attachment: str, rows: int, length: int, charts: int, *, shortened: bool) -> str:
    cut = _cutter(length)
    shown = told_once((*answer.front, *answer.behind)[:_MAX_SECTIONS])
    style = _template("page.css")
    script = _template("page.js") if any(t.picked is not None for s in shown for t in s.tables) else ""
    view = {
        "style": _safe(style),
        "style_hash": _hash(style),
        "script": _safe(script),
        "script_hash": _hash(script),
        "topic": cut(answer.topic),
        "title": cut(answer.title),
        "success": answer.success,
        "summary": [cut(text) for text in answer.summary],
        "currency": cut(_money_words(answer)),
        "sections": [
            _section(section, number, answer, cut, rows, charts)
            for number, section in enumerate(shown, start=1)
        ],
        "sources": [cut(source) for source in answer.sources[: max(rows, 3)]],
        "more_sources": max(0, len(answer.sources) - max(rows, 3)),
        "made_by": cut(made_by(answer)),
        "attached": answer.attached,
        "attachment": attachment,
        "screen": len(answer.front),
        "shortened": shortened,
    }
    return str(_compiled().render(view)).strip() + "\n"


@functools.cache
def _compiled() -> Template:
    """The page's template, compiled once: that takes as long as a small page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("planner.render")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, loader=loader, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["whole_options"] = _whole_options
    return environment.get_template("page.html.j2")


def _template(name: str) -> str:
    return files("planner.render").joinpath(f"templates/{name}").read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What a content security policy calls a text that may be run or may style."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _safe(text: str) -> Any:
    """Text that is not escaped: only for what this package itself made."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - style sheet, script, and charts, whose texts are escaped where they are drawn


# `--details`: browsers end a line after each dash.
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def _whole_options(text: str) -> Any:
    """A text, escaped, in which no line ends within an option of a command."""
    from markupsafe import escape

    return _safe(_OPTION.sub(r'<span class="d">\g<0></span>', str(escape(text))))


# Between a number and its unit: a line that breaks there reads badly on a phone.
_UNIT = re.compile(r"(?<=\d) (?=(?:%|[KMGT]i?B|h|min|USD)(?!\w))")


def _cutter(length: int) -> Callable[[object], str]:
    def cut(text: object) -> str:
        words = _UNIT.sub("\N{NO-BREAK SPACE}", tidy(text))
        return words if len(words) <= length else f"{words[: length - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"

    return cut


def _section(
    section: Section, number: int, answer: Answer, cut: Callable[[object], str], rows: int, charts: int
) -> dict[str, Any]:
    currency = answer.currency
    withheld = _held_together(section.figures)
    figures = [
        replace(shown, reason="") if shown.status == "flagged" and shown.reason == section.reason else shown
        for shown in _read_figures(section, withheld)  # the section says why once
    ][: max(rows, 4)]
    return {
        "id": f"s{number}",
        "title": cut(section.title),
        "status": section.status,
        "warning": cut(status_words(section.status, section.reason)),
        "urgent": section.warning,
        "folded": _is_folded(section),
        "sentences": [cut(sentence) for sentence in section.sentences[: max(rows, 4)]],
        "figures": [
            _figure(figure, text, f"s{number}f{index}", currency, cut)
            for index, (figure, text) in enumerate(zip(figures, figure_texts(figures, currency), strict=True))
        ],
        "spelled": any(len(figure.words) > _TILE_WIDTH for figure in section.figures),
        "held": [(cut("; ".join(labels)), cut(reason)) for reason, labels in withheld.items()],
        "charts": [
            _chart(chart, f"s{number}c{index}", currency, cut, section.sentences)
            for index, chart in enumerate(section.charts[:charts])
        ],
        "tables": [_table(table, answer, cut, rows) for table in section.tables if table.columns],
    }


def _read_figures(section: Section, withheld: Mapping[str, list[str]]) -> list[Figure]:
    """Figures that a page shows: none that a waterfall draws, none of several that are withheld for one reason."""
    return [
        figure
        for figure in undrawn_figures(section)
        if figure.status != "withheld" or figure.reason not in withheld
    ]


def _is_folded(section: Section) -> bool:
    """Whether a section is shut until asked for: what supports the answer, draws nothing and warns of nothing."""
    return section.detail and not section.charts and not section.warning and section.status == "ok"


def _held_together(figures: tuple[Figure, ...]) -> dict[str, list[str]]:
    """Labels of withheld figures by reason, where several share one: it is then said once."""
    by_reason: dict[str, list[str]] = {}
    for figure in figures:
        if figure.status == "withheld":
            by_reason.setdefault(figure.reason, []).append(tidy(figure.label))
    return {reason: labels for reason, labels in by_reason.items() if len(labels) > 1}


def _money_words(answer: Answer) -> str:
    return f"with {NOT_STATED}" if answer.currency == UNKNOWN_CURRENCY else f"in {answer.currency}"


def _figure(
    figure: Figure, text: str, identity: str, currency: str, cut: Callable[[object], str]
) -> dict[str, Any]:
    return {
        "label": cut(figure.label),
        "text": _minus(cut(text)),
        "status": figure.status,
        "warning": cut(
            figure.reason if figure.status == "withheld" else status_words(figure.status, figure.reason)
        ),
        "words": not is_numeric(figure.unit),
        "note": cut(figure.note) if figure.status != "withheld" else "",
        "trend": _trend(figure, identity, currency),
    }


def _trend(figure: Figure, identity: str, currency: str) -> Any:
    """The values that led to a figure, drawn small; nothing where it is withheld or stands alone."""
    if figure.status == "withheld" or len(figure.trend) < 2:
        return ""
    first = next((value for value in figure.trend if value is not None), None)
    said = f"{len(figure.trend)} values from {show(first, figure.unit, currency)} to {figure_text(figure, currency)}"
    return _safe(
        draw_sparkline(figure.trend, title=f"Trend: {tidy(figure.label)}", said=said, identity=identity)
    )


def _chart(
    chart: Chart, identity: str, currency: str, cut: Callable[[object], str], said: tuple[str, ...]
) -> dict[str, Any]:
    """The two pictures of a chart; what it says stands below, unless the section says so already."""
    pictures = {
        name: _safe(draw(chart, currency=currency, width_px=width, identity=f"{identity}{name[0]}"))
        for name, width in (("wide", PANEL_PX if chart.small else WIDE_PX), ("narrow", NARROW_PX))
    }
    return {
        "title": cut(chart.title),
        "small": chart.small,
        "alt": "" if chart.alt in said else cut(chart.alt),
        **pictures,
    }


def _table(table: Table, answer: Answer, cut: Callable[[object], str], limit: int) -> dict[str, Any]:
    currency = answer.currency
    below, table = placed(table, "below"), placed(table, "cell")
    texts = cells(table, currency, limit)
    folds = bool(below.columns) and table.shown < len(texts)
    columns = [at for at in range(len(table.columns)) if not texts or any(row[at] for row in texts)]
    units = [table.columns[at].unit for at in columns]
    many = len(units) > _ROOMY_COLUMNS
    sizes = ["dense"] if many else []
    if len(units) > _DENSE_COLUMNS:
        sizes.append("tight")
    if len(units) > _PHONE_COLUMNS:
        sizes.append("stacked")
    return {
        "title": cut(table.title),
        "size": " ".join(sizes),
        "columns": [
            (cut(column_label(table.columns[at], currency)), _cell_class(table.columns[at].unit))
            for at in columns
        ],
        "rows": [
            [
                (_minus(cut(row[at])), _cell_class(unit, row[at], many))
                for at, unit in zip(columns, units, strict=True)
            ]
            for row in texts
        ],
        "below": [
            [
                (cut(column.label), cut(text), address(text, answer.folder) if column.links else "")
                for column, text in zip(below.columns, row, strict=True)
                if text
            ]
            for row in (cells(below, currency, limit) if below.columns else [])
        ],
        "first": table.shown if folds else len(texts),
        "summed": table.total and len(texts) == len(table.rows),
        "more": max(0, len(table.rows) - limit),
        "total": len(table.rows),
        "picked": None if table.picked is None or not texts else min(table.picked, len(texts) - 1),
        "notes": [cut(note) for note in note_lines(table)],
    }


def _cell_class(unit: str, text: str = "", many: bool = False) -> str:
    """`n`: a number, right aligned; `d`: a date or a short name, never broken; `s`: not on paper; `l`: long text."""
    if is_numeric(unit):
        return "n" if len(text) <= _LONG else "l"
    if len(text) > _LONG:
        return "l"
    if unit != "date" and not 0 < len(text) <= _SHORT:
        return ""
    return "d" if unit == "date" or many else "s"


def _minus(text: str) -> str:
    """A true minus sign, as wide as a digit, before a number."""
    return f"\N{MINUS SIGN}{text[1:]}" if text[:1] == "-" and text[1:2].isdigit() else text


WIDTH_PX, HEIGHT_PX = 156.0, 30.0
_PAST = "#b9d7ea"


def draw_sparkline(values: Sequence[float | None], title: str, said: str, identity: str) -> str:
    """Columns from zero, the last one in colour; None leaves a gap; values below zero stand below the line.

    Args:
        values: oldest first.
        title: for who cannot see it.
        said: the same in a sentence.
        identity: unique in the page.
    """
    drawn = [value for value in values if value is not None]
    top, low = max(drawn, default=0.0), min(drawn, default=0.0)
    span = max(top, 0.0) - min(low, 0.0)
    if not span:
        return ""
    pitch = WIDTH_PX / max(len(values), 6)
    scale = HEIGHT_PX / span
    zero = HEIGHT_PX + min(low, 0.0) * scale
    parts = [
        rect(at * pitch, zero, pitch * 0.75, -value * scale, PALETTE[0] if at == len(values) - 1 else _PAST)
        for at, value in enumerate(values)
        if value is not None
    ]
    return frame(WIDTH_PX, HEIGHT_PX, title, said, identity, parts)
