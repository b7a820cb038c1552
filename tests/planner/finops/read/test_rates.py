"""A bill of several currencies in one of them, by the user's own rates."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.errors import InputError
from planner.finops.read import Bill, open_bill
from planner.finops.read.rates import load_rates
from planner.finops.review.answer import review_bill
from tests.planner.finops.small_bill import charge, each_day, rows_of, section, write_bill

OCTOBER = date(2026, 10, 1)
RATES = "date,from,to,rate\n2026-09,EUR,USD,1.1\n2026-10-11,EUR,USD,1.2\n2026-10,JPY,USD,0.01\n2026-10,USD,EUR,0.5\n"


@pytest.fixture
def bill_file(tmp_path: Path) -> Path:
    """Each of 31 days 100 USD, 10 EUR and 1,000 JPY; tax in EUR."""
    last = date(2026, 10, 31)
    rows = each_day(OCTOBER, last) + each_day(OCTOBER, last, 10, BillingCurrency="EUR", ResourceId="i-2")
    rows += each_day(OCTOBER, last, 1000, BillingCurrency="JPY", ResourceId="i-3")
    return write_bill(
        tmp_path / "bill.csv", [*rows, charge(OCTOBER, 1, BillingCurrency="EUR", ChargeCategory="Tax")]
    )


def rates_file(tmp_path: Path, text: str = RATES) -> Path:
    path = tmp_path / "rates.csv"
    path.write_text(text, encoding="utf-8")
    return path


def opened(bill_file: Path, text: str = RATES, target: str = "USD", **options: str) -> Bill:
    return open_bill([bill_file], rates=load_rates(rates_file(bill_file.parent, text), target), **options)


EURO = 10 * 10 * 1.1 + 21 * 10 * 1.2 + 1.1  # the rate changes on the 11th


def test_each_charge_takes_the_latest_rate_not_after_its_day(bill_file: Path) -> None:
    with opened(bill_file) as bill:
        assert bill.currency == "USD" and not bill.findings
        row = bill.engine.query(
            "SELECT SUM(BilledCost) AS billed, SUM(ListCost) AS list, COUNT(*) AS n, "
            "COUNT(DISTINCT BillingCurrency) AS codes FROM focus"
        ).iloc[0]
        assert bill.consolidated is not None
        sums = {code: (billed, inside) for _, code, billed, inside in bill.consolidated.months}
    assert (row["n"], row["codes"]) == (94, 1)
    assert row["billed"] == row["list"] == pytest.approx(3100 + EURO + 310)
    assert sums["EUR"] == pytest.approx((311, EURO)) and sums["JPY"] == pytest.approx((31_000, 310))
    assert sums["USD"] == (3100, 3100)


def test_the_review_shows_the_sums_in_their_own_currencies(bill_file: Path) -> None:
    with opened(bill_file) as bill:
        made = review_bill(bill, forecast=False)
    assert made.verdict.startswith("October 2026 cost 3,77") and "USD" in made.verdict
    rows = rows_of(made, "overview", "currencies")
    assert [(row["currency"], row["billed"]) for row in rows] == [
        ("USD", 3100),
        ("EUR", 311),
        ("JPY", 31_000),
    ]
    assert sum(row["converted"] for row in rows) == pytest.approx(3100 + EURO + 310)
    assert rows[1]["rate"] == pytest.approx(EURO / 311)
    assert "--rates" in made.command and "--in USD" in made.command


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        (RATES.replace("2026-10,JPY", "2026-10-04,JPY"), "USD",
         "no rate from JPY to USD for 2026-10-01 to 2026-10-03 (its first is of 2026-10-04)"),
        (RATES.replace("2026-10,JPY", "2026-10,GBP"), "USD", "no rate from JPY to USD for 2026-10-01 to 2026-10-31"),
        (RATES.replace("JPY,USD", "USD,JPY"), "USD", "it has USD to JPY only: add the other direction"),
        (RATES, "dollars", "--in: 'dollars' is not a currency"),
        ("date,from,to,rates\n", "USD", "there is no column 'rate' (did you mean 'rates'?)"),
        (RATES + "10/2026,EUR,USD,1\n", "USD", ":6: date: '10/2026' is not a day"),
        (RATES + "2026-10,euro,USD,1\n", "USD", ":6: from: 'euro' is not a currency"),
        (RATES + "2026-10,EUR,USD,-1\n", "USD", ":6: rate: '-1' is not a number above 0"),
        (RATES + "2026-10,EUR,USD,nan\n", "USD", ":6: rate: 'nan'"),
        (RATES + "2026-09-01,EUR,USD,1.3\n", "USD", "is 1.3 here and 1.1 in line 2: keep one"),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_is_refused(text: str, target: str, message: str, bill_file: Path) -> None:
    with pytest.raises(InputError) as error:
        opened(bill_file, text, target)
    assert message in str(error.value)


def test_an_old_rate_is_named_with_the_days_that_it_converts(bill_file: Path) -> None:
    with opened(bill_file, RATES.replace("2026-10,JPY", "2026-08-27,JPY")) as bill:
        (found,) = bill.findings
        made = review_bill(bill, forecast=False)
    told = "JPY of 2026-10-12 to 2026-10-31 is converted at the rate of 2026-08-27, up to 65 days older"
    assert found.code == "old_rate" and told in found.message
    (table,) = [table for table in section(made, "overview").tables if table.key == "currencies"]
    assert "Old rates: JPY of 27 August 2026." in table.note


def test_rows_without_a_currency_are_left_out_and_named(bill_file: Path) -> None:
    with bill_file.open("a", encoding="utf-8") as file:
        file.write(",".join(v for v in charge(OCTOBER, 7, BillingCurrency="", Tags="").values()) + "\n")
    with opened(bill_file) as bill:
        assert [(one.code, one.rows) for one in bill.findings] == [("no_currency", 1)]


def test_the_mixed_bill_suggests_the_currency_of_most_rows(bill_file: Path) -> None:
    yen = [charge(OCTOBER, cost, BillingCurrency="JPY") for cost in (5, 6)]
    write_bill(bill_file, [charge(OCTOBER, 900, BillingCurrency="EUR"), *yen])
    with pytest.raises(InputError, match="--currency JPY, which most rows are in"):
        open_bill([bill_file])


def test_forecasts_and_budgets_convert_too(bill_file: Path, run_cli: Callable[..., Any]) -> None:
    """Only the review did: a bill of several currencies had no forecast and no budget."""
    given = ("--focus", str(bill_file), "--rates", str(rates_file(bill_file.parent)), "--in", "USD")
    budgets = bill_file.with_name("budgets.yaml")
    budgets.write_text(
        "version: 1\nkind: budget\ncurrency: USD\nbudgets: [{name: all, amount: 9999, period: month}]\n",
        encoding="utf-8",
    )
    made = json.loads(run_cli("budget", str(budgets), *given, "--day", "2026-10-31", "-o", "json").stdout)
    (line,) = made["lines"]
    assert line["actual_to_date"] == pytest.approx(3100 + EURO - 1.1 + 310)
    ahead = json.loads(run_cli("forecast", *given, "-o", "json").stdout)
    assert ahead["currency"] == "USD" and not ahead.get("findings")
    daily = bill_file.with_name("daily.csv")
    daily.write_text("date,scope,cost\n2026-10-01,a,1\n", encoding="utf-8")
    refused = run_cli("forecast", "--daily", str(daily), *given[2:])
    assert refused.code == 2 and "--rates: is for a bill" in refused.stderr


def test_python_converts_too(bill_file: Path) -> None:
    """The functions had no rates: a bill of several currencies was refused in Python alone."""
    given: dict[str, Any] = {"rates": str(rates_file(bill_file.parent)), "target": "USD"}
    budgets = bill_file.with_name("budgets.yaml")
    budgets.write_text("version: 1\nkind: budget\nbudgets: [{name: all, amount: 9999}]\n", encoding="utf-8")
    (line,) = planner.budget(budgets, bill_file, day="2026-10-31", **given).lines
    assert line.actual == pytest.approx(3100 + EURO - 1.1 + 310)
    assert planner.forecast(bill_file, **given).currency == "USD"
    assert planner.review(bill_file, forecast=False, **given).verdict.startswith("October 2026 cost 3,77")
    with pytest.raises(InputError, match="name the currency"):
        planner.forecast(bill_file, rates=given["rates"])


def test_the_command(bill_file: Path, run_cli: Callable[..., Any]) -> None:
    rates = str(rates_file(bill_file.parent))
    command = ("review", "--focus", str(bill_file), "--no-forecast")
    made = run_cli(*command, "--rates", rates, "--in", "usd")
    assert made.code == 0 and "Currencies of the bill" in made.stdout
    assert run_cli(*command, "--rates", rates).code == 2
    both = run_cli(*command, "--rates", rates, "--in", "USD", "--currency", "USD")
    assert both.code == 2 and "--currency: cannot go with --rates" in both.stderr
