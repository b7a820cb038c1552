"""The results of a sweep as a file: Parquet (with the extra `review`) or CSV, the same bytes for the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.files import temporary_folder, write_atomically
from planner.workloads.sweeps.answer import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.workloads.sweeps.answer import Row

ENDINGS = (".parquet", ".csv")
_SQL = {
    "text": "VARCHAR",
    "date": "DATE",
    "integer": "INTEGER",
    "number": "DOUBLE",
    "money": "DECIMAL(18, 6)",
}


def check_ending(path: Path) -> None:
    """Refuse a file of another kind, and Parquet without what writes it: before the work, not after it.

    Raises:
        InputError: the ending is none of `ENDINGS`.
        ImportError: DuckDB is not installed.
    """
    if path.suffix not in ENDINGS:
        raise InputError(f"{path}: results are written as {' or '.join(ENDINGS)}")
    if path.suffix == ".parquet":
        import duckdb  # noqa: F401 - the message names the extra
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")


def write_results(rows: Sequence[Row], path: Path) -> None:
    """Write rows to a file whose ending names the format.

    Args:
        rows: in their order; keys are `COLUMNS`.
        path: where to; an old file is replaced when the new one is whole.

    Raises:
        InputError: the ending is unknown, or the folder may not be written.
        OutputError: the disk is full or fails.
    """
    check_ending(path)
    if path.suffix == ".csv":
        from planner.render.csv import csv_text

        write_atomically(path, csv_text(tuple(COLUMNS), rows))
        return
    write_atomically(path, _parquet(rows))


def _parquet(rows: Sequence[Row]) -> bytes:
    """One thread and the order of the rows: equal rows give equal bytes."""
    import shutil
    import tempfile

    import duckdb
    import pandas as pd

    columns = {
        name: pd.Series([None if row.get(name) is None else str(row[name]) for row in rows], dtype=object)
        for name in COLUMNS
    }
    typed = ", ".join(f'CAST("{name}" AS {_SQL[kind]}) AS "{name}"' for name, kind in COLUMNS.items())
    folder = temporary_folder(Path(tempfile.gettempdir()), "planner-sweep-")
    try:
        file = folder / "results.parquet"
        with duckdb.connect(config={"threads": 1, "autoinstall_known_extensions": False}) as connection:
            connection.register("texts", pd.DataFrame(columns))
            connection.execute(
                f"COPY (SELECT {typed} FROM texts) TO '{_quoted(file)}' (FORMAT parquet, COMPRESSION zstd)"  # noqa: S608
            )
        return file.read_bytes()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
