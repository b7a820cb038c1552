"""The embedded engine: DuckDB with a memory limit, spilling to a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from planner.errors import InputError, OutputError, PlannerError
from planner.finops.engine.base import Parameter
from planner.finops.engine.literals import duckdb_text

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

MEMORY_LIMIT = "350MB"  # leaves the process under 0.6 GB; more rows than fit are sorted and grouped on disk
WRITING_LIMIT = "700MB"  # for Parquet of many columns, whose row groups are held until they are whole
# Of so many rows a reading more, or a sort on disk, costs 10 CPU s: the process may have 1 GB.
LARGE_ROWS, LARGE_LIMIT = 25_000_000, "600MB"
_MORE = (WRITING_LIMIT, "1400MB", "2800MB")  # where a query holds more than it can put on disk
# Of a question to a small bill its columns, bound through views and files, cost more than its rows: 10 ms against 5.
# Writing the table costs 4 ms per 1,000 rows; from 100,000 rows on a review gets nothing back.
HELD_ROWS = 30_000
# Of a query over so few rows these cost more than they save; without them the rows, and their order, are the same.
_DEAR_PASSES = (
    *("common_subexpressions", "common_subplan", "expression_rewriter", "projection_placement"),
    "statistics_propagation",
)
_Answer = TypeVar("_Answer")


class DuckDbEngine:
    """DuckDB inside the process.

    Attributes:
        connection: for set-up by the readers; queries go through `query`.
        kept: names of the tables that `keep` made.
        held: names that `register_view` makes tables in memory (`hold`): of small ones, asked many times.
        rowless: KPIs that are known to have no rows (`planner.finops.kpis.rowless`).
        is_large: the bill is one of many rows, see `expect`.
        tries_json: JSON is read out of texts that may be none: those have no value, and end no query.
    """

    name = "duckdb"
    dialect = "duckdb"

    def __init__(self, temporary: Path | None = None, threads: int | None = None) -> None:
        """Connect.

        Args:
            temporary: a folder for what memory does not hold.
            threads: how many work on a query; by default one for each core, at most eight.
        """
        import duckdb

        self._temporary = temporary
        self.kept: set[str] = set()
        self.held: frozenset[str] = frozenset()
        self.rowless: frozenset[str] = frozenset()
        self.tries_json = False
        self._rows: dict[str, dict[str, int]] = {}
        self.is_large = False
        self._is_brief = False
        self._threads = threads or max(1, min(os.cpu_count() or 1, 8))
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": MEMORY_LIMIT,
            "threads": self._threads,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,  # no answer depends on the network
        }
        if temporary is not None:
            config["temp_directory"] = str(temporary / "spill")
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect(config=config)
        self.connection.execute("SET TimeZone = 'UTC'")
        # In a notebook without ipywidgets there is no bar, and even switching it off is an error.
        if self.connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (True,):
            self.connection.execute("SET enable_progress_bar = false")

    def query(self, sql: str, parameters: Mapping[str, Parameter] | None = None) -> pd.DataFrame:
        """Run one query; see `Engine.query`."""
        text = self._text(sql, parameters)
        return self._asked(lambda: self.connection.execute(text).df())

    def hold(self, *names: str) -> None:
        """Make tables in memory of views of these names, and plan the queries over them with less effort."""
        self.held = frozenset(names)
        self.plan(briefly=bool(names))

    def plan(self, *, briefly: bool) -> None:
        """Plan the coming queries with less effort, as is worth it over few rows, or with all."""
        if briefly == self._is_brief:
            return
        self._is_brief, passes = briefly, ""
        if briefly:
            known = {name for (name,) in self.rows("SELECT name FROM duckdb_optimizers()")}  # 1.4 lacks some
            passes = ",".join(name for name in _DEAR_PASSES if name in known)
        self.connection.execute(f"SET disabled_optimizers = '{passes}'")

    def expect(self, rows: int) -> None:
        """Give the queries of a large bill more memory before they go on on disk."""
        self.is_large = rows >= LARGE_ROWS
        if self.is_large:
            set_memory(self.connection, LARGE_LIMIT)

    def _text(self, sql: str, parameters: Mapping[str, Parameter] | None) -> str:
        return duckdb_text(sql, parameters or {}, tries_json=self.tries_json)

    def keep(
        self,
        name: str,
        sql: str,
        parameters: Mapping[str, Parameter] | None = None,
        keys: Sequence[str] = (),
        parts: int = 1,
    ) -> None:
        """Keep the rows of a query; see `Engine.keep`.

        They lie in files: memory is for what is asked of them. Few rows of a bill that is held are held too, which
        takes a twentieth less of a review of 400 rows.

        Args:
            name: as of `Engine.keep`.
            sql: as of `query`.
            parameters: as of `query`.
            keys: columns of `focus` that the query groups by.
            parts: in how many parts of `focus`, by these keys, it is asked: grouping on disk takes four times as long.
        """
        text = self._text(sql, parameters)
        self.kept.add(name)
        if self._temporary is None or (self.held and not keys):
            self._asked(lambda: self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {text}"))
            return
        texts = [text] if parts == 1 else list(_in_parts(text, keys, parts))
        files = [str(self._temporary / f"{name}-{number}.parquet") for number in range(len(texts))]
        quoted = ["'" + file.replace("'", "''") + "'" for file in files]
        for part, file in zip(texts, quoted, strict=True):
            self._asked(partial(self.connection.execute, f"COPY ({part}) TO {file} (FORMAT parquet)"))
        self.register_view(name, f"SELECT * FROM READ_PARQUET([{', '.join(quoted)}])")

    def count_groups(self, keys: Sequence[str]) -> int:
        """How many different values columns of `focus` have together, to a few percent."""
        ask = f"SELECT APPROX_COUNT_DISTINCT(HASH({', '.join(keys)})) FROM focus"
        count = self._asked(lambda: self.connection.execute(ask).fetchone())
        return int(count[0]) if count else 0

    def _asked(self, ask: Callable[[], _Answer]) -> _Answer:
        """Ask; where it cannot go on on disk, again with more memory, which this bill then keeps.

        Raises:
            InputError: no memory is enough, or a file of the bill has gone.
            OutputError: the temporary disk is full, and no memory is enough without it.
        """
        import duckdb

        for more in (*_MORE, None):
            try:
                return ask()
            except duckdb.Error as error:
                if isinstance(error, duckdb.OutOfMemoryException) and more is not None:
                    set_memory(self.connection, more)  # in which it may need no disk, where that is full
                    continue
                if (ended := ran_out(error)) is not None:
                    raise ended from None
                if not is_damage(error):
                    raise
                raise InputError(f"a file of the bill can no longer be read: {first_line(error)}") from None
        raise AssertionError("the last round returns or raises")

    def register_files(self, table: str, files: tuple[str, ...]) -> None:
        """Make Parquet files a table, with their names as `x_file`."""
        names = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        # files of one table have the same columns, but not always in the same order
        self.connection.execute(
            f"CREATE OR REPLACE VIEW {table} AS "
            f"SELECT * FROM READ_PARQUET([{names}], union_by_name = true, filename = 'x_file')"
        )

    def register_view(self, name: str, sql: str) -> None:
        """Make a query a view, or a table where its name is among those held."""
        if name in self.kept:  # a table of `keep` would be found before it
            self.connection.execute(f"DROP TABLE IF EXISTS temp.{name}")
        if name not in self.held:
            self.connection.execute(f"CREATE OR REPLACE VIEW {name} AS {sql}")
            return
        # one thread writes it: several leave its rows in another order each time, and sums with other last digits
        if self._threads > 1:
            self.connection.execute("SET threads = 1")
        self._asked(lambda: self.connection.execute(f"CREATE OR REPLACE TABLE {name} AS {sql}"))
        if self._threads > 1:
            self.connection.execute(f"SET threads = {self._threads}")

    def without_bad_json(self, name: str, column: str) -> None:
        """Give cells of a view's column that are no JSON no value."""
        kind = "TABLE" if name in self.held else "VIEW"
        self.held -= {name}
        self.connection.execute(f"ALTER {kind} {name} RENAME TO {name}_as_read")
        value = f"CASE WHEN JSON_VALID({column}) THEN {column} END"
        self.register_view(name, f"SELECT * REPLACE ({value} AS {column}) FROM {name}_as_read")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Answer a query in DuckDB's own words, for the readers: binding it would cost more than a small file."""
        return self._asked(lambda: self.connection.execute(sql).fetchall())

    def count_rows(self, files: Sequence[str]) -> int:
        """How many rows Parquet files have, by their footers."""
        return sum(self.rows_by_file(files).values())

    def rows_by_file(self, files: Sequence[str]) -> dict[str, int]:
        """How many rows each of these Parquet files has, by its footer."""
        names = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        if names not in self._rows:
            found = self.rows(f"SELECT file_name, num_rows FROM PARQUET_FILE_METADATA([{names}])")
            self._rows[names] = dict(found)
        return self._rows[names]

    def has_column(self, files: Sequence[str], name: str) -> bool:
        """Whether one of these Parquet files has a column of that name."""
        names = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        return bool(
            self.rows(f"SELECT 1 FROM PARQUET_SCHEMA([{names}]) WHERE LOWER(name) = '{name}' LIMIT 1")
        )

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def _in_parts(text: str, keys: Sequence[str], parts: int) -> Iterator[str]:
    for part in range(parts):
        own = f"SELECT * FROM main.focus WHERE HASH({', '.join(keys)}) % {parts} = {part}"
        yield f"WITH focus AS ({own}) SELECT * FROM ({text}) AS x"


def set_memory(connection: duckdb.DuckDBPyConnection, limit: str) -> None:
    """Let a connection use as much memory before it goes on on disk, such as `350MB`."""
    connection.execute(f"SET memory_limit = '{limit}'")


@contextmanager
def memory_to_write(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """More memory, for as long as Parquet of many columns is written."""
    set_memory(connection, WRITING_LIMIT)
    try:
        yield
    finally:
        set_memory(connection, MEMORY_LIMIT)


def is_damage(error: Exception) -> bool:
    """Whether an error of DuckDB is about what a file holds, not about the query.

    What its readers of Parquet say of damaged pages and footers has no class besides the base one.
    """
    import duckdb

    kinds = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException)
    return type(error) is duckdb.Error or isinstance(error, kinds)


def first_line(error: Exception) -> str:
    """Return what a DuckDB error says, without its hints."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def ran_out(error: Exception) -> PlannerError | None:
    """The error of memory or a disk that ran out; None of others."""
    import duckdb

    said = f"{first_line(error)}; free space, or set TMPDIR to a larger disk"
    # Of its temporary folder DuckDB uses nine tenths of what is free, and then names that setting.
    if any(word in str(error) for word in ("No space left", "max_temp_directory_size")):
        return OutputError(f"the temporary disk ran out: {said}")
    if isinstance(error, duckdb.OutOfMemoryException):
        return InputError(f"memory or the temporary disk ran out: {said}")
    return None
