"""Invoices and exports that people saved from a spreadsheet or fetched from an API."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from planner.finops.read import open_bill
from tests.conftest import CliResult
from tests.planner.finops.small_bill import charge, write_bill

MAPPING = {
    "ChargePeriodStart": "when",
    "BilledCost": "usd",
    "ChargeCategory": "'Usage'",
    "BillingCurrency": "'USD'",
}


def dated(pattern: str, days: int, month: int, usd: str = "1.5", mark: str = ",") -> str:
    return f"when{mark}usd\n" + "".join(
        f"{pattern.format(day=day, month=month)}{mark}{usd}\n" for day in range(1, days + 1)
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_dates_that_can_be_read_in_two_ways_are_told(encoding: str, tmp_path: Path) -> None:
    """Ten days of November were ten months, without a word."""
    text = dated("{day:02}/{month:02}/2026", 10, 11)
    (tmp_path / "november.csv").write_text(text, encoding=encoding)
    with open_bill([tmp_path], mapping=MAPPING) as bill:
        (found,) = [one for one in bill.findings if one.code == "doubtful_spelling"]
    assert "day/month/year or month/day/year" in found.message and "2026-10-31" in found.message


def test_parts_of_an_export_have_their_dates_written_alike(tmp_path: Path) -> None:
    """A part of 1 to 10 November, beside that of October, was read as ten months."""
    for name, days, month in (("a.csv", 31, 10), ("b.csv", 10, 11)):
        (tmp_path / name).write_text(dated("{day:02}/{month:02}/2026", days, month), encoding="utf-8")
    with open_bill([tmp_path], mapping=MAPPING) as bill:
        assert bill.months == (date(2026, 10, 1), date(2026, 11, 1))
        assert "doubtful_spelling" not in [one.code for one in bill.findings]


@pytest.mark.parametrize(
    ("usd", "other", "cost", "doubt"),
    [("1.234", "", 1.234, True), ("1.234", "2,50", 1234.0, False), ("0.234", "", 0.234, False),
     ("1.234", "2.50", 1.234, False)],
)  # fmt: skip
def test_points_that_may_mark_thousands(
    usd: str, other: str, cost: float, doubt: bool, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text(dated("2026-10-{day:02}", 3, 10, usd, ";"), encoding="utf-8")
    if other:
        (tmp_path / "b.csv").write_text(dated("2026-09-{day:02}", 3, 9, other, ";"), encoding="utf-8")
    with open_bill([tmp_path], mapping=MAPPING) as bill:
        rows = bill.engine.rows("SELECT MAX(BilledCost) FROM focus WHERE x_day >= DATE '2026-10-01'")
        assert rows == [(cost,)]
        assert ("doubtful_spelling" in [one.code for one in bill.findings]) is doubt


@pytest.mark.parametrize("first", ["1.5", "$1.50", ""])
def test_amounts_of_json_that_are_texts_and_numbers(first: str, tmp_path: Path) -> None:
    """DuckDB calls the column JSON: "Malformed JSON ... fetch the export again"."""
    rows = [{"when": "2026-10-04", "usd": usd} for usd in (first, 2)]
    (tmp_path / "bill.json").write_text(json.dumps(rows), encoding="utf-8")
    with open_bill([tmp_path], mapping=MAPPING) as bill:
        expected = 3.5 if first else 2.0
        assert bill.engine.rows("SELECT SUM(BilledCost) FROM focus") == [(expected,)]


def test_rows_without_a_cell_are_no_charges(tmp_path: Path) -> None:
    """Spreadsheets end a file with them: "2 rows name no BillingCurrency and are left out"."""
    path = write_bill(tmp_path / "bill.csv", [charge(date(2026, 10, day)) for day in (1, 2)])
    text = path.read_text(encoding="utf-8")
    path.write_text(text + (text.splitlines()[0].count(",") * "," + "\n") * 2, encoding="utf-8")
    with open_bill([path]) as bill:
        assert bill.engine.rows("SELECT COUNT(*), SUM(BilledCost) FROM focus") == [(2, 200.0)]
        assert bill.findings == ()


@pytest.mark.parametrize(
    "when", ["1791072000", "1791072000000", "1791072000000000", "20261004", "1791158399"]
)
def test_moments_as_apis_write_them(when: str, tmp_path: Path) -> None:
    """Seconds since 1970 could not be read: the bill had no day."""
    (tmp_path / "bill.csv").write_text(f"when,usd\n{when},7\n", encoding="utf-8")
    (tmp_path / "bill.json").write_text(json.dumps([{"when": int(when), "usd": 5}]), encoding="utf-8")
    with open_bill([tmp_path], mapping=MAPPING) as bill:
        assert bill.engine.rows("SELECT x_day, SUM(BilledCost) FROM focus GROUP BY 1") == [
            (date(2026, 10, 4), 12.0)
        ]


@pytest.mark.parametrize("month", ["2026-10", "Oct 2026", "October 2026"])
def test_an_invoice_by_the_month(month: str, tmp_path: Path) -> None:
    (tmp_path / "bill.csv").write_text(f"when,usd\n{month},7\n", encoding="utf-8")
    with open_bill([tmp_path], mapping=MAPPING) as bill:
        assert bill.engine.rows("SELECT x_day FROM focus") == [(date(2026, 10, 1),)]


@pytest.mark.parametrize("when", ["2026100405", "179107200", "20261340", "3791072000"])
def test_other_numbers_are_no_moments(when: str, tmp_path: Path) -> None:
    (tmp_path / "bill.csv").write_text(f"when,usd\n{when},7\n2026-10-04,1\n", encoding="utf-8")
    with open_bill([tmp_path], mapping=MAPPING) as bill:
        assert "bad_cells" in [one.code for one in bill.findings]


def test_currencies_in_small_letters(tmp_path: Path) -> None:
    """OpenAI's and Stripe's are: a bill of usd and USD had two currencies."""
    rows = [charge(date(2026, 10, 1), BillingCurrency=code) for code in ("usd", "USD", " Usd ")]
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as bill:
        assert (bill.currency, bill.findings) == ("USD", ())


def test_categories_of_another_product_are_named(tmp_path: Path) -> None:
    """The review said that rows have no category, and not which they have."""
    rows = [
        charge(date(2026, 10, day), ChargeCategory="charge" if day < 4 else "usage") for day in range(1, 6)
    ]
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as bill:
        (found,) = bill.findings
    assert (found.severity, found.code, found.rows) == ("error", "unknown_category", 3)
    assert "ChargeCategory is 'charge' in 3 rows" in found.message and "--map" in found.message


def test_one_row_of_totals(tmp_path: Path) -> None:
    """It was "1 rows (...) have"."""
    rows = [
        charge(date(2026, 10, 1)),
        charge(date(2026, 10, 2)) | {"ChargePeriodStart": "", "ServiceName": "Total"},
    ]
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as bill:
        (found,) = [one for one in bill.findings if one.code == "no_month"]
    assert found.message.startswith(
        "1 row (100.00 billed) has no ChargePeriodStart and is in no month's figures"
    )


def test_a_currency_may_be_asked_for_in_small_letters(
    tmp_path: Path, run_cli: Callable[..., CliResult]
) -> None:
    rows = [
        charge(date(2026, 10, day), BillingCurrency=code) for day in range(1, 9) for code in ("EUR", "USD")
    ]
    path = write_bill(tmp_path / "bill.csv", rows)
    asked = run_cli("forecast", "--focus", str(path), "--currency", "eur", "-o", "json")
    assert asked.code == 0 and json.loads(asked.stdout)["currency"] == "EUR"


def test_an_answer_is_not_written_over_the_bill(tmp_path: Path, run_cli: Callable[..., CliResult]) -> None:
    """`-o csv --out bill.csv` left the answer in the place of the bill."""
    path = write_bill(tmp_path / "bill.csv", [charge(date(2026, 10, day)) for day in range(1, 9)])
    before = path.read_bytes()
    beside = tmp_path / "x" / ".." / "bill.csv"
    (tmp_path / "x").mkdir()
    for command, bill in (
        ("review", path),
        ("forecast", path),
        ("review", tmp_path),
        ("review", tmp_path / "*.csv"),
    ):
        result = run_cli(command, "--focus", str(bill), "-o", "csv", "--out", str(beside))
        assert result.code == 2 and "is read by this command and would be written over" in result.stderr
    assert path.read_bytes() == before
    assert run_cli("forecast", "--focus", str(path), "--out", str(tmp_path / "answer.csv")).code == 0
