"""A small bill is held as a table, and answers the same each time that it is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.finops.forecast.bill import daily_of_bill
from planner.finops.read import open_bill
from tests.focus_company import make_company


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
