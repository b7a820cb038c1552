"""One report in every format: the same values, nothing a spreadsheet or a browser would run."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
import yaml

from planner.render.document import Document, Grid
from planner.render.report import REPORT_FORMATS, Report, render_report

REPORT = Report(
    Document("Two points", ("cheapest first",), (Grid("Points", ("type", "cost"), (("=x<b>", "$5"),), "lr"),), True),
    {"points": [{"instance_type": "=x<b>", "cost_usd": Decimal("5.00"), "hours": float("nan")}]},
    ("instance_type", "cost_usd"),
    [{"instance_type": "=x<b>", "cost_usd": Decimal("5.00")}],
)  # fmt: skip


@pytest.mark.parametrize("fmt", REPORT_FORMATS)
def test_every_format_ends_in_one_newline(fmt: str) -> None:
    text = render_report(REPORT, fmt)
    assert text.endswith("\n") and not text.endswith("\n\n")


def test_data_formats_agree_and_unknown_numbers_are_null() -> None:
    values: Any = json.loads(render_report(REPORT, "json"))
    assert values == yaml.safe_load(render_report(REPORT, "yaml"))
    assert values["points"][0]["hours"] is None
    assert values["schema_version"] == 1 and values["planner_version"]


def test_spreadsheets_run_no_formula_and_browsers_no_tag() -> None:
    assert render_report(REPORT, "csv").splitlines()[1] == "'=x<b>,5.00"
    assert "<b>" not in render_report(REPORT, "md")


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no output format 'pdf'; there are table, json, csv, yaml, md"):
        render_report(REPORT, "pdf")
