"""Amounts that no bill can hold: NaN, infinity, 1e300. One of them would be in every sum, and no check would see it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from planner.finops.read import open_bill

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
