"""Every query gives on PostgreSQL what it gives on DuckDB, to the cent, on the same rows of the generated company."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from planner.finops.bought_once import bought_once, once_by_day
from planner.finops.read import Bill, open_bill
from planner.finops.read.columns import focus_columns
from tests.planner.finops.engine.drivers import Driver, need_driver, postgres_server
from tests.planner.finops.engine.golden import (
    NAMES,
    QUERIES,
    check_days_equal,
    check_equal,
    check_things_equal,
    parameters_of,
)

# As a database keeps a FOCUS export: exact amounts, moments with a time zone.
TYPES = {"text": "text", "json": "json", "number": "numeric", "moment": "timestamptz", "flag": "boolean"}


@pytest.fixture(scope="module")
def address(files: dict[str, Path]) -> Iterator[str]:
    """Of a server with a table for each dataset."""
    need_driver("psycopg")
    with postgres_server() as server:
        connection = Driver("psycopg", "connect", server.address)
        connection.ask("SET TIME ZONE 'UTC'")
        for dataset, file in files.items():
            kinds = {name: TYPES[column.kind] for name, column in focus_columns()[dataset].items()}
            cells = server.folder / f"{dataset}.csv"
            with duckdb.connect() as reader:
                names = reader.sql(f"SELECT * FROM '{file}'").columns
                reader.execute(f"COPY (SELECT * FROM '{file}') TO '{cells}' (HEADER false)")
            columns = ", ".join(f"{name.lower()} {kinds.get(name, 'text')}" for name in names)
            connection.ask(f"CREATE TABLE {dataset} ({columns})")
            connection.ask(f"COPY {dataset} FROM '{cells}' (FORMAT csv)")
        connection.ask("COMMIT")
        connection.close()
        yield server.address


@pytest.fixture(scope="module")
def postgres_bill(files: dict[str, Path], address: str) -> Iterator[Bill]:
    connection = Driver("psycopg", "connect", address)
    with open_bill([dataset.lower() for dataset in files], engine="postgres", connection=connection) as bill:
        yield bill


@pytest.mark.parametrize("path", QUERIES, ids=NAMES)
def test_postgres_equals_duckdb(path: Path, duckdb_bill: Bill, postgres_bill: Bill) -> None:
    sql = path.read_text(encoding="utf-8")
    check_equal(sql, parameters_of(sql), duckdb_bill, postgres_bill)


def test_postgres_answers_about_things_as_duckdb(duckdb_bill: Bill, postgres_bill: Bill) -> None:
    check_things_equal(duckdb_bill, postgres_bill)


def test_the_bill_is_rich_and_its_tables_are_counted(duckdb_bill: Bill, postgres_bill: Bill) -> None:
    rows = {source.dataset: source.rows for source in postgres_bill.sources}
    assert rows == {source.dataset: source.rows for source in duckdb_bill.sources}
    assert 5_000 < rows["CostAndUsage"] < 20_000
    assert min(rows.values()) > 0


def test_cells_that_are_no_number_or_no_json_are_unknown(address: str) -> None:
    """PostgreSQL ends a query at the first text that its casts do not read; the others go on without it."""
    connection = Driver("psycopg", "connect", address)
    connection.ask(
        "CREATE TABLE odd AS SELECT timestamptz '2026-10-03 00:00+00' AS chargeperiodstart, 1.0 AS billedcost, 1.0 AS "
        "effectivecost, 'USD' AS billingcurrency, 'Usage' AS chargecategory, cell AS skupricedetails FROM (VALUES "
        """('{"GpuCount": "8"}'), ('{"GpuCount": " 1e1 "}'), ('{"GpuCount": "eight"}'), ('{"GpuCount": "1e999"}'), """
        "(''), (NULL)) AS cells(cell)"
    )
    sql = "SELECT SUM(TRY_CAST(JSON_EXTRACT_STRING(SkuPriceDetails, '$.GpuCount') AS DOUBLE)) AS gpus FROM focus"
    with open_bill(["odd"], engine="postgres", connection=connection) as bill:
        assert bill.engine.query(sql)["gpus"][0] == 18


def test_amounts_come_as_numbers_through_adbc_too(
    files: dict[str, Path], address: str, duckdb_bill: Bill
) -> None:
    """The driver of `connections.csv`: it gives exact amounts as texts."""
    need_driver("adbc_driver_postgresql")
    connection = Driver("adbc_driver_postgresql.dbapi", "connect", address)
    sql = (
        "SELECT x_day, ServiceName, COUNT(*) AS n, SUM(EffectiveCost) AS cost, CAST(SUM(BilledCost) AS DECIMAL(18, 2)) "
        "AS exact, SUM(CASE WHEN x_list_known THEN 1 ELSE 0 END) AS known FROM focus GROUP BY x_day, ServiceName"
    )
    with open_bill(["costandusage"], engine="postgres", connection=connection) as bill:
        check_equal(sql, {}, duckdb_bill, bill)


def test_postgres_tells_what_was_bought_once_as_duckdb(duckdb_bill: Bill, postgres_bill: Bill) -> None:
    assert bought_once(postgres_bill, "BilledCost") == bought_once(duckdb_bill, "BilledCost") != ()
    days = [once_by_day(bill, "ServiceName", "BilledCost") for bill in (duckdb_bill, postgres_bill)]
    assert days[0]["cost"].tolist() == pytest.approx(days[1]["cost"].tolist())


def test_postgres_sums_the_days_of_scopes_as_duckdb(duckdb_bill: Bill, postgres_bill: Bill) -> None:
    """PostgreSQL refused the sum of all: "non-integer constant in GROUP BY"."""
    check_days_equal(duckdb_bill, postgres_bill)
