"""The small bill that each database is compared on, and DuckDB's view of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.finops.read import Bill, open_bill
from tests.planner.finops.engine.golden import make_small_bill


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_small_bill(tmp_path_factory.mktemp("bill"))


@pytest.fixture(scope="module")
def duckdb_bill(files: dict[str, Path]) -> Iterator[Bill]:
    with open_bill(list(files.values())) as bill:
        yield bill
