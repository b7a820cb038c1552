"""`planner review --use-case`: the official questions, asked at a terminal."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CliResult
from tests.focus_company import Truth
from tests.focus_company.shared import small_company

Run = Callable[..., CliResult]
pytestmark = [pytest.mark.catalog("small"), pytest.mark.usefixtures("one_bill")]

SLUG = "analyze-service-costs-by-region"


@pytest.fixture(scope="module")
def company() -> tuple[Truth, Path]:
    truth = small_company()
    return truth, truth.files[0].parent


def test_the_list_is_that_of_the_bills_version(company: tuple[Truth, Path], run_cli: Run) -> None:
    done = run_cli("review", "--focus", str(company[1]), "--use-case", "list", "-o", "json")
    assert {case["focus_version"] for case in json.loads(done.stdout)["use_cases"]} == {company[0].version}
    every = run_cli("review", "--use-case", "list")
    assert every.code == 0
    assert every.stdout.startswith("111 use cases of FOCUS 1.0 to 1.4")
    said = " ".join(every.stdout.split())
    assert f"{SLUG}: Analyze service costs by region (FOCUS 1.0, 1.1, 1.2)" in said
    assert f"{SLUG}-2: Analyze service costs by region (FOCUS 1.3, 1.4)" in said
    rows = list(csv.DictReader(io.StringIO(run_cli("review", "--use-case", "list", "-o", "csv").stdout)))
    assert len(rows) == 254 and {row["title"] for row in rows if row["use_case"] == SLUG} == {
        "Analyze service costs by region"
    }


def test_an_answer_adds_up_to_the_month(company: tuple[Truth, Path], run_cli: Run) -> None:
    truth, folder = company
    ask = ("review", "--focus", str(folder), "--use-case", SLUG, "--month", "2026-10")
    rows = list(csv.DictReader(io.StringIO(run_cli(*ask, "-o", "csv").stdout)))
    month = truth.month[truth.months[-1]]
    total = sum(float(row["effective_cost"]) for row in rows)
    assert total == pytest.approx(month.effective + month.tax_usd, abs=0.01)
    assert json.loads(run_cli(*ask, "-o", "json").stdout)["rows"][0].keys() == rows[0].keys()
    table = run_cli(*ask).stdout
    assert table.splitlines()[0] == f"Analyze service costs by region: 2026-10, USD, {len(rows)} rows"
    assert "SERVICE NAME" in table
    both = run_cli(*ask, "--compare", "2026-09", "-o", "json")
    assert json.loads(both.stdout)["first_month"] == "2026-09"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("analyze-service-costs-by-regio",), f"did you mean {SLUG}?"),
        ((SLUG, "--month", "2025-01"), "--month 2025-01: the bill has no charges in it"),
    ],
)
def test_what_cannot_be_asked_is_told(
    company: tuple[Truth, Path], run_cli: Run, more: tuple[str, ...], said: str
) -> None:
    done = run_cli("review", "--focus", str(company[1]), "--use-case", *more)
    assert done.code == 2
    assert said in done.stderr
    assert done.stdout == ""
