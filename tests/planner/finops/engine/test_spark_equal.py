"""Every query gives on Spark what it gives on DuckDB, to the cent, on 300,000 rows of the generated company."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import duckdb
import pandas as pd
import pytest
from sqlglot import exp

from planner.finops.bought_once import bought_once, once_queries
from planner.finops.engine.dialects import DIALECTS, bind, emit_sql, parameter_names
from planner.finops.kpis import day_sums
from planner.finops.read import Bill, open_bill
from planner.finops.read.rates import load_rates
from planner.finops.things.ask import things_query
from tests.focus_company import make_company
from tests.planner.finops.engine.golden import (
    MONTHS,
    NAMES,
    QUERIES,
    THING_VALUES,
    THINGS,
    check_equal,
    check_same,
    check_things_equal,
    make_small_bill,
    parameters_of,
    rows_of,
)
from tests.planner.finops.read.test_typed_clocks import parquet
from tests.planner.finops.small_bill import each_day, write_bill


def _java_is_new_enough() -> bool:
    java = shutil.which("java")
    if java is None:
        return False
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = told.split('"')[1].split(".")[0] if '"' in told else "0"
    return version.isdigit() and int(version) >= 17


@pytest.fixture(scope="module")
def folder(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300,000 rows, which are made where Spark runs."""
    made = tmp_path_factory.mktemp("company")
    make_company(3, seed=11, rows_per_month=101_000, version="1.4", out=made)
    return made


@pytest.fixture(scope="module")
def duckdb_bill(folder: Path) -> Iterator[Bill]:
    with open_bill([folder]) as bill:
        yield bill


def start(builder: Any, tries: int = 3) -> Any:
    """Start a session, more than once where Java ends before it answers: on a busy machine it did."""
    try:
        return builder.getOrCreate()
    except Exception as error:
        if tries == 1 or getattr(error, "getCondition", str)() != "JAVA_GATEWAY_EXITED":
            raise
    return start(builder, tries - 1)


class _EndedError(RuntimeError):
    """As pyspark's own."""

    def getCondition(self) -> str:
        return str(self.args[0])


@pytest.mark.parametrize(
    ("ends", "starts"),
    [
        (["JAVA_GATEWAY_EXITED"] * 2, True),
        (["JAVA_GATEWAY_EXITED"] * 3, False),
        (["UNSUPPORTED_OPERATION"], False),
    ],
)
def test_a_java_that_ends_at_its_start_is_started_again(ends: list[str], starts: bool) -> None:
    builder = Mock()
    builder.getOrCreate.side_effect = [*map(_EndedError, ends), "session"]
    if starts:
        assert start(builder) == "session"
    else:
        with pytest.raises(_EndedError):
            start(builder)
    assert builder.getOrCreate.call_count == len(ends) + starts


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install '.[spark]'")
    if not _java_is_new_enough():
        pytest.skip("Spark needs Java 17 or newer, and there is none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # pyspark's note on pandas 3, which is not used here
        from pyspark.sql import SparkSession
    local = tmp_path_factory.mktemp("spark")
    started = start(
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(local))
        .config("spark.sql.warehouse.dir", str(local / "warehouse"))
        # eighty small queries, each run once: what pays is little planning and a quick compiler
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    )
    yield started
    started.stop()


@pytest.fixture(scope="module")
def spark_bill(folder: Path, session: Any) -> Iterator[Bill]:
    with open_bill([folder], engine="spark", connection=session) as bill:
        yield bill


@pytest.mark.parametrize("path", QUERIES, ids=NAMES)
def test_spark_equals_duckdb(path: Path, duckdb_bill: Bill, spark_bill: Bill) -> None:
    sql = path.read_text(encoding="utf-8")
    check_equal(sql, parameters_of(sql), duckdb_bill, spark_bill)


def test_spark_tells_what_was_bought_once_as_duckdb(duckdb_bill: Bill, spark_bill: Bill) -> None:
    things = bought_once(duckdb_bill, "BilledCost")
    assert things and bought_once(spark_bill, "BilledCost") == things
    for sql in once_queries("ServiceName", "BilledCost"):
        check_equal(sql, parameters_of(sql), duckdb_bill, spark_bill)


def test_spark_keeps_things_and_answers_about_them_as_duckdb(session: Any, tmp_path: Path) -> None:
    """On the bill that PostgreSQL and ClickHouse are asked about: Spark sorts 300,000 rows for a minute here."""
    files = list(make_small_bill(tmp_path).values())
    with (
        open_bill(files) as duckdb_bill,
        open_bill(files, engine="spark", connection=session) as spark_bill,
    ):
        check_things_equal(duckdb_bill, spark_bill)


def test_spark_sums_by_day_and_answers_over_the_sums_as_duckdb(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_sums, "MANY_ROWS", 1)
    files = list(make_small_bill(tmp_path).values())
    with (
        open_bill(files) as duckdb_bill,
        open_bill(files, engine="spark", connection=session) as spark_bill,
    ):
        day_sums.keep_day_sums(spark_bill)
        for path in (path for path in QUERIES if path.stem in day_sums.DAY_SUMS):
            sql = path.read_text(encoding="utf-8")
            over = day_sums.over_table(sql, day_sums.stands_for_focus(spark_bill.engine, path.stem))
            assert day_sums.TABLE in over
            given = parameters_of(sql)
            check_same(duckdb_bill.engine.query(sql, given), spark_bill.engine.query(over, given))


def test_what_is_kept_is_planned_without_the_bill(spark_bill: Bill) -> None:
    engine: Any = spark_bill.engine
    engine.keep("x_days", "SELECT x_day, COUNT(*) AS n FROM focus GROUP BY x_day")
    plans = [engine.session.table(name)._jdf.queryExecution().toString() for name in ("focus", "x_days")]
    assert ["parquet" in plan.lower() for plan in plans] == [True, False]


def test_two_bills_in_one_session_and_odd_names_of_files(
    spark_bill: Bill, session: Any, tmp_path: Path
) -> None:
    sql = "SELECT x_source, COUNT(*) AS n FROM focus GROUP BY x_source ORDER BY x_source"
    before = spark_bill.engine.query("SELECT COUNT(*) AS n FROM focus")["n"][0]
    paths = [tmp_path / "a b [1] %20.parquet", tmp_path / "größe.csv"]
    duckdb.connect().sql(
        "SELECT TIMESTAMP '2026-10-01' AS ChargePeriodStart, 1.0::DOUBLE AS BilledCost, 1.0::DOUBLE AS EffectiveCost"
    ).write_parquet(str(paths[0]))
    paths[1].write_text("ChargePeriodStart,BilledCost\n2026-10-02,2\n")
    with open_bill(paths, engine="spark", connection=session) as bill:
        assert list(bill.engine.query(sql)["x_source"]) == sorted(map(str, paths))
    assert spark_bill.engine.query("SELECT COUNT(*) AS n FROM focus")["n"][0] == before


def test_the_bill_is_large_enough(duckdb_bill: Bill) -> None:
    assert sum(source.rows for source in duckdb_bill.sources if source.dataset == "CostAndUsage") >= 300_000
    assert len(QUERIES) > 60


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "duckdb"])
def test_every_query_is_written_without_loss(dialect: str) -> None:
    """KPIs, use cases and things: refused where the dialect cannot read back what is written."""
    for path in QUERIES:
        sql = path.read_text(encoding="utf-8")
        assert emit_sql(sql, dialect, parameters_of(sql)), path.name
    for name in ("things", *THINGS):
        sql = things_query(name)
        values = {**MONTHS, **THING_VALUES, "absurd": 1e5}
        assert emit_sql(sql, dialect, {key: values[key] for key in parameter_names(sql)}), name
    for sql in once_queries("ServiceName", "EffectiveCost"):
        assert emit_sql(sql, dialect, parameters_of(sql))


def test_no_parameter_is_left_in_a_text() -> None:
    for path in QUERIES:
        sql = path.read_text(encoding="utf-8")
        assert not list(bind(sql, parameters_of(sql)).find_all(exp.Placeholder)), path.name


def test_spark_converts_currencies_as_duckdb(session: Any, tmp_path: Path) -> None:
    euros = each_day(date(2026, 10, 1), date(2026, 10, 20), 10, BillingCurrency="EUR")
    rows = [*euros, *each_day(date(2026, 10, 1), date(2026, 10, 20), 7)]
    path, rates = write_bill(tmp_path / "bill.csv", rows), tmp_path / "rates.csv"
    rates.write_text("date,from,to,rate\n2026-10,EUR,USD,1.1\n2026-10-07,EUR,USD,1.25\n", encoding="utf-8")
    sql = "SELECT x_day, SUM(EffectiveCost) AS cost, SUM(ListCost) AS list FROM focus GROUP BY x_day"
    found = []
    for engine, connection in (("duckdb", None), ("spark", session)):
        with open_bill([path], engine=engine, connection=connection, rates=load_rates(rates, "USD")) as bill:
            found.append(rows_of(bill.engine.query(sql)))
    pd.testing.assert_frame_equal(*found)
    assert found[0]["cost"].sum() == pytest.approx(20 * 7 + 6 * 11 + 14 * 12.5)


@pytest.mark.parametrize("moment", ["({0} AT TIME ZONE 'Asia/Shanghai')", "({0} + INTERVAL 5 HOUR)"])
def test_spark_reads_days_by_the_clock_of_billing_periods(session: Any, tmp_path: Path, moment: str) -> None:
    """Ahead of UTC with a zone, and behind it without one."""
    path, found = parquet(tmp_path / "bill.parquet", moment), []
    for engine, connection in (("duckdb", None), ("spark", session)):
        with open_bill([path], engine=engine, connection=connection) as bill:
            found.append(
                rows_of(bill.engine.query("SELECT x_day, SUM(BilledCost) AS cost FROM focus GROUP BY x_day"))
            )
    pd.testing.assert_frame_equal(*found)
    assert len(found[0]) == 61 and str(found[0]["x_day"].min())[:10] == "2026-09-01"
