"""What is said of the files that were read."""

from __future__ import annotations

from pathlib import Path

from planner.finops.read import open_bill
from tests.focus_company import write_version
from tests.focus_company.shared import small_company


def test_rows_of_files_without_costs_are_counted_too() -> None:
    company = small_company()
    with open_bill([company.files[0].parent]) as bill:
        rows = {source.path: source.rows for source in bill.sources}
    for path in company.datasets:
        assert rows[str(path)] == len(path.read_text(encoding="utf-8").splitlines()) - 1 > 0
    assert sum(rows[str(path)] for path in company.files) == company.rows


def test_a_month_exported_in_two_versions_is_counted_twice_and_told(tmp_path: Path) -> None:
    company = small_company()
    write_version(company, "1.0", tmp_path, fmt="parquet")
    with open_bill([company.files[-1], next(tmp_path.glob("*2026-10.parquet"))]) as bill:
        found = [one for one in bill.findings if one.code == "repeated_charges"]
    assert len(found) == 1
    assert "two snapshots of one export" in found[0].message
