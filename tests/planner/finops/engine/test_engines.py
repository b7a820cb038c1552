"""Parameters, dialects and connections."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError, OutputError
from planner.finops.engine import duckdb as engine_of_files
from planner.finops.engine.base import Parameter
from planner.finops.engine.dialects import DIALECTS, bind, emit_sql, parameter_names
from planner.finops.engine.duckdb import DuckDbEngine
from planner.finops.engine.registry import ENGINES, open_engine
from planner.finops.engine.warehouse import WarehouseEngine
from planner.finops.read import open_bill
from planner.finops.read.select import spelled
from planner.finops.review.parts import review_command
from planner.finops.things.ask import ask_things, keep_things
from planner.finops.things.together import Rate, keep_together
from tests.conftest import CliResult
from tests.planner.finops.read.test_open import line, write


@pytest.fixture(scope="module")
def engine() -> DuckDbEngine:
    return DuckDbEngine()


def test_parameters_are_values_and_no_text(engine: DuckDbEngine) -> None:
    sql = "SELECT :a AS a, ':a' AS text, CAST(:d AS DATE) AS d, x::INT AS x -- :not_this\nFROM (SELECT '1' AS x) AS t"
    assert parameter_names(sql) == ("a", "d")
    row = engine.query(sql, {"a": "o'x'; DROP TABLE t; --", "d": date(2026, 10, 1)}).iloc[0]
    assert (row["a"], row["text"], str(row["d"])[:10], row["x"]) == (
        "o'x'; DROP TABLE t; --",
        ":a",
        "2026-10-01",
        1,
    )


@given(
    st.one_of(
        st.text(),
        st.integers(-(2**53), 2**53),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
    )
)
def test_any_value_comes_back(value: str | int | float | bool) -> None:
    if isinstance(value, str) and "\x00" in value:
        return
    text = bind("SELECT :v AS v", {"v": value}).sql("duckdb")
    assert duckdb.execute(text).fetchall() == [(value,)]


@pytest.mark.parametrize(
    ("sql", "values", "text"),
    [
        ("SELECT :a AS a", {}, "needs a value for :a"),
        ("SELECT 1 AS a", {"b": 1}, "has no parameter :b; it has no parameters"),
        ("SELECT x, COUNT(*) FROM focus GROUP BY ALL", {}, "GROUP BY ALL"),
        ("SELECT x FROM focus QUALIFY ROW_NUMBER() OVER (ORDER BY x) = 1", {}, "QUALIFY"),
        ("DELETE FROM focus", {}, "one SELECT is needed"),
        ("SELECT 1 AS a; SELECT 2 AS b", {}, "one SELECT is needed"),
        ("SELECT (", {}, "cannot be read"),
    ],
)
def test_refused_queries(sql: str, values: dict[str, int], text: str) -> None:
    with pytest.raises(InputError, match=text.replace("(", "\\(")):
        bind(sql, values)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_tag_is_looked_up_in_every_dialect(dialect: str) -> None:
    text = emit_sql(
        "SELECT json_extract_string(Tags, :tag) AS t FROM focus", dialect, {"tag": '$."kube.io/x"'}
    )
    assert "kube.io/x" in text
    if dialect == "spark":
        assert "GET_JSON_OBJECT(Tags, '$[\\'kube.io/x\\']')" in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_values_are_told_by_their_letters_in_every_dialect(dialect: str) -> None:
    """Patterns are not: engines differ in how many matches they replace, and some read `g` as a position."""
    sql = f"SELECT {spelled('ChargeFrequency', 'given')} AS told FROM (SELECT 'ONE_TIME' AS given) AS cells"
    written = emit_sql(sql, dialect, {})
    assert "REGEXP" not in written.upper()
    back = sqlglot.transpile(written, read=dialect, write="duckdb")[0]
    assert duckdb.connect().sql(back).fetchall() == [("One-Time",)]


def test_an_unknown_dialect_or_engine_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no SQL dialect is called 'oracle'"):
        emit_sql("SELECT 1 AS a", "oracle")
    with pytest.raises(InputError, match="did you mean 'spark'"):
        open_engine("sparc", temporary=tmp_path)
    path = write(tmp_path / "a.csv", line())
    with pytest.raises(InputError, match="no engine is called 'sparc'"):
        open_bill([path], engine="sparc")


def warehouse() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "CREATE SCHEMA billing; CREATE TABLE billing.focus_export AS "
        "SELECT TIMESTAMP '2026-10-03' AS charge_period_start, "
        "2.5::DECIMAL(18, 6) AS billed_cost, 2.0 AS effective_cost, 'USD' AS billing_currency, "
        "'Usage' AS charge_category, '{\"team\": \"a\"}' AS tags, 'P' AS provider_name "
        "UNION ALL SELECT TIMESTAMP '2026-09-03', 1, 1, 'USD', 'Usage', NULL, 'P'"
    )
    return connection


def test_what_is_kept_is_asked_again_by_an_engine_that_may_not_write() -> None:
    months = {"start": date(2026, 10, 1), "end": date(2026, 11, 1)}
    months |= {"before_start": date(2026, 9, 1), "before_end": date(2026, 10, 1)}
    with open_bill(["billing.focus_export"], engine="postgres", connection=warehouse()) as bill:
        keep_things(bill.engine, months)
        (row,) = ask_things(bill.engine, "changes").to_dict("records")
        assert (row["provider"], row["cost_before"], row["cost_after"], row["other_cost"]) == ("P", 1, 2, 1)


@pytest.mark.parametrize("name", ["postgres", "trino"])
def test_a_table_of_a_warehouse_is_a_bill(name: str) -> None:
    """DuckDB stands for the warehouse: it reads what these engines' text has in common."""
    with open_bill(["billing.focus_export"], engine=name, connection=warehouse()) as bill:
        frame = bill.engine.query(
            "WITH own AS (SELECT * FROM focus WHERE x_month = :month) "
            "SELECT ServiceProviderName, SUM(BilledCost) AS cost FROM own GROUP BY ServiceProviderName",
            {"month": date(2026, 10, 1)},
        )
        assert frame.to_dict("records") == [{"ServiceProviderName": "P", "cost": 2.5}]
        assert bill.months == (date(2026, 9, 1), date(2026, 10, 1))
        assert [(s.path, s.rows, s.focus_version) for s in bill.sources] == [
            ("billing.focus_export", 2, "1.0")
        ]
        assert bill.engine.query("SELECT COUNT(*) AS n FROM InvoiceDetail")["n"][0] == 0


def test_a_connection_is_the_users_own_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_warehouse.py").write_text(
        "from tests.planner.finops.engine.test_engines import warehouse as connect\n"
        "def broken():\n    raise RuntimeError('password=hunter2')\n"
    )
    with open_bill(["billing.focus_export"], engine="postgres", connection="my_warehouse:connect") as bill:
        assert bill.currency == "USD"
    with pytest.raises(InputError) as caught:
        open_bill(["t"], engine="postgres", connection="my_warehouse:broken")
    assert "RuntimeError" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "connection", "text"),
    [
        ("t", None, "needs --connection"),
        ("t", "nothing", "write module:function, or a URL"),
        ("t", "no_such_module:connect", "no no_such_module:connect"),
        ("t", "trino://user:secret@host/x", "a URL is understood for"),
        ("billing.missing", "own", "trino refuses the query"),
        ("a.b.c.d", "own", "is not a table"),
        ("billing.other", "own", "has no FOCUS columns"),
    ],
)
def test_what_a_warehouse_refuses(table: str, connection: str | None, text: str) -> None:
    own = warehouse()
    own.execute("CREATE TABLE billing.other AS SELECT 1 AS x")
    with pytest.raises(InputError) as caught:
        open_bill([table], engine="trino", connection=own if connection == "own" else connection)
    assert text in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_query_that_cannot_go_on_on_disk_is_asked_again_with_more_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sql = "SELECT LENGTH(STRING_AGG(CAST(i AS VARCHAR), ',')) AS n FROM RANGE(3000000) AS numbers(i)"
    monkeypatch.setattr(engine_of_files, "MEMORY_LIMIT", "20MB")
    assert (
        DuckDbEngine().query(sql)["n"][0]
        == sum(9 * 10**k * (k + 2) for k in range(1, 6)) + 20 + 2_000_000 * 8 - 1
    )
    monkeypatch.setattr(engine_of_files, "_MORE", ())
    with pytest.raises(InputError, match="memory or the temporary disk ran out"):
        DuckDbEngine().query(sql)


def test_a_spill_that_finds_the_disk_full_is_told_apart_from_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB says "out of memory" for both; a disk that is full where no memory is enough is exit code 7."""
    monkeypatch.setattr(engine_of_files, "MEMORY_LIMIT", "20MB")
    engine = DuckDbEngine(tmp_path)
    engine.connection.execute("SET max_temp_directory_size = '1MB'")
    asked = ("numbers", "SELECT i, HASH(i)::VARCHAR AS name FROM RANGE(1000000) AS n(i) ORDER BY name")
    with monkeypatch.context() as no_more:
        no_more.setattr(engine_of_files, "_MORE", ())
        with pytest.raises(OutputError, match=r"the temporary disk ran out: .*TMPDIR") as caught:
            engine.keep(*asked)
    assert caught.value.exit_code == 7
    engine.keep(*asked)
    assert engine.rows("SELECT COUNT(*) FROM numbers") == [(1_000_000,)]
    full = OSError(28, "No space left on device")
    assert isinstance(engine_of_files.ran_out(full), OutputError)
    assert engine_of_files.ran_out(OSError(5, "Input/output error")) is None


def test_every_engine_has_a_dialect() -> None:
    assert set(ENGINES) <= set(DIALECTS)


def test_names_come_back_as_the_query_writes_them() -> None:
    class Capitals:
        """A cursor of a warehouse that folds names."""

        description = (("A_COST",), ("N",))
        sent = ""

        def cursor(self) -> Capitals:
            return self

        def execute(self, text: str) -> None:
            Capitals.sent = text

        def fetchall(self) -> list[tuple[float, int]]:
            return [(1.5, 2)]

        def close(self) -> None: ...

    engine = WarehouseEngine("snowflake", Capitals())
    frame = engine.query("SELECT SUM(BilledCost) AS a_cost, COUNT(*) AS n FROM focus")
    assert list(frame.columns) == ["a_cost", "n"]
    assert '"' not in Capitals.sent


def test_decimals_of_a_driver_become_numbers() -> None:
    engine = WarehouseEngine("postgres", warehouse())
    frame = engine.query("SELECT SUM(billed_cost) AS cost FROM billing.focus_export")
    assert frame["cost"].dtype == "float64"


@pytest.mark.parametrize(
    ("dialect", "written"),
    [
        ("snowflake", "TRY_CAST("),
        ("trino", "TRY_CAST("),
        ("bigquery", "SAFE_CAST("),
        ("databricks", "TRY_CAST("),
        ("redshift", "TRY_CAST("),
        ("clickhouse", "toFloat64OrNull("),
        ("postgres", "CASE WHEN"),
    ],
)
def test_a_cell_that_is_no_number_ends_no_query(dialect: str, written: str) -> None:
    sql = "SELECT TRY_CAST(JSON_EXTRACT_STRING(SkuPriceDetails, '$.GpuCount') AS DOUBLE) AS gpus FROM focus"
    assert written in " ".join(emit_sql(sql, dialect).split())


class Recorder:
    """A connection that keeps what it is told and answers every question with one row."""

    description = (("n", 20),)

    def __init__(self) -> None:
        self.said: list[str] = []

    def cursor(self) -> Recorder:
        return self

    def execute(self, text: str) -> None:
        self.said.append(text)

    def fetchall(self) -> list[tuple[int]]:
        return [(1,)]

    def close(self) -> None: ...


@pytest.mark.parametrize("engine", ["postgres", "redshift", "snowflake", "trino", "databricks", "clickhouse"])
def test_a_session_counts_days_in_utc_before_it_is_asked(engine: str) -> None:
    recorder = Recorder()
    WarehouseEngine(engine, recorder).query("SELECT COUNT(*) AS n FROM focus")
    *before, asked = recorder.said
    assert any("'UTC'" in said and "zone" in said.lower() for said in before)
    assert asked.startswith("SELECT")


def test_a_query_asks_for_the_columns_it_names() -> None:
    recorder = Recorder()
    engine = WarehouseEngine("postgres", recorder)
    inner = " UNION ALL ".join(
        f"SELECT a AS ListCost, b AS BilledCost, c AS Tags FROM {table}" for table in ("old", "new")
    )
    engine.views["focus"] = (
        f"SELECT *, ListCost > 0 AS x_known FROM ({inner}) AS charges WHERE BilledCost <> 0"
    )
    engine.query("SELECT COUNT(*) AS n FROM focus WHERE x_known")
    engine.query("SELECT COUNT(Tags) AS n FROM focus")
    engine.query("SELECT * FROM focus")
    known, tags, everything = (" ".join(said.split()) for said in recorder.said[-3:])
    assert "c AS Tags" not in known
    assert known.count("a AS ListCost") == known.count("b AS BilledCost") == 2
    assert "ListCost" not in tags
    assert tags.count("b AS BilledCost") == tags.count("c AS Tags") == 2
    assert all(everything.count(f"AS {name}") == 2 for name in ("ListCost", "BilledCost", "Tags"))


def test_what_commitments_save_reaches_a_warehouse_with_every_column_asked_for() -> None:
    """Only the first part of a union named its columns: those of the others were left out, and the review ended."""
    recorder = Recorder()
    engine = WarehouseEngine("postgres", recorder)
    values: dict[str, Parameter] = {"start": date(2026, 10, 1), "end": date(2026, 11, 1), "least": 1.0}
    keep_together(engine, values, [Rate("AWS", "EC2", share=0.9, plain=0.3, gpu=0.2)])
    engine.query("SELECT of_service, gpu_rate FROM x_rates")
    assert duckdb.execute(recorder.said[-1]).fetchall() == [("", 0), ("EC2", 0.2)]


def test_a_review_reaches_a_warehouse_and_its_commands_do_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., CliResult]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "our_warehouse.py").write_text(
        "from tests.planner.finops.engine.test_engines import warehouse as connect\n"
    )
    asked = ("review", "--focus", "billing.focus_export", "--engine", "postgres")
    refused = run_cli(*asked)
    assert (refused.code, "--connection" in refused.stderr) == (2, True)
    answer = run_cli(
        *asked, "--connection", "our_warehouse:connect", "--use-case", "service_names", "-o", "json"
    )
    assert answer.code == 0, answer.stderr
    with open_bill(["billing.focus_export"], engine="postgres", connection="our_warehouse:connect") as bill:
        command = review_command(SimpleNamespace(bill=bill, month=date(2026, 10, 1)), "--use-case list")  # type: ignore[arg-type]
    assert run_cli(*command.split()[1:]).code == 0
    monkeypatch.setenv("PLANNER_CONNECTION", "our_warehouse:connect")
    assert run_cli(*asked, "--use-case", "list").code == 0
    unused = run_cli("review", "--focus", "no.csv", "--connection", "our_warehouse:connect")
    assert (unused.code, "is for a warehouse" in unused.stderr) == (2, True)
