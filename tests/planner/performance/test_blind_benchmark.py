"""Blind scoring: no row on or after the date reaches the fit, and rows without a date are counted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks import blind
from benchmarks.measured import Case
from planner.performance.constants import Constants

SINCE = "2025-01-01"
DATES = ("2022-02", "2024-12", "2025-01", "2025-05", "")


def _rows() -> list[dict[str, str]]:
    first = next(row for row in blind.load_rows(None) if row["date"] == "2022-02")
    return [{**first, "row_id": f"row {n}", "date": text} for n, text in enumerate(DATES)]


def test_later_and_undated_rows_stay_out_of_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[str] = []

    def watched(cases: Sequence[Case], bundled: Constants) -> Constants:
        fitted.extend(case.row_id for case in cases)
        return bundled

    monkeypatch.setattr(blind, "refit", watched)
    made = blind.report(_rows(), SINCE)
    assert fitted == ["row 0", "row 1"]
    assert made["undated"] == 1
    assert made["blind"]["all"]["n"] + made["blind"]["all"]["no prediction"] == 2
    assert made["in-sample"]["all"]["n"] + made["in-sample"]["all"]["no prediction"] == 2


def test_a_date_with_no_rows_after_it_is_refused() -> None:
    with pytest.raises(ValueError, match="choose another date"):
        blind.report(_rows(), "2030-01-01")
