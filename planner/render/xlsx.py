"""An Excel workbook: a summary, the figures, one sheet per table and chart, the flat rows; numbers are numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from planner.render.currency import UNKNOWN_CURRENCY, currency_words
from planner.render.document import chart_values, made_by, note_lines, status_words
from planner.render.model import Answer, Chart, Column, Figure, Table, Unit, Value
from planner.render.plain import plain_value
from planner.render.sheet_tables import ISO_DAY, WATERFALL, chart_table, columns_of, simple_table, waterfall
from planner.render.text import display_width
from planner.render.units import (
    column_label,
    figure_text,
    money_places,
    number_of,
    style_of,
    tidy,
    unit_words,
    with_unit,
)

_FORBIDDEN = str.maketrans(dict.fromkeys("[]:*?/\\", " "))
_MAX_NAME, _MAX_TEXT, _MAX_ROWS = 31, 32_000, 1_048_000
_MIN_WIDTH, _MAX_WIDTH = 9, 60
_CHART_KINDS = {"bridge": "column", "bars": "bar", "funnel": "bar", "lines": "line", "fan": "line",
                "parts": "bar"}  # fmt: skip
_SUMMARY_WIDTHS = (34, 12, 110)
_LINE_PT = 15
_OPTIONAL_DECIMALS = re.compile(r"(?<=0)\.(#+)$")
_TIMES = frozenset(("date", "moment", "moment_short"))


def render(answer: Answer, *, width: int = 100, color: bool = False) -> bytes:
    """Render an answer as a workbook; the same answer gives the same bytes."""
    del width, color  # a spreadsheet decides
    from xlsxwriter import Workbook

    out = io.BytesIO()
    options = {
        "in_memory": True,
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
    }
    created = answer.created or datetime(2000, 1, 1, tzinfo=UTC)  # else two books of one answer would differ
    created = created.astimezone(UTC) if created.tzinfo else created
    with Workbook(out, options) as book:
        book.set_properties({
            "title": tidy(answer.topic),
            "author": "planner",
            "created": created.replace(tzinfo=None, microsecond=0),
        })  # fmt: skip
        writer = _Writer(book, tidy(answer.currency))
        writer.summary(answer)
        writer.figures(answer)
        for section in (*answer.front, *answer.behind):
            hosts = [
                (writer.table(table, table.title or section.title), table)
                for table in section.tables
                if table.columns
            ]
            for chart in section.charts:
                if chart.series:
                    writer.chart(chart, chart.title or section.title, hosts if chart.drawn_only else ())
        if answer.flat is not None:
            if answer.flat.columns:
                writer.table(answer.flat, answer.flat.title)
        elif answer.rows:
            writer.flat(answer)
    return out.getvalue()


class _Writer:
    """Writes sheets into one workbook; keeps its formats and the names taken."""

    def __init__(self, book: Any, currency: str) -> None:
        self._book, self._currency = book, currency
        self._names: set[str] = set()
        self._formats: dict[str, Any] = {}

    def _style(self, name: str, **given: object) -> Any:
        if name not in self._formats:
            self._formats[name] = self._book.add_format({"valign": "top", **given})
        return self._formats[name]

    @property
    def _bold(self) -> Any:
        return self._style("bold", bold=True, text_wrap=True)

    @property
    def _header(self) -> Any:
        return self._style("header", bold=True, text_wrap=True, bottom=1, bg_color="#EEF1F4")

    @property
    def _wrapped(self) -> Any:
        return self._style("wrapped", text_wrap=True)

    def _sheet(self, wanted: str) -> Any:
        """A new sheet; its name is made short, legal and unique whatever was wanted."""
        base = " ".join(tidy(wanted).translate(_FORBIDDEN).split()).strip("'") or "sheet"
        base = "sheet history" if base.casefold() == "history" else base  # Excel keeps this name for itself
        name, number = _short(base, _MAX_NAME).strip("' ") or "sheet", 1
        while name.casefold() in self._names:
            number += 1
            name = f"{_short(base, _MAX_NAME - len(str(number)) - 1).strip()} {number}"
        self._names.add(name.casefold())
        sheet = self._book.add_worksheet(name)
        sheet.set_landscape()
        sheet.set_paper(9)  # A4
        sheet.fit_to_pages(1, 0)
        return sheet

    def summary(self, answer: Answer) -> None:
        """The verdict, the state and the sentences of every section, the sources."""
        sheet = self._sheet("Summary")
        for column, wide in enumerate(_SUMMARY_WIDTHS):
            sheet.set_column(column, column, wide, self._wrapped)
        lines: list[tuple[str, str, str]] = [("Verdict", "", answer.title)]
        lines += [("", "", text) for text in answer.summary]
        lines += [
            ("Question", "", answer.topic),
            ("Currency", "", currency_words(answer.currency)),
            ("Made", "", made_by(answer)),
        ]
        for section in answer.sections:
            texts = [t for t in (status_words(section.status, section.reason), *section.sentences) if t]
            lines += [
                (section.title if not index else "", section.status if not index else "", text)
                for index, text in enumerate(texts)
            ]
        lines += [("Source", "", source) for source in answer.sources]
        self._head(sheet, ["Section", "Status", "Meaning"])
        for row, (name, status, text) in enumerate(lines, start=1):
            self._text(sheet, row, 0, name, self._bold)
            self._text(sheet, row, 1, status, self._wrapped)
            self._text(sheet, row, 2, text, self._wrapped)
            sheet.set_row(
                row, _LINE_PT * max(_lines(name, _SUMMARY_WIDTHS[0]), _lines(text, _SUMMARY_WIDTHS[2]))
            )

    def figures(self, answer: Answer) -> None:
        """Every figure of every section."""
        figures = [(section, figure) for section in answer.sections for figure in section.figures]
        if not figures:
            return
        sheet = self._sheet("Figures")
        self._head(sheet, ["Section", "Figure", "Value", "Unit", "Status", "Reason", "Key", "In words"])
        for column, wide in enumerate((24, 34, 20, 14, 11, 40, 34, 80)):
            sheet.set_column(column, column, wide)
        for row, (section, figure) in enumerate(figures, start=1):
            self._text(sheet, row, 0, section.title, self._wrapped)
            self._text(sheet, row, 1, figure.label, self._wrapped)
            value = None if figure.status == "withheld" else figure.value
            value = value[0] if isinstance(value, tuple) and value else value
            self._value(sheet, row, 2, value, (*style_of(figure.unit).parts, ("", figure.unit))[0][1])
            words = figure_text(figure, answer.currency) if figure.words else ""
            unit = _unit_of_cell(figure, self._currency)
            for column, text in enumerate((unit, figure.status, figure.reason, figure.key, words), start=3):
                self._text(sheet, row, column, text, self._wrapped)
        sheet.autofilter(0, 0, len(figures), 7)

    def flat(self, answer: Answer) -> None:
        """The rows of the csv form, under its own column names."""
        columns = tuple(Column(name, name, "quantity") for name in answer.columns)
        rows = tuple(tuple(row.get(name) for name in answer.columns) for row in answer.rows[:_MAX_ROWS])
        self.table(Table("rows", "Rows", columns, rows), "Rows")

    def chart(self, chart: Chart, title: str, hosts: Sequence[tuple[Any, Table]] = ()) -> None:
        """A chart, which the spreadsheet draws from cells: those of a table that has its values, else of its own sheet.

        Args:
            chart: what to draw.
            title: of its own sheet.
            hosts: sheets of the section's tables.
        """
        kind, count = _CHART_KINDS.get(chart.kind), min(len(chart.labels), _MAX_ROWS)
        host = next(((sheet, table, at) for sheet, table in hosts if (at := columns_of(chart, table))), None)
        if host is not None and count and kind is not None:
            sheet, table, columns = host
            beside = len(simple_table(table).columns) + 1
            for row, label in enumerate(("", *chart.labels)):
                self._text(sheet, row, beside, label, self._style("plain"))
            self._draw(sheet, chart, kind, beside, columns, beside + 1)
            return
        sheet = self.table(chart_table(chart), title)
        if not count or kind is None:
            return
        falls = chart.kind == "bridge" and bool(waterfall(chart_values(chart)[0]))
        first = 2 if falls else 1
        columns = list(range(first, first + (len(WATERFALL) if falls else len(chart.series))))
        self._draw(sheet, chart, kind, 0, columns, columns[-1] + 2, falls=falls)

    def _draw(
        self,
        sheet: Any,
        chart: Chart,
        kind: str,
        labels: int,
        columns: list[int],
        beside: int,
        *,
        falls: bool = False,
    ) -> None:
        """Draw the cells of some columns; `labels` is the column of the names, `beside` where the chart stands."""
        count = min(len(chart.labels), _MAX_ROWS)
        drawn = self._book.add_chart({"type": kind, **({"subtype": "stacked"} if falls else {})})
        looks = list(WATERFALL.values()) if falls else [{}] * len(columns)
        for column, look in zip(columns, looks, strict=True):
            drawn.add_series({
                "name": [sheet.name, 0, column],
                "categories": [sheet.name, 1, labels, count, labels],
                "values": [sheet.name, 1, column, count, column],
                **look,
            })  # fmt: skip
        if falls:
            drawn.set_legend({"position": "bottom", "delete_series": [0]})
        drawn.set_title({"none": True})  # a title in words could be read as a formula
        drawn.set_size({"width": 760, "height": 380})
        drawn.show_blanks_as("gap")
        if kind == "bar":
            drawn.set_y_axis({"reverse": True})
        sheet.insert_chart(1, beside, drawn, {"description": _short(tidy(chart.alt), 250)})

    def table(self, given: Table, title: str) -> Any:
        """One sheet: a table with a frozen header; its notes stand below."""
        sheet, table = self._sheet(title or given.key), simple_table(given)
        labels = [self._label(column) for column in table.columns]
        self._head(sheet, labels)
        rows = table.rows[:_MAX_ROWS]
        widths: list[int] = []
        for row, values in enumerate(rows, start=1):
            for index, (column, value) in enumerate(zip(table.columns, values, strict=False)):
                self._value(sheet, row, index, value, column.unit)
        for index, (column, label) in enumerate(zip(table.columns, labels, strict=True)):
            widths.append(_width(label, column.unit, [row[index : index + 1] for row in rows[:200]]))
            sheet.set_column(index, index, widths[-1])
        sheet.set_row(0, _LINE_PT * max(map(_lines, labels, widths), default=1))
        if rows and labels:
            sheet.autofilter(0, 0, len(rows), len(labels) - 1)
        for row, note in enumerate(note_lines(table), start=len(rows) + 2):
            self._text(sheet, row, 0, note, self._style("plain"))
        return sheet

    def _label(self, column: Column) -> str:
        """The header of a column with the unit of its bare numbers."""
        unit = style_of(column.unit).sheet_unit
        label = tidy(column.label) or tidy(column.key)
        return with_unit(label, unit, column.unit) if unit else column_label(column, self._currency)

    def _head(self, sheet: Any, labels: list[str]) -> None:
        for column, label in enumerate(labels):
            self._text(sheet, 0, column, label, self._header)
        sheet.freeze_panes(1, 0)
        sheet.repeat_rows(0)

    def _text(self, sheet: Any, row: int, column: int, text: object, style: Any) -> None:
        words = _short(tidy(text), _MAX_TEXT)
        if words:
            sheet.write_string(row, column, words, style)

    def _value(self, sheet: Any, row: int, column: int, value: Value, unit: Unit) -> None:
        """A number with the format of its unit, a date as a date, anything else as text."""
        found = number_of(value)
        if found is not None and unit != "text":
            found = (
                round(found, 9) + 0.0 if unit == "money" else found
            )  # what sums leave behind is no red minus
            pattern = self._pattern(unit, found)
            sheet.write_number(row, column, found, self._style(f"number {pattern}", num_format=pattern))
            return
        plain = ("yes" if value else "no") if isinstance(value, bool) else plain_value(value)
        is_time = unit in _TIMES or (unit == "quantity" and bool(ISO_DAY.fullmatch(str(plain))))
        day = _day(plain, unit if unit in _TIMES else "date") if is_time else None
        if day is not None:
            pattern = (
                "yyyy-mm" if len(str(plain)) == 7 else style_of(unit if unit in _TIMES else "date").sheet
            )
            sheet.write_datetime(row, column, day, self._style(pattern, num_format=pattern, align="left"))
        elif plain is not None:
            self._text(sheet, row, column, plain, self._wrapped)

    def _pattern(self, unit: Unit, value: float) -> str:
        """The number format of a value of a unit.

        Spreadsheets show the point of a format such as `0.##` after whole numbers too, so these get one without.
        """
        code = "" if self._currency == UNKNOWN_CURRENCY else self._currency
        safe = "".join(c for c in code if c.isalnum())[:8]
        cents = "0" if not money_places(self._currency) else f"0.{'0' * money_places(self._currency)}"
        pattern = style_of("quantity" if unit in _TIMES else unit).sheet
        optional = _OPTIONAL_DECIMALS.search(pattern)
        if unit == "money" or (unit == "money_short" and value != round(value)):
            pattern = f"#,##{cents}"
        elif optional and float(f"{value:.{len(optional[1])}f}").is_integer():
            pattern = _OPTIONAL_DECIMALS.sub("", pattern)
        if unit in ("money", "money_short", "money_per_hour", "unit_price"):
            mark = f"[${safe}] " if safe else ""
            return f"{mark}{pattern};[Red]-{mark}{pattern}"
        return pattern


def _unit_of_cell(figure: Figure, currency: str) -> str:
    """The unit of a figure as readers know it; empty for text and plain numbers."""
    parts = style_of(figure.unit).parts
    values = figure.value if isinstance(figure.value, tuple) else ()
    named = {label: value for (label, _), value in zip(parts, values, strict=False)}
    label, unit = parts[0] if parts else ("", figure.unit)
    if unit in ("ratio", "chance", "percent_change"):
        return "%"
    said = named.get("unit") or named.get("currency")
    return str(
        said or (label if unit == "count" else style_of(unit).sheet_unit or unit_words(unit, currency))
    )


def _short(text: str, most: int) -> str:
    """The text cut to `most` units of UTF-16, in which Excel counts: an emoji takes two."""
    text = text[:most]
    while len(text) + sum(char > "\uffff" for char in text) > most:
        text = text[:-1]
    return text


def _day(plain: object, unit: Unit) -> datetime | None:
    """A moment in UTC, or a day from `2026-10-01` or `2026-10`, that Excel can hold (from 1900 on)."""
    text = str(plain)
    try:
        day = datetime.fromisoformat(
            f"{text}-01" if len(text) == 7 else text[:10] if unit == "date" else text
        )
        day = day.astimezone(UTC).replace(tzinfo=None) if day.tzinfo else day
    except (ValueError, OverflowError):
        return None
    return day if day.year >= 1900 and len(text) <= 32 else None


def _lines(text: str, width: float) -> int:
    """Lines that a wrapped text takes in a column; spreadsheets other than Excel do not find out by themselves."""
    return min(20, 1 + int(display_width(tidy(text)) / (width * 0.95)))


def _width(label: str, unit: str, rows: list[tuple[Value, ...]]) -> int:
    """Characters a column needs: of its text as it will be formatted, about."""
    longest = max((display_width(word) for word in label.split()), default=0) + 2
    for cell in rows:
        text = tidy(cell[0]) if cell and cell[0] is not None else ""
        found = number_of(cell[0]) if cell else None
        longest = max(
            longest, len(f"{found:,.2f}") + 6 if found is not None and unit != "text" else len(text) + 1
        )
    return min(max(longest, _MIN_WIDTH), _MAX_WIDTH)
