"""Tables that a user wrote: rows of a CSV text, its faults with the file and the line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from planner.errors import InputError

_LONGEST_NAME = 200  # characters of a column's name: beyond, what stands on the first line is no header


class _Lines:
    """A `csv.reader` whose own errors name the file: a cell above its limit, a line end inside a cell."""

    def __init__(self, lines: Iterable[str], path: Path, delimiter: str, quoting: int) -> None:
        self._rows = csv.reader(lines, delimiter=delimiter, quoting=quoting)
        self._path = path
        self._is_first = True

    @property
    def line_num(self) -> int:
        return self._rows.line_num

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        try:
            row = next(self._rows)
        except csv.Error as error:
            what = str(error).partition(" - ")[0]
            raise InputError(
                f"{self._path}:{self.line_num}: cannot be read as CSV: {what}; quote the cell or save the file again"
            ) from None
        if self._is_first and any(len(name) > _LONGEST_NAME for name in row):
            raise InputError(
                f"{self._path}:{self.line_num}: the name of a column has over {_LONGEST_NAME} characters; the first "
                "line must name the columns"
            )
        self._is_first = False
        return row


def delimiter_of(header: str) -> str:
    """What parts the columns of a header: a comma, or a semicolon or tab as spreadsheets of many countries write."""
    return max(",;\t", key=header.count)


def csv_rows(
    text: str | io.StringIO, path: Path, *, delimiter: str | None = None, quoting: int = csv.QUOTE_MINIMAL
) -> csv.DictReader[str]:
    """Return a reader of rows by column; `line_num` and `fieldnames` as usual.

    Args:
        text: the file's, or the file opened as text, at its beginning.
        path: for messages.
        delimiter: between columns; None: as the header says.
        quoting: as `csv.reader` takes it.

    Raises:
        InputError: from the reader, at the line that cannot be read.
    """
    lines = io.StringIO(text) if isinstance(text, str) else text
    if delimiter is None:
        delimiter = delimiter_of(lines.readline())
        lines.seek(0)
    reader: csv.DictReader[str] = csv.DictReader(())
    reader.reader = _Lines(lines, path, delimiter, quoting)  # type: ignore[assignment]
    return reader
