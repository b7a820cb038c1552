"""Every bundled CSV file has as many cells in a row as in its head: a comma in a source would move what follows."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.conftest import ROOT

TABLES = sorted(
    path
    for room in ("planner", "catalogs", "solvers", "benchmarks/data")
    for path in (ROOT / room).rglob("*.csv")
)


def test_there_are_tables() -> None:
    assert len(TABLES) > 20


@pytest.mark.parametrize("path", TABLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_rows_have_the_cells_of_the_head(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert [number for number, row in enumerate(rows, 2) if row and len(row) != len(head)] == []
