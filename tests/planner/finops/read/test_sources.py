"""What is said of the files that were read."""

from __future__ import annotations

from planner.finops.read import open_bill
from tests.focus_company.shared import small_company


def test_rows_of_files_without_costs_are_counted_too() -> None:
    company = small_company()
    with open_bill([company.files[0].parent]) as bill:
        rows = {source.path: source.rows for source in bill.sources}
    for path in company.datasets:
        assert rows[str(path)] == len(path.read_text(encoding="utf-8").splitlines()) - 1 > 0
    assert sum(rows[str(path)] for path in company.files) == company.rows
