"""The data dictionary (columns.csv): names, types, units and bounds of every catalog table."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from catalogs.errors import CatalogError
from catalogs.tables.table import Array, Coded, Table

COLUMNS_FILE = Path(__file__).parents[1] / "columns.csv"
DATA_DIRECTORY = Path(__file__).parents[1] / "data"
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})(?:-([0-9]{2}))?")
_AGAIN = "refresh or import the catalog again"
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


def bundled_rows(name: str) -> list[dict[str, str]]:
    """Rows of `catalogs/data/NAME` as texts by column, in the order of the file."""
    with (DATA_DIRECTORY / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def load_columns() -> dict[str, tuple[Column, ...]]:
    """Read the data dictionary: table name to its columns, in order."""
    tables: dict[str, list[Column]] = {}
    with COLUMNS_FILE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            dtype, _, argument = row["dtype"].partition(":")
            column = Column(
                table=row["table"],
                name=row["column"],
                dtype=dtype,
                choices=tuple(argument.split("|")) if dtype == "one_of" else (),
                references=argument if dtype == "key" else "",
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
    typed = {column.name: _typed(column, texts, place) for column, texts in zip(columns, cells, strict=True)}
    return Table(typed, length=len(rows))


def check_cells(name: str, rows: Sequence[Sequence[str]], place: str) -> None:
    """Refuse rows that no fetcher stores: texts where the dictionary has numbers, dates or choices.

    Prices may be any number here: one that is none to pay (zero, negative, not finite) refuses its own offer later.

    Args:
        name: table name in the data dictionary.
        rows: the cells of each row.
        place: file name for messages.

    Raises:
        CatalogError: naming the row and the column.
    """
    columns = load_columns()[name]
    for at, row in enumerate(rows):
        if len(row) != len(columns):
            raise CatalogError(
                f"{place}: row {at + 2} has {len(row)} cells, expected {len(columns)}; {_AGAIN}"
            )
    for column, cells in zip(columns, zip(*rows, strict=True), strict=False):
        for text in dict.fromkeys(cells):
            fault = _cell_fault(column, text)
            if fault:
                row_number = cells.index(text) + 2
                raise CatalogError(
                    f"{place}: row {row_number}, column {column.name}: {text[:40]!r} {fault}; {_AGAIN}"
                )


def _cell_fault(column: Column, text: str) -> str:
    if not text:
        return "" if column.nullable or column.dtype in ("decimal", "text") else "is not a value"
    if column.dtype in ("number", "decimal"):
        value = _float(text)
        if value is None or (column.dtype == "number" and not math.isfinite(value)):
            return "is not a number"
        is_below = column.dtype == "number" and column.low is not None and value < column.low
        return f"is below {column.low:g}" if is_below else ""
    if column.dtype == "date" and not is_date(text):
        return "is not an ISO date or month"
    if column.dtype == "one_of" and text not in column.choices:
        return f"is not one of {', '.join(column.choices)}"
    return ""


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def is_date(text: str) -> bool:
    """Whether a text is a day or a month of the calendar: `2026-11-20`, `2026-11`.

    >>> is_date("2026-11"), is_date("2026-02-29"), is_date("2026-11-20T10:00")
    (True, False, False)
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    try:
        date(int(match[1]), int(match[2]), int(match[3] or 1))
    except ValueError:
        return False
    return True


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
    earlier = [column for column in column_names(name) if column not in later]
    if not later or header != earlier:
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
    expected = column_names(name)
    if tuple(header) == expected:
        return
    missing = [column for column in expected if column not in header]
    extra = [column for column in header if column not in expected]
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
