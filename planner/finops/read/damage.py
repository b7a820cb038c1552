"""What is said of files that DuckDB cannot read."""

from __future__ import annotations

from pathlib import Path

from planner.finops.engine.duckdb import first_line, memory_text


def damaged(path: Path, kind: str, error: Exception) -> str:
    """Return the message for a file that DuckDB cannot read."""
    import duckdb

    if isinstance(error, duckdb.OutOfMemoryException) or "No space left" in str(error):
        return f"{path}: {memory_text(error)}"
    name = {"csv": "CSV", "json": "JSON", "parquet": "Parquet"}[kind]
    return f"{path}: cannot be read as {name}: {first_line(error)}; fetch the export again"


def duckdb_error() -> type[Exception]:
    """The class of DuckDB's errors, which is imported with it only."""
    import duckdb

    return duckdb.Error
