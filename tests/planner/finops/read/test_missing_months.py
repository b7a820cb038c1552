"""A year of files by the month, of which one is missing and one is there twice: other months stay what they are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from planner.finops.budget.fiscal import fiscal_year
from planner.finops.budget.fiscal_report import fiscal_section
from planner.finops.forecast.answer import Question, forecast_scopes
from planner.finops.forecast.bill import daily_of_bill
from planner.finops.forecast.clean import regular_series
from planner.finops.forecast.source import read_costs
from planner.finops.read import open_bill
from planner.inputs.budget_load import load_budgets
from tests.conftest import CliResult
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, section, write_bill

MARCH = date(2026, 3, 1)


def last_of(month: date) -> date:
    return (month + timedelta(31)).replace(day=1) - timedelta(1)


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 a day from November 2025 to October 2026, without March; June again in another order."""
    folder = tmp_path_factory.mktemp("year")
    for number in range(12):
        month = date(2025 + (number > 1), (10 + number) % 12 + 1, 1)
        rows = each_day(month, last_of(month), 100)
        if month != MARCH:
            write_bill(folder / f"{month:%Y-%m}.csv", rows)
        if month.month == 6:
            write_bill(folder / f"{month:%Y-%m}-again.csv", rows[::-1])
    return folder


def test_a_month_counted_twice_leaves_others_known(year: Path) -> None:
    """October was "unknown: 95.4 % of billed cost is counted twice"."""
    made = review_of(year, only=("overview", "quality"))
    assert figures(made)["overview_spend_money"].value == pytest.approx(3100)
    assert figures(made)["repeated_ratio"].value == 0
    said = section(made, "quality").sentences[0]
    assert (
        "But of other months, no charge of March 2026 is there; 3,000 USD of June 2026 is counted twice."
        in said
    )
    trend = next(one for one in section(made, "overview").charts if one.key == "spend_months")
    assert "Charges of June 2026 are counted twice." in trend.alt
    june = review_of(year, only=("overview", "quality"), month=date(2026, 6, 1))
    assert "50.0 % of billed cost is counted twice" in june.verdict


def test_a_month_without_a_file_is_said(year: Path, tmp_path: Path) -> None:
    with open_bill([year]) as bill:
        found = [one for one in bill.findings if one.code == "missing_months"]
    assert len(found) == 1 and "no charge in March 2026" in found[0].message
    # corrections of months before the bill begins are no months of it
    rows = [charge(date(2026, 5, 7), -5), *each_day(date(2026, 9, 1), date(2026, 10, 31))]
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as bill:
        assert [one for one in bill.findings if one.code == "missing_months"] == []


def test_a_month_without_a_file_cost_not_nothing(year: Path) -> None:
    """January was expected at 10,000 of "0 to 280,000", and months after March by a level of 0."""
    with open_bill([path for path in sorted(year.iterdir()) if "again" not in path.name]) as bill:
        answer = forecast_scopes(daily_of_bill(bill), Question(count=3))
    periods = answer.scopes[0].periods
    assert [one.expected for one in periods[:3]] == pytest.approx([3000, 3100, 3100], rel=0.01)
    assert all(one.high <= 1.05 * one.expected for one in periods[:3])
    assert answer.scopes[0].filled_days == 31


def test_a_month_in_a_bill_with_pauses_cost_nothing() -> None:
    """Use on single weeks only: nobody can tell a pause from a missing file."""
    days = [date(2026, 1, 1) + timedelta(n) for n in range(200)]
    used = [day for day in days if day.toordinal() // 7 % 2 and day.month != 3]
    series = regular_series(np.array(used, dtype="datetime64[D]"), np.full(len(used), 5.0))
    assert series.filled == 0 and not np.isnan(series.reported).any()
    whole = [day for day in days if day.month != 3]
    series = regular_series(np.array(whole, dtype="datetime64[D]"), np.full(len(whole), 5.0))
    assert series.filled == 31 and np.isnan(series.reported).sum() == 31 and (series.cost == 5.0).all()
    half = [day for day in days if not date(2026, 3, 2) <= day <= date(2026, 4, 29)]
    series = regular_series(np.array(half, dtype="datetime64[D]"), np.full(len(half), 5.0))
    assert series.filled == 0 and not np.isnan(series.reported).any()


def test_a_month_without_a_file_is_no_saving(year: Path, tmp_path: Path) -> None:
    """Its budget was 3,100 more than what was "spent", and that was the variance to date."""
    budgets = tmp_path / "budgets.yaml"
    budgets.write_text(
        "version: 1\nkind: budget\nname: b\ncurrency: USD\nbudgets: [{name: all, amount: 3100}]\n",
        encoding="utf-8",
    )
    with open_bill([path for path in sorted(year.iterdir()) if "again" not in path.name]) as bill:
        scopes = daily_of_bill(bill)
    made = fiscal_year(load_budgets(budgets), {"total": scopes}, 1, date(2026, 10, 31))
    months = {one.period.start.month: one for one in made.budgets[0].months}
    assert (months[3].state, months[3].actual, made.unknown) == ("no data", None, (MARCH,))
    assert made.budgets[0].to_date_budget == pytest.approx(9 * 3100)
    assert made.budgets[0].to_date_actual == pytest.approx(100 * (304 - 31))
    assert made.budgets[0].reforecast is None
    assert any("No charge of March 2026 is known" in said for said in fiscal_section(made, "USD").sentences)


def test_a_month_counted_twice_is_no_overspend(
    year: Path, tmp_path: Path, run_cli: Callable[..., CliResult]
) -> None:
    """June was 6,000 of a budget of 3,100, and 2,900 "over budget" to date."""
    budgets = tmp_path / "budgets.yaml"
    budgets.write_text(
        "version: 1\nkind: budget\nname: b\ncurrency: USD\nbudgets: [{name: all, amount: 3100}]\n",
        encoding="utf-8",
    )
    paths = [str(path) for path in sorted(year.iterdir())]
    costs = read_costs(paths, None, ["total"])
    assert costs.twice == {date(2026, 6, 1): pytest.approx(3000)}
    made = fiscal_year(load_budgets(budgets), costs.scopes, 1, date(2026, 10, 31), twice=costs.twice)
    months = {one.period.start.month: one for one in made.budgets[0].months}
    assert (months[6].state, months[6].actual, months[5].state) == ("counted twice", None, "actual")
    assert made.budgets[0].to_date_actual == pytest.approx(100 * (304 - 31 - 30))
    assert made.budgets[0].to_date_budget == pytest.approx(8 * 3100) and made.budgets[0].reforecast is None
    said = fiscal_section(made, "USD").sentences
    assert any("Charges of June 2026 are counted twice" in one for one in said)
    assert any("No charge of March 2026 is known" in one for one in said)
    # a few charges that are there twice change no verdict: the check's own threshold
    little = {date(2026, 6, 1): 0.02 * 6000.0, date(2027, 6, 1): 5.0}
    made = fiscal_year(load_budgets(budgets), costs.scopes, 1, date(2026, 10, 31), twice=little)
    assert made.twice == () and made.budgets[0].months[5].state == "actual"
    page = run_cli("budget", str(budgets), "--focus", str(year), "--fiscal-year-start", "1")
    assert "2026-06  counted twice" in page.stdout


def test_parts_that_overlap_by_days_are_not_two_snapshots(tmp_path: Path) -> None:
    """The advice to give the latest only would have lost the first nine days."""
    first, days = date(2026, 10, 1), each_day(date(2026, 10, 1), date(2026, 10, 31))
    write_bill(tmp_path / "a.csv", days[:12])
    write_bill(tmp_path / "b.csv", days[9:])
    with open_bill([tmp_path]) as bill:
        (found,) = [one for one in bill.findings if one.code == "repeated_charges"]
    assert (
        "3 charges of 2026-10-10 to 2026-10-12" in found.message and "give each charge once" in found.message
    )
    assert found.cost_in(first) == 300 and found.cost_in(MARCH) == 0
    write_bill(tmp_path / "b.csv", days)
    with open_bill([tmp_path]) as bill:
        (found,) = [one for one in bill.findings if one.code == "repeated_charges"]
    assert found.rows == 12 and "give the latest only" in found.message


@pytest.mark.parametrize("resource", ["i-{}", ""], ids=["resources", "none named"])
def test_a_third_of_a_month_is_counted_twice_and_not_half(resource: str, tmp_path: Path) -> None:
    """The day with most charges told the month: it is a doubled one, so all of the month was taken to be."""
    rows = [
        row
        for number in range(12)
        for row in each_day(
            date(2026, 10, 1),
            date(2026, 10, 30),
            10 + number,
            ResourceId=resource.format(number),
            SkuId=f"s{number}",
        )
    ]
    again = [row for row in rows if row["ChargePeriodStart"][8:10] <= "15"]
    with open_bill([write_bill(tmp_path / "bill.csv", [*rows, *again])]) as bill:
        (found,) = [one for one in bill.findings if one.code == "repeated_charges"]
    assert (found.rows, found.cost) == (15 * 12, pytest.approx(15 * sum(range(10, 22))))
    assert "of 540 charges of 2026-10 180 stand in it again" in found.message
