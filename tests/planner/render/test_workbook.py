"""The workbook's dates are dates and its bridge is a waterfall; a notebook shows an error as a sentence."""

from __future__ import annotations

import io
from datetime import datetime
from typing import Any

import pytest
from openpyxl import load_workbook

from planner.errors import InputError
from planner.render.model import Answer, Chart, Column, Section, Table
from planner.render.xlsx import render


def book(*charts: Chart, rows: tuple[dict[str, Any], ...] = ()) -> Any:
    answer = Answer(
        "t",
        "t",
        (),
        (Section("s", "S", charts=charts),),
        {},
        tuple(rows[0]) if rows else (),
        rows,
        currency="USD",
    )
    return load_workbook(io.BytesIO(render(answer)))


def bridge(*values: float) -> Chart:
    labels = ("Before", *(f"step {n}" for n in range(len(values) - 2)), "After")
    return Chart("bridge", "Bridge", "bridge", labels, (("cost", values),), "money", "")


def test_days_are_dates() -> None:
    """They were text: a spreadsheet could neither sort nor group them."""
    days = Chart("d", "Days", "lines", ("2026-10-01", "2026-10-02"), (("cost", (1.0, 2.0)),), "money", "")
    made = book(days, rows=({"month": "2026-10", "value": "2026-10-31", "name": "a 2026-10-31"},))
    assert (made["Days"]["A1"].value, made["Days"]["A3"].value) == ("Day", datetime(2026, 10, 2))
    cells = [made["Rows"][at].value for at in ("A2", "B2", "C2")]
    assert cells == [datetime(2026, 10, 1), datetime(2026, 10, 31), "a 2026-10-31"]


def test_the_bridge_is_a_waterfall() -> None:
    """Its steps stood on the axis, as if each were a total."""
    sheet = book(bridge(100, 30, -50, 80))["Bridge"]
    assert [cell.value for cell in sheet[1]][2:] == ["Base, USD", "Total, USD", "Rise, USD", "Fall, USD"]
    rows = [[cell.value for cell in row][2:] for row in sheet.iter_rows(min_row=2, max_row=5)]
    assert rows == [
        [None, 100, None, None],
        [100, None, 30, None],
        [80, None, None, 50],
        [None, 80, None, None],
    ]
    (chart,) = sheet._charts
    assert chart.grouping == "stacked" and len(chart.series) == 4


@pytest.mark.parametrize("values", [(10, -30, -20), (-5, 10, 5)])
def test_a_bridge_below_zero_keeps_its_plain_columns(values: tuple[float, ...]) -> None:
    (chart,) = book(bridge(*values))["Bridge"]._charts
    assert chart.grouping == "clustered" and len(chart.series) == 1


def test_a_notebook_shows_the_sentence() -> None:
    assert InputError("a.csv: is no bill")._render_traceback_() == ["InputError: a.csv: is no bill"]


def test_a_chart_stands_on_the_sheet_of_the_table_that_has_its_values() -> None:
    """Cost by team had two sheets with the same numbers."""
    columns = (
        Column("owner", "Team", "text"),
        Column("cost", "Cost", "money"),
        Column("gone", "Gone", "text"),
    )
    table = Table("t", "Cost by team", columns, (("a", 3.0, ""), ("b", 2.0, ""), ("c", 1.0, "")))
    chart = Chart("c", "Cost", "bars", ("A", "B"), (("cost", (3.0, 2.0)),), "money", "", drawn_only=True)
    other = Chart("o", "Other", "bars", ("A", "B"), (("cost", (3.0, 9.0)),), "money", "", drawn_only=True)
    flat = Table("lines", "Data", (Column("month", "Month", "date"),), (("2026-10",),))
    parts = (Section("s", "S", tables=(table,), charts=(chart, other)),)
    answer = Answer("t", "t", (), parts, {}, ("x",), ({"x": "1"},), currency="USD", flat=flat)
    made = load_workbook(io.BytesIO(render(answer)))
    assert made.sheetnames == ["Summary", "Cost by team", "Other", "Data"]
    (drawn,) = made["Cost by team"]._charts
    assert drawn.series[0].val.numRef.f == "'Cost by team'!$B$2:$B$3"
    assert [made["Cost by team"].cell(row, 4).value for row in (2, 3)] == ["A", "B"]
    assert made["Data"]["A2"].value == datetime(2026, 10, 1)
