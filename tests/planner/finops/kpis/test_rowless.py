"""KPIs that cannot have rows are not asked: what a header says they are made of must hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from planner.finops.engine.duckdb import DuckDbEngine
from planner.finops.kpis import Kpi, load_kpi, load_kpis, made_of, query_kpi
from planner.finops.kpis.rowless import expect_rowless
from planner.finops.read import Bill, open_bill
from planner.finops.read.columns import focus_columns
from tests.focus_company.shared import small_company
from tests.planner.finops.kpis.test_kpis import VALUES
from tests.planner.finops.small_bill import charge, review_of, write_bill

MADE_OF = [kpi for kpi in load_kpis() if kpi.made_of]
OF_CHARGES = [kpi for kpi in MADE_OF if kpi.made_of not in focus_columns()]
_DAY = VALUES["day"]
# a charge of the kind that each of these KPIs is made from; the company's bill has those of the others
KINDS: dict[str, dict[str, Any]] = {
    "capacity_reservations": {"CapacityReservationId": "cr-1", "CapacityReservationStatus": "Used"},
    "bought_ahead": {"CapacityReservationId": "cr-1", "ChargeCategory": "Purchase"},
    "idle_resources": {"ConsumedQuantity": "0"},
    "gpu_hours": {"SkuPriceDetails": '{"GpuCount":8}'},
    "gpu_types": {"SkuPriceDetails": '{"GpuCount":8}'},
    "gpu_resources": {"SkuPriceDetails": '{"GpuCount":8}'},
    "ai_units": {"PricingUnit": "1K tokens"},
    "commitment_utilisation": {"CommitmentDiscountId": "sp-1", "CommitmentDiscountStatus": "Used"},
    "restated_months": {
        "ChargeClass": "Correction", "ChargePeriodStart": "2026-08-03T00:00:00Z",
        "BillingPeriodStart": VALUES["start"],
    },
    "commitment_terms": {
        "CommitmentDiscountId": "sp-1", "ChargeCategory": "Purchase", "ChargeFrequency": "One-Time",
        "ChargePeriodEnd": "2026-12-01T00:00:00Z",
    },
}  # fmt: skip


def rows_of(bill: Bill, kpi: Kpi) -> pd.DataFrame:
    """Asked whether or not it is known to have no rows."""
    return bill.engine.query(kpi.sql, {name: VALUES[name] for name in kpi.parameters})


@pytest.mark.parametrize("kpi", OF_CHARGES, ids=lambda kpi: kpi.name)
def test_without_such_charges_there_are_no_rows(kpi: Kpi, tmp_path: Path) -> None:
    plain, own = charge(_DAY), charge(_DAY, **KINDS[kpi.name])
    with open_bill([write_bill(tmp_path / "own.csv", [plain, own])]) as bill:
        assert len(rows_of(bill, kpi)) == 1
        engine: Any = bill.engine
        engine.connection.execute(f"DELETE FROM focus WHERE {kpi.made_of}")
        assert len(rows_of(bill, kpi)) == 0
        assert engine.rows("SELECT COUNT(*) FROM focus") == [(1,)]


def test_a_bill_of_all_kinds_has_no_rows_either() -> None:
    company = small_company()
    with open_bill([*company.files, *company.datasets]) as bill:
        engine: Any = bill.engine
        for kpi in OF_CHARGES:
            engine.connection.execute("BEGIN")
            engine.connection.execute(f"DELETE FROM focus WHERE {kpi.made_of}")
            assert len(rows_of(bill, kpi)) == 0, kpi.name
            engine.connection.execute("ROLLBACK")


def test_contracts_are_asked_for_where_their_dataset_is() -> None:
    company = small_company()
    for files, there in (((*company.files, *company.datasets), True), (tuple(company.files), False)):
        with open_bill(files) as bill:
            expect_rowless(bill, made_of())
            engine = bill.engine
            assert isinstance(engine, DuckDbEngine)
            assert {"commitment_expiries", "contract_drawdown"}.isdisjoint(engine.rowless) == there
            assert (len(rows_of(bill, load_kpi("contract_drawdown"))) > 0) == there


def test_what_is_not_asked_answers_as_if_it_were(tmp_path: Path) -> None:
    with open_bill([write_bill(tmp_path / "own.csv", [charge(_DAY)])]) as bill:
        asked = {kpi.name: rows_of(bill, kpi) for kpi in MADE_OF}
        expect_rowless(bill, made_of())
        engine = bill.engine
        assert isinstance(engine, DuckDbEngine) and engine.rowless == {kpi.name for kpi in MADE_OF}
        for _ in range(2):  # the first empty answer, and what is kept of it
            for name, frame in asked.items():
                found = query_kpi(engine, name, VALUES)
                pd.testing.assert_frame_equal(found, frame)
                found["changed"] = 1  # is the asker's own


def test_a_second_review_of_plain_charges_asks_for_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_bill(tmp_path / "own.csv", [charge(_DAY)])
    review_of(path)
    asked: list[str] = []
    query = DuckDbEngine.query

    def noted(self: DuckDbEngine, sql: str, parameters: Any = None) -> pd.DataFrame:
        asked.append(sql)
        return query(self, sql, parameters)

    monkeypatch.setattr(DuckDbEngine, "query", noted)
    review_of(path)
    assert [kpi.name for kpi in MADE_OF if kpi.sql in asked] == []
    assert load_kpi("savings_rate").sql in asked
