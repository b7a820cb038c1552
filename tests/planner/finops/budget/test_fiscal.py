"""A fiscal year by month: actuals are the bill's, parts add up, and the year is re-forecast."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest

from planner.finops.budget.fiscal import FiscalYear, fiscal_year
from planner.finops.budget.fiscal_report import fiscal_section
from planner.finops.forecast.daily import load_daily
from planner.inputs.budget_load import load_budgets
from tests.conftest import CliResult

BUDGETS = """
version: 1
kind: budget
name: company
currency: USD
budgets:
  - {name: all, amount: 3000}
  - {name: a, by: scope, scope: a, amount: 2000}
  - {name: year, by: scope, scope: b, period: year, amount: 12000}
  - {name: b, by: scope, scope: b, amount: 900}
"""


def daily(path: Path, first: date, last: date) -> Path:
    """60 a day of a and 40 of b, and from April 70 of a."""
    lines = ["date,scope,cost"]
    for number in range((last - first).days + 1):
        day = first + timedelta(number)
        lines += [f"{day},a,{70 if day >= date(2026, 4, 1) else 60}", f"{day},b,40"]
    path.write_text("\n".join(lines) + "\n")
    return path


def year_of(folder: Path, first: date, last: date, month: int = 2) -> FiscalYear:
    path = folder / "budgets.yaml"
    path.write_text(BUDGETS)
    costs = load_daily(daily(folder / "d.csv", first, last))
    return fiscal_year(load_budgets(path), {"total": costs, "scope": costs}, month, last)


@pytest.fixture(scope="module")
def to_may(tmp_path_factory: pytest.TempPathFactory) -> FiscalYear:
    return year_of(tmp_path_factory.mktemp("may"), date(2025, 11, 1), date(2026, 5, 15))


def test_months_to_date_and_the_year(to_may: FiscalYear) -> None:
    made = to_may
    assert (made.label, made.start, made.end) == ("FY2027", date(2026, 2, 1), date(2027, 2, 1))
    total = made.budgets[0]
    assert [one.state for one in total.months] == ["actual"] * 3 + ["running"] + ["ahead"] * 8
    assert [one.actual for one in total.months[:4]] == pytest.approx([2800, 3100, 3300, 1650])
    assert (total.to_date_budget, total.to_date_actual, total.year_budget) == (
        9000,
        pytest.approx(9200),
        36000,
    )
    known = 9200 + 110 * (date(2027, 2, 1) - date(2026, 5, 1)).days
    assert total.reforecast == pytest.approx(known, rel=0.02)
    assert total.low is not None and total.high is not None and total.low <= total.reforecast <= total.high
    months = sum(one.expected or 0.0 for one in total.months)
    assert months == pytest.approx(total.reforecast)
    assert total.run_rate_left == pytest.approx((36000 - 9200 - 31 * 110) / 8, rel=0.02)


def test_the_variance_is_explained_by_the_scopes(to_may: FiscalYear) -> None:
    made = to_may
    total = made.budgets[0]
    assert sum(gap for _, gap in made.explained) == pytest.approx(total.to_date_actual - total.to_date_budget)
    parts = dict(made.explained)
    assert parts["a"] == pytest.approx(59 * 60 + 30 * 70 - 6000) and parts["b"] == pytest.approx(
        89 * 40 - 2700
    )


def test_a_years_amount_is_spread_by_days(to_may: FiscalYear) -> None:
    made = to_may
    spread = next(one for one in made.budgets if one.name == "year")
    assert spread.spread and spread.year_budget == pytest.approx(12000)
    assert spread.months[0].budget == pytest.approx(12000 * 28 / 365)


def test_months_before_the_first_day_are_not_nothing_spent(tmp_path: Path) -> None:
    made = year_of(tmp_path, date(2026, 3, 10), date(2026, 6, 30))
    total = made.budgets[0]
    assert [one.state for one in total.months[:5]] == ["no data", "no data", "actual", "actual", "actual"]
    assert total.reforecast is None and total.to_date_budget == 9000


def test_a_correction_of_an_earlier_time_is_no_month(tmp_path: Path) -> None:
    """Its months up to the first daily cost were months without spend: far below budget."""
    path = tmp_path / "budgets.yaml"
    path.write_text(BUDGETS)
    costs = daily(tmp_path / "d.csv", date(2026, 3, 1), date(2026, 6, 30))
    costs.write_text(costs.read_text() + "2026-01-20,a,-30\n")
    scopes = load_daily(costs)
    made = fiscal_year(load_budgets(path), {"total": scopes, "scope": scopes}, 2, date(2026, 6, 30))
    total = made.budgets[0]
    assert [one.state for one in total.months[:2]] == ["no data", "actual"] and total.to_date_budget == 12000


def test_a_budget_of_some_months_is_held_against_those(tmp_path: Path) -> None:
    """A budget that begins in April was compared with what all twelve months cost."""
    path = tmp_path / "budgets.yaml"
    path.write_text(
        BUDGETS.replace(
            "{name: all, amount: 3000}", "{name: all, amount: 3000, starts: 2026-04-01, ends: 2026-09-30}"
        )
    )
    costs = load_daily(daily(tmp_path / "d.csv", date(2025, 11, 1), date(2026, 5, 15)))
    made = fiscal_year(load_budgets(path), {"total": costs, "scope": costs}, 2, date(2026, 5, 15))
    total = made.budgets[0]
    assert (total.to_date_budget, total.to_date_actual, total.year_budget) == (
        3000,
        pytest.approx(3300),
        18000,
    )
    assert total.reforecast == pytest.approx(110 * 183, rel=0.02)  # April to September
    assert total.run_rate_left == pytest.approx((18000 - 3300 - 31 * 110) / 4, rel=0.02)
    rows = fiscal_section(made, "USD").tables[1].rows
    own = [row for row in rows if row[0] == "all"]
    assert [row[7] is None for row in own] == [True] * 2 + [False] * 6 + [True] * 4
    assert own[7][7] == pytest.approx(total.reforecast - total.year_budget)
    assert "its months of the year land at" in fiscal_section(made, "USD").sentences[0]


def test_the_last_day_of_a_year(tmp_path: Path) -> None:
    made = year_of(tmp_path, date(2025, 11, 1), date(2026, 12, 31), month=1)
    total = made.budgets[0]
    assert {one.state for one in total.months} == {"actual"} and total.run_rate_left is None
    assert total.reforecast == pytest.approx(90 * 100 + 275 * 110)


def test_from_the_command_line(
    tmp_path: Path, run_cli: Callable[..., CliResult], asked_once: Callable[[str], None]
) -> None:
    asked_once("planner.finops.budget.fiscal.fiscal_year")  # one answer in two formats
    (tmp_path / "budgets.yaml").write_text(BUDGETS)
    costs = daily(tmp_path / "d.csv", date(2025, 11, 1), date(2026, 5, 15))
    asked = ["budget", str(tmp_path / "budgets.yaml"), "--daily", str(costs), "--fiscal-year-start", "2"]
    done = run_cli(*asked)
    assert done.code in (0, 5) and "Fiscal year FY2027 (2026-02-01 to 2027-01-31)" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100 and "The year has no landing" not in done.stdout
    values = json.loads(run_cli(*asked, "-o", "json").stdout)
    assert (
        values["fiscal_year"]["label"] == "FY2027"
        and len(values["fiscal_year"]["budgets"][0]["months"]) == 12
    )
    done = run_cli(*asked[:-1], "13")
    assert done.code == 2 and "13" in done.stderr


def test_months_and_the_year_are_one_forecast(tmp_path: Path) -> None:
    """The year was forecast apart from its months, which added up to another sum; equal ends were shown as a range."""
    path, costs = tmp_path / "budgets.yaml", tmp_path / "d.csv"
    path.write_text(BUDGETS)
    days = [date(2025, 11, 1) + timedelta(number) for number in range(190)]
    varied = [f"{day},a,{60 + 7 * (day.toordinal() ** 2 % 11) - 20 * (day.weekday() > 4)}" for day in days]
    costs.write_text("\n".join(["date,scope,cost", *varied, *(f"{day},b,40" for day in days)]) + "\n")
    scopes = load_daily(costs)
    made = fiscal_year(load_budgets(path), {"total": scopes, "scope": scopes}, 2, days[-1])
    assert made.budgets[0].reforecast is not None
    for one in made.budgets:
        assert one.reforecast == pytest.approx(sum(month.expected or 0.0 for month in one.months))
    said = fiscal_section(made, "USD").sentences
    assert " to " in said[0] and " to " not in said[3]


def test_a_scope_that_begins_within_the_year_is_named(tmp_path: Path) -> None:
    """A tag's value was renamed in April: the budget was "4,000 under", months of the old name counting as 0."""
    path = daily(tmp_path / "d.csv", date(2025, 11, 1), date(2026, 5, 15))
    old = [line for line in path.read_text().splitlines() if ",a," not in line or line >= "2026-04"]
    path.write_text("\n".join(old) + "\n")
    budgets = tmp_path / "budgets.yaml"
    budgets.write_text(BUDGETS)
    costs = load_daily(path)
    said = fiscal_section(
        fiscal_year(load_budgets(budgets), {"total": costs, "scope": costs}, 2, date(2026, 5, 15)), "USD"
    ).sentences
    words = "a has no cost before April 2026: months before count as 0, also if scope a had another name."
    assert [one for one in said if "has no cost before" in one] == [words]
