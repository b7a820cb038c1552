"""Reading one tariff table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

from catalogs.errors import CatalogError

Row = dict[str, str]


def read_lists(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the values of `columns` (two or more) of each row, in that order.

    Raises:
        CatalogError: the file is missing, unreadable, or lacks a column.
    """
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.reader(stream)
            header = next(reader, [])
            lacking = [name for name in columns if name not in header]
            if lacking:
                raise CatalogError(
                    f"{path}: column(s) {', '.join(lacking)} missing; reinstall or re-import the tariffs"
                )
            yield from map(itemgetter(*(header.index(name) for name in columns)), reader)
    except (OSError, UnicodeDecodeError, csv.Error, IndexError) as error:
        raise CatalogError(
            f"{path}: unreadable tariff table ({error}); reinstall or re-import the tariffs"
        ) from error


def read_rows(path: Path, columns: tuple[str, ...]) -> list[Row]:
    """Return the rows of `path` as dicts of `columns`."""
    return [dict(zip(columns, values, strict=True)) for values in read_lists(path, columns)]


def number(text: str) -> float | None:
    """Parse a number, None where empty."""
    return float(text) if text else None
