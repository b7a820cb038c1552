"""The embedded engine: DuckDB with a memory limit, spilling to a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.finops.engine.base import Parameter
from planner.finops.engine.dialects import bind

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

MEMORY_LIMIT = "700MB"  # leaves the process under 1 GB; more rows than fit are sorted and grouped on disk


class DuckDbEngine:
    """DuckDB inside the process.

    Attributes:
        connection: for set-up by the readers; queries go through `query`.
    """

    name = "duckdb"
    dialect = "duckdb"

    def __init__(self, temporary: Path | None = None, *, memory_limit: str = MEMORY_LIMIT) -> None:
        import duckdb

        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory_limit,
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,  # no answer depends on the network
        }
        if temporary is not None:
            config["temp_directory"] = str(temporary / "spill")
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect(config=config)
        self.connection.execute(f"SET threads = {max(1, min(os.cpu_count() or 1, 8))}")
        self.connection.execute("SET TimeZone = 'UTC'")
        # In a notebook without ipywidgets there is no bar, and even switching it off is an error.
        if self.connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (True,):
            self.connection.execute("SET enable_progress_bar = false")

    def query(self, sql: str, parameters: Mapping[str, Parameter] | None = None) -> pd.DataFrame:
        """Run one query; see `Engine.query`."""
        import duckdb

        text = bind(sql, parameters or {}).sql(self.dialect)
        try:
            return self.connection.execute(text).df()
        except duckdb.OutOfMemoryException as error:
            raise InputError(memory_text(error)) from None
        except (duckdb.IOException, duckdb.InvalidInputException) as error:
            raise InputError(f"a file of the bill can no longer be read: {first_line(error)}") from None

    def register_files(self, table: str, files: tuple[str, ...]) -> None:
        """Make Parquet files a table, with their names as `x_file`."""
        names = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        # files of one table have the same columns, but not always in the same order
        self.connection.execute(
            f"CREATE OR REPLACE VIEW {table} AS "
            f"SELECT * FROM READ_PARQUET([{names}], union_by_name = true, filename = 'x_file')"
        )

    def register_view(self, name: str, sql: str) -> None:
        """Make a query a view."""
        self.connection.execute(f"CREATE OR REPLACE VIEW {name} AS {sql}")

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def first_line(error: Exception) -> str:
    """Return what a DuckDB error says, without its hints."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def memory_text(error: Exception) -> str:
    """Return the message for memory or a temporary disk that ran out."""
    return f"memory or the temporary disk ran out: {first_line(error)}; free space, or set TMPDIR to a larger disk"
