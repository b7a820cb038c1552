"""Small files are read as they are usually spelled, and again where they are not: values and findings are the same."""

from __future__ import annotations

import functools
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.finops.read import open as opening
from planner.finops.read import open_bill
from planner.finops.read.cells import read_cell, tags_text
from planner.finops.read.usual import usual_cell
from tests.planner.finops.small_bill import charge, write_bill

CELLS: dict[Any, list[str]] = {
    "number": ["1", "-2.5", "+3", "1e3", "1e300", "nan", "inf", "", " ", " 7 ", "$1.50", "1,234.5", "1,5", "x", "0x10"],
    "moment": [
        "2026-10-01", "2026-10-01T00:00:00Z", "2026-10-01 12:00:00+02:00", "2026/10/01", " 2026-10-01", "2026-10",
        "26-10-01", "  26-10-01", "2-06-10-01", "-226-10-01", "10/01/2026", "1.10.2026 12:30", "2026-13-01", "infinity",
        "epoch", "", "2026-10-01T00:00:00.123456Z", "2026-10-01garbage", "0000-00-00",
    ],
    "json": ["{}", '{"a":"b"}', "[1]", ' [{"key":"a","value":"b"}]', '[{"key":"a","value":"b"}]', "x", "", "null", "7"],
}  # fmt: skip


@functools.cache
def connection() -> duckdb.DuckDBPyConnection:
    """One for all cells: it starts in 15 ms, as long as three questions take."""
    own = duckdb.connect(config={"threads": 1})
    own.execute("SET TimeZone = 'UTC'")
    return own


def check(kind: Any, cells: list[str]) -> list[str]:
    """Compare the values of cells with those of all spellings; return what is read as usual."""
    own = connection()
    own.execute("CREATE OR REPLACE TABLE cells AS SELECT UNNEST(?::VARCHAR[]) AS cell", [cells])
    full = read_cell("cell", kind)
    full = tags_text("cell", full) if kind == "json" else full
    rows = own.execute(f"SELECT cell, {usual_cell('cell', kind)}, {full} FROM cells").fetchall()
    read = [(cell, usual, every) for cell, usual, every in rows if usual is not None]
    assert [(cell, usual) for cell, usual, _ in read] == [(cell, every) for cell, _, every in read]
    return [cell for cell, _, _ in read]


@pytest.mark.parametrize("kind", list(CELLS))
def test_what_is_read_as_usual_is_what_all_spellings_give(kind: Any) -> None:
    read = check(kind, CELLS[kind])
    assert 3 <= len(read) < len(CELLS[kind])


@given(
    st.lists(
        st.text(alphabet='0123456789-/.: TZ+e,$[]{}"ainf', max_size=22).filter(lambda cell: "\0" not in cell),
        min_size=1,
        max_size=60,
    )
)
@settings(max_examples=20, deadline=None)
def test_no_other_text_is_read_in_another_way(cells: list[str]) -> None:
    for kind in CELLS:
        check(kind, cells)


ODD: dict[str, dict[str, Any]] = {
    "nothing": {},
    "an amount with a sign": {"BilledCost": "$1,200.50"},
    "no amount": {"EffectiveCost": "n/a"},
    "another date": {"ChargePeriodStart": "10/05/2026", "ChargePeriodEnd": "10/06/2026"},
    "no date": {"ChargePeriodStart": "soon"},
    "tags as a list": {"Tags": '[{"key":"team","value":"ml"}]'},
    "tags that are none": {"Tags": "team=ml"},
    "blanks": {"PricingQuantity": "  "},
}


@pytest.mark.parametrize("changed", ODD.values(), ids=list(ODD))
def test_a_small_file_gives_what_a_large_one_would(
    changed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [charge(date(2026, 10, day)) for day in (3, 4)]
    path = write_bill(tmp_path / "bill.csv", [*rows, rows[0] | changed, rows[1]])
    with path.open("a", encoding="utf-8") as file:
        file.write('"a line, too short"\n')  # is reported once
    answers = []
    for limit in (1 << 20, 0):
        monkeypatch.setattr(opening, "_ONE_THREAD_BYTES", limit)
        with open_bill([path]) as bill:
            answers.append((bill.engine.query("SELECT * FROM focus ORDER BY ALL"), bill.findings))
    (small, found), (large, same) = answers
    pd.testing.assert_frame_equal(small, large)
    assert found == same
    assert [finding.code for finding in found].count("rejected_rows") == 1


@pytest.mark.parametrize(("encoding", "name"), [("cp1252", "Köln"), ("gb18030", "云服务器")])
def test_a_small_file_that_is_read_again_tells_its_encoding(encoding: str, name: str, tmp_path: Path) -> None:
    day = date(2026, 10, 3)
    path = write_bill(tmp_path / "bill.csv", [charge(day, ServiceName=name), charge(day, BilledCost="$1.50")])
    path.write_bytes(path.read_text(encoding="utf-8").encode(encoding))
    with open_bill([path]) as bill:
        assert [finding.code for finding in bill.findings] == ["encoding"]
