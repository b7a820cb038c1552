"""Days without a report are filled for the models; no amount, verdict or gate may count them as spent."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from planner.finops.budget.answer import check_budgets
from planner.finops.budget.report import budget_report
from planner.finops.forecast.completion import Completion
from planner.finops.forecast.daily import DailyCost
from planner.finops.forecast.model import forecast_month_end
from planner.inputs.budget_load import load_budgets
from planner.render import render_answer
from tests.planner.finops.small_bill import each_day, review_of, write_bill

MISSING = (date(2026, 10, 10), date(2026, 10, 11))


@pytest.fixture
def budgets(tmp_path: Path) -> Path:
    path = tmp_path / "budgets.yaml"
    path.write_text("version: 1\nkind: budget\nbudgets: [{name: all, amount: 3000}]\n")
    return path


def test_a_bill_of_2900_is_not_over_a_budget_of_3000(budgets: Path) -> None:
    """61 days at 100, two of October without a report: it said TO DATE 3,100, OVER, exit code 5."""
    days = np.arange(np.datetime64("2026-09-01"), np.datetime64("2026-11-01"))
    days = days[~np.isin(days, np.array(MISSING, dtype="datetime64[D]"))]
    scopes = {"total": {"total": DailyCost(days, np.full(len(days), 100.0))}}
    answer = check_budgets(load_budgets(budgets), scopes, currency="USD")
    (line,) = answer.lines
    assert (line.actual, line.landing, line.status, line.p_over) == (2900.0, 2900.0, "ok", 0.0)
    assert line.runs_out is None and not answer.exceeded
    said = [text for part in budget_report(answer).sections for text in part.sentences]
    assert "no cost is reported for days of the period, which count as 0: all: 2 days" in said


def test_what_a_period_that_is_over_has_cost_is_not_rounded(budgets: Path) -> None:
    """TO DATE 137,388, LANDING 137,400."""
    days = np.arange(np.datetime64("2026-10-01"), np.datetime64("2026-11-01"))
    scopes = {"total": {"total": DailyCost(days, np.full(len(days), 137_388 / 31))}}
    answer = check_budgets(load_budgets(budgets), scopes, currency="USD")
    shown = str(render_answer(budget_report(answer), "table"))
    row = next(line.split() for line in shown.splitlines() if line.startswith("all "))
    assert row[3] == row[-2] == "137,388"


def test_the_review_counts_what_the_bill_says(budgets: Path, tmp_path: Path) -> None:
    rows = each_day(date(2026, 9, 1), date(2026, 10, 31))
    rows = [row for row in rows if row["ChargePeriodStart"][:10] not in map(str, MISSING)]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), budgets=load_budgets(budgets))
    assert "October 2026 cost 2,900 USD" in made.verdict and "3.3 % under its budget" in made.verdict


def test_days_grossed_up_are_expected_and_not_spent() -> None:
    """The last day is reported at half: what is still to come is part of the landing, not of what was spent."""
    days = np.arange(np.datetime64("2026-09-01"), np.datetime64("2026-10-21"))
    cost = np.full(len(days), 10.0)
    cost[-1] = 6.0
    late = Completion(np.array([0.6, 1.0]), np.zeros(2), np.array([9, 9]))
    found = forecast_month_end(days, cost, month="2026-10", completion=late)
    assert (found.actual_to_date, found.settled_to_date) == (pytest.approx(196), pytest.approx(200))
    assert found.landing == pytest.approx(310, rel=0.01)
