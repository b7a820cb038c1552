"""Engines by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from planner.errors import InputError
from planner.finops.engine.base import Engine
from planner.inputs.faults import near


class FileEngine(Engine, Protocol):
    """An engine that reads Parquet files itself."""

    def register_files(self, table: str, files: tuple[str, ...]) -> None:
        """Make Parquet files a table, with their names as `x_file`."""
        ...

    def register_view(self, name: str, sql: str) -> None:
        """Make a query in DuckDB's dialect a view."""
        ...


WAREHOUSES = ("bigquery", "snowflake", "databricks", "clickhouse", "trino", "athena", "redshift", "postgres")
ENGINES = ("duckdb", "spark", *WAREHOUSES)


def open_engine(name: str, *, temporary: Path, connection: Any = None) -> FileEngine:
    """Start an engine.

    Args:
        name: one of `ENGINES`.
        temporary: folder for what does not fit in memory; the caller removes it.
        connection: a SparkSession, or a DB-API or ADBC connection of the user's own.

    Raises:
        InputError: no such engine, or what it needs is missing.
    """
    if name == "duckdb":
        from planner.finops.engine.duckdb import DuckDbEngine

        return DuckDbEngine(temporary)
    if name == "spark":
        from planner.finops.engine.spark import SparkEngine

        return SparkEngine(connection, temporary)
    close = near(name, ENGINES)
    hint = f" (did you mean {close!r}?)" if close else ""
    raise InputError(f"no engine is called {name!r}{hint}; there are {', '.join(ENGINES)}")
