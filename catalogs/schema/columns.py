"""The data dictionary (columns.csv): names, types, units and bounds of every catalog table."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from catalogs.errors import CatalogError
from catalogs.table import Array, Coded, Table

COLUMNS_FILE = Path(__file__).parents[1] / "columns.csv"
DATA_DIRECTORY = Path(__file__).parents[1] / "data"
_LATER = {"instance_types": ("link_domain_accelerators", "allocation_unit")}


class Column(NamedTuple):
    """One column of the data dictionary.

    Attributes:
        table: table name.
        name: column name.
        dtype: `text`, `number`, `decimal`, `date`, `bool`, `one_of` or `key`.
        choices: allowed texts of a `one_of`.
        references: table whose key a `key` column holds.
        unit: unit in words.
        nullable: whether the cell may be empty.
        low: smallest allowed number, or None.
        high: largest allowed number, or None.
        description: what the column means.
    """

    table: str
    name: str
    dtype: str
    choices: tuple[str, ...]
    references: str
    unit: str
    nullable: bool
    low: float | None
    high: float | None
    description: str


@cache
def load_columns() -> dict[str, tuple[Column, ...]]:
    """Read the data dictionary: table name to its columns, in order."""
    tables: dict[str, list[Column]] = {}
    with COLUMNS_FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            dtype, _, rest = row["dtype"].partition(":")
            column = Column(
                table=row["table"],
                name=row["column"],
                dtype=dtype,
                choices=tuple(rest.split("|")) if dtype == "one_of" else (),
                references=rest if dtype == "key" else "",
                unit=row["unit"],
                nullable=row["nullable"] == "yes",
                low=float(row["min"]) if row["min"] else None,
                high=float(row["max"]) if row["max"] else None,
                description=row["description"],
            )
            tables.setdefault(column.table, []).append(column)
    return {name: tuple(columns) for name, columns in tables.items()}


def column_names(table: str) -> tuple[str, ...]:
    """Names of the columns of `table`, in order."""
    return tuple(column.name for column in load_columns()[table])


def make_table(name: str, rows: Sequence[Sequence[str]], place: str) -> Table:
    """Turn text rows in the dictionary's column order into a typed table.

    Args:
        name: table name in the data dictionary.
        rows: the cells of each row.
        place: file name for messages.

    Raises:
        CatalogError: when a row has the wrong number of cells or a number cannot be read.
    """
    columns = load_columns()[name]
    wrong = [at for at, row in enumerate(rows) if len(row) != len(columns)]
    if wrong:
        raise CatalogError(
            f"{place}: row {wrong[0] + 2} has {len(rows[wrong[0]])} cells, expected {len(columns)}"
        )
    cells: Iterable[Sequence[str]] = zip(*rows, strict=True) if rows else [()] * len(columns)
    made = {column.name: _typed(column, texts, place) for column, texts in zip(columns, cells, strict=True)}
    return Table(made, length=len(rows))


def read_csv_table(name: str, path: Path) -> Table:
    """Read a plain CSV table of the data dictionary.

    Raises:
        CatalogError: when the file is missing, unreadable or has other columns.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CatalogError(
            f"cannot read {path}: {error}; reinstall the package or run `python -m tools.import_catalog`"
        ) from error
    check_header(name, rows[0] if rows else [], str(path))
    return make_table(name, rows[1:], str(path))


def with_later_columns(name: str, rows: list[list[str]]) -> list[list[str]]:
    """Rows of a file, its header first, that an earlier version wrote: columns that came later are empty in it."""
    header = rows[0] if rows else []
    later = [column for column in _LATER.get(name, ()) if column not in header]
    kept = [column for column in column_names(name) if column not in later]
    if not later or header != kept:
        return rows
    places = [header.index(column) if column in header else -1 for column in column_names(name)]
    filled = [[*row, ""] for row in rows[1:] if len(row) == len(header)]
    if len(filled) < len(rows) - 1:
        return rows
    return [list(column_names(name)), *([row[place] for place in places] for row in filled)]


def check_header(name: str, header: Sequence[str], place: str) -> None:
    """Refuse a file whose header is not that of the data dictionary.

    Raises:
        CatalogError: naming missing and unexpected columns.
    """
    wanted = column_names(name)
    if tuple(header) == wanted:
        return
    missing = [column for column in wanted if column not in header]
    extra = [column for column in header if column not in wanted]
    detail = "; ".join(
        part
        for part in (
            f"missing {', '.join(missing)}" if missing else "",
            f"unexpected {', '.join(extra)}" if extra else "",
        )
        if part
    )
    raise CatalogError(
        f"{place}: wrong columns for {name} ({detail or 'wrong order'}); import the catalog again"
    )


def _typed(column: Column, texts: Sequence[str], place: str) -> Array | Coded:
    if column.dtype == "number":
        return _numbers(column, texts, place)
    if column.dtype == "bool":
        return np.asarray([text == "true" for text in texts], dtype=np.bool_)
    return Coded.encode(texts)


def _numbers(column: Column, texts: Sequence[str], place: str) -> Array:
    parsed: dict[str, float] = {"": np.nan}
    for text in set(texts):
        try:
            parsed[text] = float(text) if text else np.nan
        except ValueError as error:
            row = list(texts).index(text) + 2
            message = f"{place}: row {row}, column {column.name}: {text!r} is not a number"
            raise CatalogError(message) from error
    return np.asarray([parsed[text] for text in texts], dtype=np.float64)
