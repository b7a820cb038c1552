"""Tables that a user wrote: rows of a CSV text, its faults with the file and the line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from planner.errors import InputError


class _Lines:
    """A `csv.reader` whose own errors name the file: a cell above its limit, a line end inside a cell."""

    def __init__(self, text: str, path: Path) -> None:
        self._rows = csv.reader(io.StringIO(text), delimiter=delimiter_of(text.partition("\n")[0]))
        self._path = path

    @property
    def line_num(self) -> int:
        return self._rows.line_num

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        try:
            return next(self._rows)
        except csv.Error as error:
            what = str(error).partition(" - ")[0]
            raise InputError(
                f"{self._path}:{self.line_num}: cannot be read as CSV: {what}; quote the cell or save the file again"
            ) from None


def delimiter_of(header: str) -> str:
    """What parts the columns of a header: a comma, or a semicolon or tab as spreadsheets of many countries write."""
    return max(",;\t", key=header.count)


def csv_rows(text: str, path: Path) -> csv.DictReader[str]:
    """Return a reader of rows by column; `line_num` and `fieldnames` as usual.

    Args:
        text: the file's.
        path: for messages.
    """
    reader: csv.DictReader[str] = csv.DictReader(())
    reader.reader = _Lines(text, path)  # type: ignore[assignment]
    return reader
