"""Every query gives on ClickHouse what it gives on DuckDB, to the cent, on the same rows of the generated company."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.finops.bought_once import bought_once, once_by_day
from planner.finops.read import Bill, open_bill
from tests.planner.finops.engine.drivers import Driver, need_driver
from tests.planner.finops.engine.golden import (
    NAMES,
    QUERIES,
    check_days_equal,
    check_equal,
    check_things_equal,
    parameters_of,
)


@pytest.fixture(scope="module")
def clickhouse_bill(files: dict[str, Path]) -> Iterator[Bill]:
    need_driver("chdb")
    connection = Driver("chdb.dbapi", "connect")
    connection.ask("SET session_timezone = 'America/New_York'")
    for dataset, file in files.items():
        connection.ask(f"CREATE TABLE {dataset} ENGINE = Memory AS SELECT * FROM file('{file}', 'Parquet') ")
    with open_bill(list(files), engine="clickhouse", connection=connection) as bill:
        yield bill


@pytest.mark.parametrize("path", QUERIES, ids=NAMES)
def test_clickhouse_equals_duckdb(path: Path, duckdb_bill: Bill, clickhouse_bill: Bill) -> None:
    sql = path.read_text(encoding="utf-8")
    check_equal(sql, parameters_of(sql), duckdb_bill, clickhouse_bill)


def test_clickhouse_answers_about_things_as_duckdb(duckdb_bill: Bill, clickhouse_bill: Bill) -> None:
    check_things_equal(duckdb_bill, clickhouse_bill)


def test_a_tag_that_lacks_and_an_empty_one_are_told_apart(clickhouse_bill: Bill) -> None:
    """`JSONExtractString` gives '' for both, and for what is no text."""
    cell = '{"a": "x", "b": "", "c": 1.5, "d": true, "f": " 8 ", "h": [{"i": 1}, {"i": 2}]}'
    looked_up = ", ".join(
        f"JSON_EXTRACT_STRING(cell, '$.{key}') AS {key}" for key in ("a", "b", "c", "d", "e")
    )
    (row,) = clickhouse_bill.engine.query(
        f"""SELECT {looked_up}, TRY_CAST(JSON_EXTRACT_STRING(cell, '$.f') AS DOUBLE) AS f,
        TRY_CAST(JSON_EXTRACT_STRING(cell, '$.a') AS DOUBLE) AS g, JSON_EXTRACT_STRING(cell, '$.h[1].i') AS h
        FROM (SELECT '{cell}' AS cell) AS cells"""
    ).to_dict("records")
    assert row == {"a": "x", "b": "", "c": "1.5", "d": "true", "e": pytest.approx(float("nan"), nan_ok=True),
                   "f": 8.0, "g": pytest.approx(float("nan"), nan_ok=True), "h": "2"}  # fmt: skip


def test_clickhouse_tells_what_was_bought_once_as_duckdb(duckdb_bill: Bill, clickhouse_bill: Bill) -> None:
    assert bought_once(clickhouse_bill, "BilledCost") == bought_once(duckdb_bill, "BilledCost") != ()
    days = [once_by_day(bill, "ServiceName", "BilledCost") for bill in (duckdb_bill, clickhouse_bill)]
    assert days[0]["cost"].tolist() == pytest.approx(days[1]["cost"].tolist())


def test_clickhouse_sums_the_days_of_scopes_as_duckdb(duckdb_bill: Bill, clickhouse_bill: Bill) -> None:
    check_days_equal(duckdb_bill, clickhouse_bill)
