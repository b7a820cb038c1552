"""The fiscal year in the review: by month, and the month's variance by price and volume."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from importlib.resources import files as files_of
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from planner.finops.review.inputs import Beside
from planner.finops.review.report import render_review
from planner.inputs.budget_load import load_budgets
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill

BUDGETS = """
version: 1
kind: budget
name: company
currency: USD
budgets:
  - {name: all, amount: 3000}
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """10 units a day at 10 USD in September; 12 a day at 11 in October, and tax."""
    budgets = tmp_path / "budgets.yaml"
    budgets.write_text(BUDGETS)
    rows = each_day(date(2026, 9, 1), date(2026, 9, 30), 100)
    rows += each_day(date(2026, 10, 1), date(2026, 10, 31), 132, PricingQuantity=12)
    rows.append(charge(date(2026, 10, 1), 50, ChargeCategory="Tax"))
    return write_bill(tmp_path / "bill.csv", rows), budgets


def test_the_parts_add_up_to_the_variance(files: tuple[Path, Path]) -> None:
    made = review_of(
        files[0], only=("fiscal_year",), budgets=load_budgets(files[1]), beside=Beside(fiscal_start=9)
    )
    months = {row["month"]: row for row in rows_of(made, "fiscal_year", "months")}
    assert months["2026-09"]["actual"] == pytest.approx(3000) and months["2026-11"]["state"] == "ahead"
    rows = rows_of(made, "fiscal_year", "fiscal_explained")
    parts = {row["part"]: row["variance"] for row in rows}
    gap = parts.pop("October 2026 over budget")
    assert gap == pytest.approx(months["2026-10"]["actual"] - 3000)
    assert sum(parts.values()) == pytest.approx(gap)
    # the unit price rose by 1 on a mean of (300 + 372) / 2 units
    assert parts["Price"] == pytest.approx(336) and parts["Volume"] == pytest.approx(72 * 10.5)
    assert parts["September 2026 against this budget"] == pytest.approx(0)
    assert "FY2027" in section(made, "fiscal_year").sentences[0]
    schema = files_of("planner.finops.review").joinpath("review.v1.json").read_text(encoding="utf-8")
    jsonschema.validate(json.loads(render_review(made, "json")), json.loads(schema))


def test_only_where_it_is_asked_for(files: tuple[Path, Path], run_cli: Callable[..., Any]) -> None:
    made = review_of(files[0], only=("fiscal_year",), budgets=load_budgets(files[1]))
    assert "fiscal_year" not in [one.key for one in made.sections]
    refused = run_cli("review", "--focus", str(files[0]), "--fiscal-year-start", "9")
    assert refused.code == 2 and "name the budgets with --budgets" in refused.stderr
