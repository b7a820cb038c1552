"""Amounts that no bill can hold: NaN, infinity, 1e300. One of them would be in every sum, and no check would see it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
import pytest

from planner.finops.read import open_bill
from tests.planner.finops.small_bill import charge, write_bill

_BILL = """SELECT TIMESTAMP '2026-10-01' + n * INTERVAL 1 DAY AS "ChargePeriodStart", 2.0::DOUBLE AS "BilledCost",
  CASE WHEN n = 3 THEN '{bad}'::DOUBLE ELSE 2.0 END AS "EffectiveCost", 2.0::DOUBLE AS "ListCost",
  2.0::DOUBLE AS "ContractedCost", (-128)::TINYINT AS "PricingQuantity", 'Usage' AS "ChargeCategory",
  'USD' AS "BillingCurrency"
  FROM RANGE(10) AS days(n)"""


def write(path: Path, cell: str) -> None:
    """A bill of ten days with one effective cost of the caller's."""
    duckdb.execute(f"COPY ({_BILL.format(bad=cell)}) TO '{path}'")


@pytest.mark.parametrize("extension", ["parquet", "csv"])
@pytest.mark.parametrize("bad", ["nan", "inf", "-inf", "1e300"])
def test_an_impossible_amount_is_unknown_and_told(tmp_path: Path, bad: str, extension: str) -> None:
    path = tmp_path / f"bill.{extension}"
    write(path, bad)
    with open_bill([path]) as bill:
        sums = bill.engine.query(
            "SELECT SUM(EffectiveCost) AS cost, SUM(PricingQuantity) AS quantity FROM focus", {}
        )
        assert (sums["cost"][0], sums["quantity"][0]) == (18.0, -1280.0)
        found = next(one for one in bill.findings if one.code == "bad_cells")
    assert found.rows == 1
    assert "EffectiveCost: must be a number" in found.message


def test_plain_amounts_stay_where_they_lie(tmp_path: Path) -> None:
    path = tmp_path / "bill.parquet"
    duckdb.connect().sql(_BILL.format(bad="5")).write_parquet(str(path))
    with open_bill([path]) as bill:
        assert bill.engine.query("SELECT SUM(EffectiveCost) AS cost FROM focus", {})["cost"][0] == 23.0
        assert not bill.findings


CREDITS = [
    ("(1,250.00)", -1250.0),
    ("($5)", -5.0),
    ("(12.5)", -12.5),
    ("( $1,000 )", -1000.0),
    ("(0,123)", None),  # a decimal comma elsewhere: never guessed
    ("(5", None),
    ("(12345678901234567890)", None),  # no amount is as large
    ("$12345678901234567890", None),
    ("1,250.00-", -1250.0),  # as SAP writes it
    ("$-5.00", -5.0),
    ("\u22125.00", -5.0),
    ("12.50 $", 12.5),
    ("1,234.56 €", 1234.56),
    ("1'234.50", 1234.5),  # as in Switzerland
    ("1’234’567", 1234567.0),
    ("1\u00a0234.5", 1234.5),
    ("-5-", None),
    ("1,234", None),
    ("1,234 €", None),  # may be 1.234
    ("12 34", None),
    ("12.50 EUR", None),  # the row's own currency may be another
]


@pytest.mark.parametrize(("cell", "value"), CREDITS)
def test_amounts_in_parentheses_are_negative_as_accountants_write_them(
    tmp_path: Path, cell: str, value: float | None
) -> None:
    rows = [charge(date(2026, 10, day), 100) for day in (1, 2)] + [charge(date(2026, 10, 3), cell)]
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as bill:
        found = bill.engine.rows("SELECT SUM(BilledCost) FROM focus WHERE BilledCost <> 100")
        assert found == [(value,)]
        assert [one.code for one in bill.findings] == ([] if value else ["bad_cells"])


def test_amounts_in_parentheses_with_decimal_commas(tmp_path: Path) -> None:
    names = "ChargePeriodStart;BilledCost;ChargeCategory;BillingCurrency"
    rows = (
        f"2026-10-{day:02};{cost};Usage;EUR" for day, cost in enumerate(("1.234,50", "(1.000,25)", "7"), 1)
    )
    (tmp_path / "bill.csv").write_text("\n".join((names, *rows)), encoding="utf-8")
    with open_bill([tmp_path / "bill.csv"]) as bill:
        assert bill.engine.rows("SELECT SUM(BilledCost) FROM focus") == [(1234.50 - 1000.25 + 7,)]
        assert "bad_cells" not in [one.code for one in bill.findings]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1\u00a0234,56", 1234.56),  # as French spreadsheets save it
        ("1\u202f234,56", 1234.56),
        ("1 234 567,8", 1234567.8),
        ("€1.234,56", 1234.56),
        ("1.234,56 €", 1234.56),
        ("-1'234,56", -1234.56),
        ("\u22125,5", -5.5),
        ("5,50-", -5.5),
    ],
)
def test_decimal_commas_with_what_spreadsheets_put_beside_them(
    tmp_path: Path, cell: str, value: float
) -> None:
    names = "ChargePeriodStart;BilledCost;ChargeCategory;BillingCurrency"
    path = tmp_path / "bill.csv"
    path.write_text(f"{names}\n2026-10-01;{cell};Usage;EUR\n2026-10-02;7;Usage;EUR\n", encoding="utf-8")
    with open_bill([path]) as bill:
        assert bill.engine.rows("SELECT SUM(BilledCost) FROM focus") == [(pytest.approx(value + 7),)]
        assert "bad_cells" not in [one.code for one in bill.findings]
