"""A small bill is held as a table, and answers the same each time that it is opened."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from planner.finops.engine import duckdb as engine
from planner.finops.forecast.bill import daily_of_bill
from planner.finops.read import open_bill
from tests.focus_company import make_company
from tests.planner.finops.small_bill import charge, write_bill


@pytest.mark.usefixtures("own_duckdb")
def test_sums_of_a_held_bill_are_the_same_each_time(tmp_path: Path) -> None:
    make_company(2, 7, 1000, out=tmp_path)
    seen = set()
    for _ in range(6):
        with open_bill([tmp_path]) as bill:
            assert bill.engine.query("SELECT table_name FROM duckdb_tables()")["table_name"].tolist() == [
                "focus"
            ]
            by_provider = daily_of_bill(bill, "provider")
        seen.add(b"".join(by_provider[name].cost.tobytes() for name in sorted(by_provider)))
    assert len(seen) == 1


@pytest.mark.usefixtures("own_duckdb")
def test_passes_that_a_version_of_duckdb_lacks_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB 1.4 has three of the five, and refuses a list with a name that it does not know."""
    monkeypatch.setattr(engine, "_DEAR_PASSES", ("statistics_propagation", "of_another_version"))
    with open_bill([write_bill(tmp_path / "bill.csv", [charge(date(2026, 10, 3))])]) as bill:
        found = bill.engine.query("SELECT CURRENT_SETTING('disabled_optimizers') AS passes")
    assert found["passes"].tolist() == ["statistics_propagation"]


@pytest.mark.usefixtures("own_duckdb")
def test_a_small_file_of_many_rows_is_asked_with_all_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As packed ones are: they are opened as small, and what is not held is worth the whole planner."""
    monkeypatch.setattr("planner.finops.read.open.HELD_ROWS", 0)
    with open_bill([write_bill(tmp_path / "bill.csv", [charge(date(2026, 10, 3))])]) as bill:
        found = bill.engine.query("SELECT CURRENT_SETTING('disabled_optimizers') AS passes")
    assert found["passes"].tolist() == [""]
