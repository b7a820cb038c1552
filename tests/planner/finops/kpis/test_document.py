"""The page of KPIs is what the headers say, and names no code that is not there."""

from __future__ import annotations

import csv
import importlib
from importlib.resources import files
from pathlib import Path

from planner.finops.kpis import load_kpis
from planner.finops.kpis.document import kpi_page

PAGE = Path(__file__).resolve().parents[4] / "docs" / "finops" / "kpis.md"


def test_the_page_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == kpi_page(), "run: python -m planner.finops.kpis.document > docs/finops/kpis.md"


def test_what_is_worked_out_names_modules_and_kpis_that_exist() -> None:
    text = files("planner.finops.kpis").joinpath("worked_out.csv").read_text(encoding="utf-8")
    known = {kpi.name for kpi in load_kpis()}
    for row in csv.DictReader(text.splitlines()):
        importlib.import_module(row["module"])
        assert row["needs"].split(" and ")[0] in known


def test_gates_are_checks_of_the_quality_gate() -> None:
    text = files("planner.finops").joinpath("data", "quality_checks.csv").read_text(encoding="utf-8")
    checks = {row["check"] for row in csv.DictReader(text.splitlines())}
    for kpi in load_kpis():
        assert set(kpi.gate) <= checks, kpi.name
