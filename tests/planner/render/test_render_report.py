"""One answer in every format: the same values, nothing a spreadsheet or a browser would run."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
import yaml
from openpyxl import load_workbook

from planner.errors import InputError
from planner.render import ANSWER_FORMATS, FORMATS, render_answer
from planner.render.model import Answer, Column, Figure, Section, facts, table_section, versioned
from tests.planner.render.markup import read_page

EVIL = "=x<script>alert(1)</script>"
COLUMNS = (
    Column("cluster", "cluster", "cluster"), Column("cost_usd", "cost", "usd"), Column("hours", "hours", "hours"),
    Column("begins", "begins", "date"),
)  # fmt: skip
ROWS = (((2, EVIL), Decimal("5.00"), None, "2026-11-20"), ((4, "p5"), Decimal("1234.567"), 2.5, ""))
ANSWER = Answer(
    f"Points of {EVIL}",
    "Two points",
    ("cheapest first",),
    (
        table_section("points", "Points", COLUMNS, ROWS, ("as of today",)),
        facts("proof", "Proof", [("gap_ratio", "gap", 0.001, "ratio", "0.1 % to the bound")], detail=True),
    ),
    versioned({"points": [{"instance_type": EVIL, "cost_usd": Decimal("5.00"), "hours": float("nan")}]}),
    ("instance_type", "cost_usd"),
    [{"instance_type": EVIL, "cost_usd": Decimal("5.00")}],
)


def _text(fmt: str) -> str:
    made = render_answer(ANSWER, fmt)
    assert isinstance(made, str)
    return made


@pytest.mark.parametrize("fmt", [name for name in ANSWER_FORMATS if name != "xlsx"])
def test_every_format_ends_in_one_newline(fmt: str) -> None:
    assert _text(fmt).endswith("\n") and not _text(fmt).endswith("\n\n")


def test_data_formats_agree_and_unknown_numbers_are_null() -> None:
    values: Any = json.loads(_text("json"))
    assert values == yaml.safe_load(_text("yaml"))
    assert values["points"][0] == {"instance_type": EVIL, "cost_usd": "5.00", "hours": None}
    assert values["schema_version"] == 1 and values["planner_version"]


def test_spreadsheets_run_no_formula_and_browsers_no_tag() -> None:
    assert _text("csv").splitlines()[1] == f"'{EVIL},5.00"
    assert "<script>" not in _text("md")
    faults, words = read_page(_text("html"))
    assert faults == [] and EVIL in words


def test_a_workbook_has_a_column_and_a_type_for_every_part() -> None:
    made = render_answer(ANSWER, "xlsx")
    assert isinstance(made, bytes)
    book = load_workbook(io.BytesIO(made))
    sheet = book["Points"]
    assert [cell.value for cell in sheet[1]] == ["nodes", "instance type", "cost, USD", "hours", "begins"]
    assert [cell.value for cell in sheet[3]] == [4, "p5", 1234.567, 2.5, None]
    assert sheet["B2"].value == EVIL and sheet["B2"].data_type == "s" and sheet["E2"].is_date
    assert sheet.freeze_panes == "A2" and sheet["C3"].number_format.startswith("$")
    assert [cell.value for cell in book["Figures"][2]][1:4] == ["gap", 0.001, "%"]
    assert [cell.value for cell in book["Rows"][2]] == [EVIL, 5]


def test_whole_numbers_of_a_workbook_have_no_decimal_point() -> None:
    """Spreadsheets write 3 in the format `#,##0.####` as `3.`."""
    columns = (Column("nodes", "nodes", "count"), Column("spent", "spent", "money_short"))
    table = table_section("use", "Use", columns, [(3, 62000), (2.5, 32339.4), (1.00001, 0)])
    made = render_answer(replace(ANSWER, sections=(table,)), "xlsx")
    assert isinstance(made, bytes)
    rows = list(load_workbook(io.BytesIO(made))["Use"].iter_rows(min_row=2, max_row=4))
    formats = [[cell.number_format.split(";")[0].rpartition(" ")[2] for cell in row] for row in rows]
    assert formats == [["#,##0", "#,##0"], ["#,##0.####", "#,##0.00"], ["#,##0", "#,##0"]]


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.25, "percent_change", "%"),
        (3.5, "number", None),
        ("spot", "text", None),
        (12.5, "money", "USD"),
        (12.5, "money_per_hour", "USD/h"),
        (12.5, "usd_change", "USD"),
        (2.5, "hours", "h"),
        ((7.5, "kWh"), "measure", "kWh"),
        ((0.0004, "EUR", False), "price", "EUR"),
        ((3, 8, "vCPU"), "of", "vCPU"),
        ((2, "p5.48xlarge"), "cluster", "nodes"),
        ((0.5, None, None), "interval", "%"),
    ],
)
def test_units_of_a_workbook_are_those_that_readers_know(value: Any, unit: Any, shown: str | None) -> None:
    section = Section("s", "S", figures=(Figure("k", "label", value, unit),))
    book = render_answer(replace(ANSWER, sections=(section,)), "xlsx")
    assert isinstance(book, bytes)
    assert load_workbook(io.BytesIO(book))["Figures"]["D2"].value == shown


def test_a_warning_of_the_screen_is_not_said_again_behind_it() -> None:
    """Pages, Markdown and workbooks had it twice, of forecasts and fleets all of them."""
    both = Section("warnings", "Warnings", ("said above", "said here"), warning=True)
    notes = replace(both, key="notes", title="Before you buy", sentences=("said above",))
    screened = replace(
        ANSWER, front=(notes,), sections=(*ANSWER.sections, both, replace(notes, title="Notes"))
    )
    for fmt in ("md", "html"):
        text = render_answer(screened, fmt)
        assert isinstance(text, str)
        assert (text.count("said above"), text.count("said here")) == (1, 1)
        assert "Notes" not in text
    assert replace(screened, front=()).behind == screened.sections


def test_what_is_not_known_differs_from_what_does_not_apply() -> None:
    lines = _text("table").splitlines()
    first, second = (next(line for line in lines if start in line) for start in ("2 x", "4 x p5"))
    assert "\N{EN DASH}" in first and "\N{EN DASH}" not in second


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match="no output format 'pdf'; there are table, json, csv, yaml, md, html"
    ):
        render_answer(ANSWER, "pdf")


def test_an_answer_without_focus_rows_says_so() -> None:
    assert "focus" in FORMATS
    with pytest.raises(InputError, match="plans and forecasts"):
        render_answer(ANSWER, "focus")
