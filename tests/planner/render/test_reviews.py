"""A review in every format: the same facts, read as a person or a program would, hostile words disarmed."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

import planner.finops.review as review_package
from planner.finops.review.model import Chart, Column, Figure, Review, Section, Table
from planner.finops.review.report import render_review
from planner.render import ANSWER_FORMATS, FORMATS
from planner.render.charts import draw
from planner.render.html import MAX_BYTES
from planner.render.text import display_width
from planner.render.units import SIMPLE_UNITS
from tests.planner.render.markup import read_page
from tests.planner.render.sample import HOSTILE, hostile_review, sample_review
from tests.schema_check import schema_faults

SCHEMA = Path(review_package.__file__).with_name("review.v1.json")


def _text(review: Review, fmt: str) -> str:
    made = render_review(review, fmt)
    assert isinstance(made, str)
    return made


def _book(review: Review) -> Any:
    made = render_review(review, "xlsx")
    assert isinstance(made, bytes)
    return load_workbook(io.BytesIO(made))


@pytest.mark.parametrize("fmt", ["table", "md"])
def test_what_people_read(fmt: str, check_golden: Callable[[str, str], None]) -> None:
    check_golden(f"finops_render/sample.{FORMATS[fmt].extension}", _text(sample_review(), fmt))


def test_words_and_numbers_of_the_page(check_golden: Callable[[str, str], None]) -> None:
    page = re.sub(r"<style>.*?</style>", "", _text(sample_review(), "html"), flags=re.S)
    inside = re.sub(r'<div class="narrow">.*?</div>', "", page, flags=re.S)
    lines = (re.sub(r"<[^>]+>", " ", line).split() for line in inside.splitlines())
    check_golden("finops_render/page_words.txt", "\n".join(" ".join(line) for line in lines if line) + "\n")


@pytest.mark.parametrize("fmt", [name for name in ANSWER_FORMATS if name != "xlsx"])
@pytest.mark.parametrize("make", [sample_review, hostile_review])
def test_every_text_ends_in_one_newline_and_is_unicode(fmt: str, make: Callable[[], Review]) -> None:
    text = _text(make(), fmt)
    assert text.endswith("\n") and not text.endswith("\n\n")
    text.encode()


@pytest.mark.parametrize(
    ("words", "laid_out"), [("139,000 USD", "figures"), ("139,000 USD (117,000 to 166,000)", "facts")]
)
def test_amounts_in_words_are_tiles_and_longer_words_a_list(words: str, laid_out: str) -> None:
    """A forecast said in known digits made a list of the tiles, whose notes then stood below other figures."""
    figures = (
        Figure("spend", "Spend", 155_209.0, "money", note="18.4 % more"),
        Figure("forecast", "Forecast", 139_012.0, "money", words=words),
    )
    page = _text(replace(sample_review(), sections=(Section("one", "One", figures=figures),)), "html")
    assert f'<dl class="{laid_out}">' in page


def test_amounts_beside_bars_have_cents_alike() -> None:
    chart = Chart(
        "bars", "By team", "bars", ("a", "b", "c"), (("cost", (115_079.2, 1_672.01, -0.3)),), "money", "alt"
    )
    drawn = unescape(draw(chart, currency="USD"))
    assert {"115,079 USD", "1,672 USD", "\N{MINUS SIGN}0.30 USD"} <= set(re.findall(r">([^<>]+ USD)<", drawn))


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match="no output format 'pdf'; there are table, json, csv, yaml, md, html, xlsx, focus"
    ):
        render_review(sample_review(), "pdf")


@pytest.mark.parametrize("make", [sample_review, hostile_review])
def test_the_page_is_whole_small_and_runs_nothing(make: Callable[[], Review]) -> None:
    page = _text(make(), "html")
    faults, _ = read_page(page)
    assert faults == []
    assert len(page.encode()) <= MAX_BYTES
    assert "Content-Security-Policy" in page and "default-src 'none'" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "https://" not in page


def test_the_page_shows_hostile_words_as_words() -> None:
    _, words = read_page(_text(hostile_review(), "html"))
    assert "<script>alert(1)</script>" in words
    assert "{{ 7 * 7 }}" in words and "\u202e" not in words and "\u05e9\u05dc\u05d5\u05dd" in words
    assert "\U0001f469\u200d\U0001f680" in words  # an emoji made of two stays one


def test_a_page_of_a_hundred_thousand_rows_says_what_it_leaves_out() -> None:
    rows = tuple((f"resource {index}", index * 1.5) for index in range(100_000))
    columns = (Column("r", "Resource", "text"), Column("c", "Cost", "money"))
    section = Section("s", "Many", tables=(Table("t", "All", columns, rows),))
    page = _text(replace(sample_review(), sections=(section,)), "html")
    assert len(page.encode()) <= MAX_BYTES
    assert "99,940 more of 100,000 rows are in the XLSX, CSV and JSON forms" in page


def test_a_page_that_leaves_out_pictures_says_so() -> None:
    said = "This page is shortened"
    assert said in _text(hostile_review(), "html") and said not in _text(sample_review(), "html")
    chart = sample_review().sections[1].charts[0]
    many = Section("s", "Many", charts=(chart,) * 20)
    assert said in _text(replace(sample_review(), sections=(many,)), "html")


def test_withheld_and_flagged_say_why_in_words() -> None:
    for fmt in ("html", "md", "table"):
        words = " ".join(_text(sample_review(), fmt).split())
        assert "no list price is known for 41 % of spot rows" in words
        assert "Withheld: no run id of a plan" in words
        assert "Flagged: tags of azure arrive two days late" in words


@pytest.mark.parametrize("fmt", ["table", "md", "html"])
def test_sections_withheld_for_one_reason_say_it_once(fmt: str) -> None:
    """Five sections in a row said that 100.0 % of rows have no readable cost; data formats keep each reason."""
    keys = [("first", "Prices"), ("second", "Prices"), ("third", "Rates"), ("fourth", "Prices")]
    sections = tuple(
        Section(key, f"What of {key}?", status="withheld", reason=f"{why} are unknown") for key, why in keys
    )
    review = replace(sample_review(), sections=sections)
    said = unescape(_text(review, fmt))
    assert said.count("Prices are unknown") == said.count("Rates are unknown") == 1
    assert said.count('Withheld: see "What of first?"') == 2
    values = json.loads(_text(review, "json"))["sections"]
    assert [one["reason"] for one in values] == [f"{why} are unknown" for _, why in keys]


def test_what_is_withheld_for_one_reason_says_it_once() -> None:
    figures = tuple(
        Figure(f"f{i}", f"Rate {i}", None, "ratio", "withheld", "prices are unknown") for i in range(5)
    )
    page = _text(replace(sample_review(), sections=(Section("s", "Savings", figures=figures),)), "html")
    _, words = read_page(page)
    assert words.count("prices are unknown") == 1 and "Rate 0; Rate 1; Rate 2; Rate 3; Rate 4" in words


def test_amounts_of_one_chart_have_cents_alike() -> None:
    names, amounts = ("much", "little", "less", "back"), (70_055.0, 440.0, 0.2, -98.89)
    chart = Chart("c", "", "parts", names, (("", amounts),), "money", "")
    drawn = draw(chart, currency="USD")
    for text in ("70,055 USD", "440 USD", "0.20 USD", "\N{MINUS SIGN}99 USD (\N{MINUS SIGN}0.1 %)"):
        assert text in drawn, text
    small = draw(replace(chart, series=(("", (55.0, 44.5, 0.2, -9.0)),)), currency="USD")
    assert "55.00 USD" in small and "44.50 USD" in small


def test_numbers_of_the_page_are_right_aligned_with_separators() -> None:
    page = _text(sample_review(), "html")
    for text in ("70,000", "\N{MINUS SIGN}2,000"):
        assert re.search(f'<td class="n"[^>]*><bdi>{text}</bdi></td>', page)
    assert re.search('<th scope="col"[^>]* class="n"><bdi>Change, USD</bdi></th>', page)
    for number, unit in (("4.318", "USD/h"), ("0.000412", "USD"), ("48,200", "h")):
        assert f"{number}\N{NO-BREAK SPACE}{unit}" in page  # no line breaks between them


def test_each_picture_has_a_name_and_a_description() -> None:
    page = _text(sample_review(), "html")
    pictures = re.findall(r"<svg .*?</svg>", page, flags=re.S)
    assert len(pictures) == 16  # eight charts, each for a wide and a narrow page
    for picture in pictures:
        assert re.search(r'role="img" aria-labelledby="(\S+) (\S+)"', picture)
        assert "<title id=" in picture and "<desc id=" in picture


@pytest.mark.parametrize("width", [60, 100])
def test_no_line_of_the_terminal_is_too_wide(width: int) -> None:
    for review in (sample_review(), hostile_review()):
        text = render_review(review, "table", width=width)
        assert isinstance(text, str)
        assert max(display_width(line) for line in text.splitlines()) <= width
        assert "\x1b" not in text


def test_markdown_holds_no_markup_of_others() -> None:
    text = _text(hostile_review(), "md")
    assert "<script" not in text and "<img" not in text and not re.search(r"(?<!\\)\]\(", text)
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")


def test_json_fits_its_schema_and_keeps_every_value() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for review in (sample_review(), hostile_review()):
        values = json.loads(_text(review, "json"))
        assert schema_faults(values, schema) == []
        assert [section["key"] for section in values["sections"]] == [
            section.key for section in review.sections
        ]
    first = json.loads(_text(sample_review(), "json"))["sections"][0]["figures"][1]
    assert first["value"] == 0.002 and first["status"] == "flagged" and first["unit"] == "ratio"


def test_the_schema_refuses_what_the_page_of_it_forbids() -> None:
    schema, values = (
        json.loads(SCHEMA.read_text(encoding="utf-8")),
        json.loads(_text(sample_review(), "json")),
    )
    values["sections"][0]["status"] = "perhaps"
    assert schema_faults(values, schema) != []


def test_csv_has_every_value_once_and_no_formula() -> None:
    review = sample_review()
    rows = list(csv.DictReader(io.StringIO(_text(review, "csv"))))
    cells = [row for row in rows if row["section"] == "movers" and row["table"] == "movers"]
    table = review.sections[2].tables[0]
    charts = sum(len(chart.labels) for chart in review.sections[2].charts if chart.key == "movers")
    assert len(cells) == len(table.rows) * len(table.columns) + charts
    assert {row["value"] for row in rows if row["row"] == "per_run"} == {"8412.77"}
    hostile = csv.DictReader(io.StringIO(_text(hostile_review(), "csv")))
    signed = {row["value"] for row in hostile if row["unit"] == "text"}
    assert not any(value.startswith(("=", "+", "@", "-")) for value in signed)


def test_the_workbook_holds_real_numbers_and_dates() -> None:
    book = _book(sample_review())
    assert book.sheetnames[:2] == ["Summary", "Figures"]
    movers = book["Top movers"]
    assert movers.freeze_panes == "A2" and movers["C2"].value == 70_000.0
    assert movers["C2"].number_format.startswith("[$USD] #,##0.00") and movers["F2"].number_format == "0.0%"
    actions = book["Actions"]
    assert actions["C2"].value == datetime(2026, 11, 15) and actions["C2"].is_date
    assert isinstance(actions["A2"].value, str) and actions["C4"].value is None
    figures = {row[1].value: row[2] for row in book["Figures"].iter_rows(min_row=2)}
    assert figures["GPU-hours paid"].value == 48_200 and figures["Spot savings"].value is None
    assert figures["Complete through"].value == datetime(2026, 10, 29)


def test_libreoffice_opens_the_workbook(tmp_path: Path) -> None:
    program = shutil.which("soffice")
    if program is None:
        pytest.skip("needs LibreOffice (soffice) on PATH")
    made = render_review(sample_review(), "xlsx")
    assert isinstance(made, bytes)
    (tmp_path / "review.xlsx").write_bytes(made)
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    command = [program, profile, "--headless", "--convert-to", "html", "review.xlsx"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    page = (tmp_path / "review.html").read_text(encoding="utf-8")
    shown = [unescape(text) for text in re.findall(r"<font[^>]*>([^<]+)<", page)]
    assert {"USD 70,000.00", "-USD 2,000.00", "31.0%", "2026-11-15", "p5.48xlarge Linux hour 0"} <= set(shown)


def test_the_workbook_draws_its_charts_from_cells() -> None:
    sheet = _book(sample_review())["Daily cost and its forecast"]
    (drawn,) = sheet._charts
    assert drawn.series[0].val.numRef.f == "'Daily cost and its forecast'!$B$2:$B$92"
    assert sheet["B1"].value == "actual, USD" and sheet["B2"].value == 40_000.0 and sheet["B92"].value is None


def test_the_workbook_runs_nothing() -> None:
    book = _book(hostile_review())
    assert len(book.sheetnames) == len({name.casefold() for name in book.sheetnames})
    for sheet in book.worksheets:
        assert len(sheet.title) <= 31
        for row in sheet.iter_rows():
            assert all(cell.data_type != "f" and cell.hyperlink is None for cell in row)
    texts = {str(c.value) for sheet in book.worksheets for row in sheet.iter_rows() for c in row}
    assert HOSTILE[2] in texts and HOSTILE[3] in texts


def test_the_same_review_gives_the_same_bytes() -> None:
    for fmt in ANSWER_FORMATS:
        assert render_review(sample_review(), fmt) == render_review(sample_review(), fmt)


@pytest.mark.parametrize(
    ("currency", "text"), [("JPY", "1,234,567"), ("KWD", "1,234.568"), ("EUR", "1,234.57"), ("", "1,234.57")]
)
def test_money_has_the_decimals_of_its_currency(currency: str, text: str) -> None:
    from planner.render.units import bare

    assert bare(1234567.4 if currency == "JPY" else 1234.5678, "money", currency) == text


def test_a_bridge_with_small_steps_says_that_its_axis_is_cut() -> None:
    from planner.render.charts import draw

    chart = Chart("b", "B", "bridge", ("a", "up", "b"), (("", (1000.0, 10.0, 1010.0)),), "money", "up 10")
    assert "The axis begins at" in draw(chart, currency="USD")
    grown = replace(chart, series=(("", (10.0, 1000.0, 1010.0)),))
    assert "The axis begins at" not in draw(grown, currency="USD")


@pytest.mark.parametrize(("last", "told"), [(4210.0, True), (400.0, False)])
def test_a_staircase_over_orders_of_magnitude_has_a_logarithmic_axis(last: float, told: bool) -> None:
    """The steps that matter stood within a twentieth of the width."""
    from planner.render.charts import draw

    series = (("x", (16.7, 33.0, last)), ("cost", (3400.0, 750.0, 540.0)))
    chart = Chart("c", "C", "steps", ("a", "b", "c"), series, "usd", "", axis="deadline, h")
    assert ("deadline, h (logarithmic)" in draw(chart, currency="USD")) is told


@pytest.mark.parametrize(
    ("low", "high", "count", "wanted"),
    [
        (16.7, 4210, 12, [10, 20, 50, 100, 200, 500, 1000, 2000, 5000]),
        (16.7, 4210, 4, [10, 100, 1000, 5000]),
        (20, 1000, 4, [20, 100, 1000]),
        (0.3, 12, 9, [0.2, 0.5, 1, 2, 5, 10, 20]),
    ],
)
def test_marks_of_a_logarithmic_axis(low: float, high: float, count: int, wanted: list[float]) -> None:
    from planner.render.svg import LogScale, log_ticks

    marks = log_ticks(low, high, count)
    assert marks == pytest.approx(wanted)
    scale = LogScale(marks[0], marks[-1], 100.0, 500.0)
    assert [scale.at(end) for end in (marks[0], marks[-1], 10 * marks[-1])] == [100.0, 500.0, 500.0]
    middle = (marks[0] * marks[-1]) ** 0.5
    assert scale.at(middle) == pytest.approx(300.0)


def test_a_step_of_float_dust_is_nothing() -> None:
    from planner.render.charts import draw

    chart = Chart(
        "b", "B", "bridge", ("a", "up", "b"), (("", (84_775.0, -1e-12, 84_775.0)),), "money", "the same"
    )
    assert "0.00000" not in draw(chart, currency="USD")


@pytest.mark.parametrize(
    "kind", ["bridge", "bars", "lines", "fan", "funnel", "parts", "steps", "spans", "dots"]
)
@pytest.mark.parametrize("labels", [("a", "b", "c"), ("2026-01-01", "2026-01-02", "2026-01-03")])
def test_numbers_at_the_ends_of_the_scale_are_drawn(kind: Any, labels: tuple[str, ...]) -> None:
    from planner.render.charts import NARROW_PX, WIDE_PX, draw

    ends = (
        (1e308, -1e308, 1e308),
        (5e-324, 1e308, 1.0),
        (5e-324, 5e-324, 0.0),
        (None, None, 1.0),
        (-1e308,) * 3,
    )
    for values in ends:
        series = tuple(
            (name, values)
            for name in ("x", "low", "high", "actual", "start", "end", "actual low", "actual high")
        )
        for unit in SIMPLE_UNITS:
            chart = Chart("k", "T", kind, labels, series, unit, "")
            for width in (WIDE_PX, NARROW_PX):
                assert not re.search(r"\b(nan|inf)\b", draw(chart, currency="USD", width_px=width))
