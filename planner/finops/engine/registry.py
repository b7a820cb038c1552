"""Engines by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.workload.faults import near

if TYPE_CHECKING:
    from planner.finops.engine.base import Engine

WAREHOUSES = ("bigquery", "snowflake", "databricks", "clickhouse", "trino", "athena", "redshift", "postgres")
ENGINES = ("duckdb", "spark", *WAREHOUSES)


def open_engine(name: str, *, temporary: Path, connection: Any = None) -> Engine:
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
    close = near(name, ENGINES)
    hint = f" (did you mean {close!r}?)" if close else ""
    raise InputError(f"no engine is called {name!r}{hint}; there are {', '.join(ENGINES)}")
