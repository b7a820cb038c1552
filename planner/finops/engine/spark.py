"""Spark: the same queries through sqlglot on the user's own session, or on one inside the process."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from catalogs.errors import install_command
from planner.errors import InputError
from planner.finops.engine.base import Parameter
from planner.finops.engine.dialects import bind

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from sqlglot import exp

# Small answers over many queries: few partitions, no web page, nothing written into the working folder.
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.autoBroadcastJoinThreshold": "33554432",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
}
_READERS = 3  # of a named part of a query, from which on it is kept; each that is kept is one more job
_SHARED = "x_shared_"
_UNQUOTED = "/:@!$&'()*+,;=~-._"  # what a path in a URI may hold as it is


class SparkEngine:
    """A Spark session.

    Attributes:
        session: beside the user's, or one started here (and stopped by `close`).
        kept: names of the tables that `keep` made.
    """

    name = "spark"
    dialect = "spark"

    def __init__(self, session: Any = None, temporary: Path | None = None) -> None:
        self._own = session is None
        # views and settings of our own: the user's session, and another bill's, stay as they are
        self.session: Any = _start(temporary) if session is None else session.newSession()
        # moments of a bill are UTC; a session elsewhere would move charges into other days
        self.session.conf.set("spark.sql.session.timeZone", "UTC")
        self._views: list[str] = []
        self.kept: set[str] = set()

    def query(self, sql: str, parameters: Mapping[str, Parameter] | None = None) -> pd.DataFrame:
        """Run one query; see `Engine.query`. Dates and moments come as DuckDB gives them.

        Parts of it that are read often are worked out once, as DuckDB does; Spark would do it anew for each reader.
        """
        tree, held = bind(sql, parameters or {}), list[str]()
        with _told_in_words():
            try:
                for name, part in shared_parts(tree):
                    held.append(name)
                    self._of_tree(part).localCheckpoint().createOrReplaceTempView(name)
                return _frame(self._of_tree(tree))
            finally:
                for name in held:
                    self.session.catalog.dropTempView(name)

    def keep(self, name: str, sql: str, parameters: Mapping[str, Parameter] | None = None) -> None:
        """Keep the rows of a query in the memory and on the disks of Spark's executors; see `Engine.keep`.

        Cut off from how they were made, which Spark would plan again, down to the files, with each later query. It
        gives them back when the view is dropped.
        """
        with _told_in_words():
            frame = self._of_tree(bind(sql, parameters or {})).localCheckpoint()
        self.kept.add(name)
        self._view(name, frame)

    def _of_tree(self, tree: exp.Query) -> Any:
        from sqlglot import ErrorLevel

        return self.session.sql(tree.sql(self.dialect, unsupported_level=ErrorLevel.RAISE))

    def register_files(self, table: str, files: tuple[str, ...]) -> None:
        """Make Parquet files a table, with their names as `x_file`."""
        from pyspark.sql import functions

        # Spark tells files as URIs, with blanks and the like encoded
        encoded = [file for file in files if not re.fullmatch(r"[\w/.:=-]+", file, re.ASCII)]
        path = functions.regexp_replace(functions.col("_metadata.file_path"), "^file:/+", "/")
        name = path
        for file in encoded:
            name = functions.when(path == quote(file, safe=_UNQUOTED), file).otherwise(name)
        frame = self.session.read.parquet(*map(_escaped, files))
        self._view(table, frame.withColumn("x_file", name))

    def register_view(self, name: str, sql: str) -> None:
        """Make a query in DuckDB's dialect a view."""
        from sqlglot import ErrorLevel, parse_one

        text = parse_one(sql, read="duckdb").sql(self.dialect, unsupported_level=ErrorLevel.RAISE)
        self._view(name, self.session.sql(text))

    def _view(self, name: str, frame: Any) -> None:
        frame.createOrReplaceTempView(name)
        self._views.append(name)

    def close(self) -> None:
        """Drop the views; stop the session where it was started here."""
        if self._own:
            self.session.stop()
            return
        for name in self._views:
            self.session.catalog.dropTempView(name)


def shared_parts(tree: exp.Query) -> Iterator[tuple[str, exp.Query]]:
    """Take the named parts out of a query that `_READERS` places in it read, first ones first.

    Yields:
        A table's name, which the query reads in place of the part, and the part with those before it that it needs.
    """
    from sqlglot import exp

    before: list[exp.CTE] = []
    names = Counter(part.alias for part in tree.find_all(exp.CTE))
    for part in list(tree.ctes):
        name = part.alias
        readers = [table for table in tree.find_all(exp.Table) if table.name == name]
        if (
            len(readers) < _READERS or names[name] > 1
        ):  # which part of a name a place reads, is not looked into
            before.append(part)
            continue
        query = part.this.copy()
        own = [inner.pop() for inner in list(query.ctes)]
        for one in (*before, *own):
            query.with_(one.alias, one.this.copy(), copy=False)
        for table in readers:
            table.set("alias", table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name)))
            table.set("this", exp.to_identifier(_SHARED + name))
        part.pop()
        yield _SHARED + name, query


@contextmanager
def _told_in_words() -> Iterator[None]:
    """What Spark refuses, as an error of the input."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise InputError(f"Spark cannot run the query: {str(error).splitlines()[0]}") from error
        raise


def _start(temporary: Path | None) -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError(f"--engine spark needs pyspark: {install_command('spark')}") from None
    builder = SparkSession.builder.master("local[*]").appName("planner review")
    for key, value in _LOCAL.items():
        builder = builder.config(key, value)
    if temporary is not None:
        builder = builder.config("spark.local.dir", str(temporary))
        builder = builder.config("spark.sql.warehouse.dir", str(temporary / "warehouse"))
    try:
        return builder.getOrCreate()
    except Exception as error:  # noqa: BLE001  the JVM, the shell script before it or py4j may fail
        raise InputError(
            f"Spark does not start: {str(error).splitlines()[0]}; it needs Java 17 or newer (JAVA_HOME)"
        ) from None


def _escaped(file: str) -> str:
    """Keep Spark from reading a name as a glob."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", file)


def _frame(answer: Any) -> pd.DataFrame:
    import pandas as pd

    kinds = {field.name: field.dataType.typeName() for field in answer.schema.fields}
    rows = [tuple(row) for row in answer.collect()]
    frame = pd.DataFrame(rows, columns=list(kinds), dtype=object)
    for name, kind in kinds.items():
        if kind in ("date", "timestamp", "timestamp_ntz"):
            frame[name] = pd.to_datetime(frame[name]).astype("datetime64[us]")
        elif kind in ("double", "float", "decimal"):
            frame[name] = frame[name].astype("float64")
        elif kind in ("integer", "long", "short", "byte") and not frame[name].isna().any():
            frame[name] = frame[name].astype("int64")
        elif kind in ("integer", "long", "short", "byte"):
            frame[name] = frame[name].astype("float64")
        elif kind == "string":
            frame[name] = frame[name].astype("str")
    return frame
