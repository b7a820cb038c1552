"""Tables that a user wrote: rows of a CSV text, its faults with the file and the line."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from planner.errors import InputError

_LONGEST_NAME = 200  # characters of a column's name: beyond, what stands on the first line is no header
_SPACES = " \u00a0\u202f"
_WHOLE = rf"[-+−]?(?:[0-9]{{1,3}}(?P<thousands>(?:[.'’{_SPACES}][0-9]{{3}})+)|(?P<plain>[0-9]+))"
_NUMBER = re.compile(rf"\s*{_WHOLE}(?:,(?P<decimals>[0-9]+))?\s*")  # where a comma is the decimal sign
_QUOTED = re.compile(rf'"\s*{_WHOLE},[0-9]+\s*"')


class _Lines:
    """A `csv.reader` whose own errors name the file: a cell above its limit, a line end inside a cell."""

    def __init__(
        self, lines: Iterable[str], path: Path, delimiter: str, *, quoted: bool, commas: bool
    ) -> None:
        self._rows = csv.reader(
            lines, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
        )
        self._path = path
        self._is_first = True
        self._has_commas = commas
        self._line = 0
        self._held: Iterator[tuple[int, list[str]]] | None = None

    @property
    def line_num(self) -> int:
        return self._line

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        if self._held is not None:
            self._line, row = next(self._held)
            return row
        row = self._read()
        if self._has_commas:
            rest = list(self._rest())
            self._held = zip((line for line, _ in rest), with_points([row for _, row in rest]), strict=True)
        return row

    def _rest(self) -> Iterator[tuple[int, list[str]]]:
        line = self._line
        with contextlib.suppress(StopIteration):
            while True:
                row = self._read()
                yield self._line, row
        self._line = line

    def _read(self) -> list[str]:
        try:
            row = next(self._rows)
            self._line = self._rows.line_num
        except csv.Error as error:
            what = str(error).partition(" - ")[0]
            raise InputError(
                f"{self._path}:{self._rows.line_num}: cannot be read as CSV: {what}; quote the cell or save the file "
                "again"
            ) from None
        if self._is_first and any(len(name) > _LONGEST_NAME for name in row):
            raise InputError(
                f"{self._path}:{self._line}: the name of a column has over {_LONGEST_NAME} characters; the first "
                "line must name the columns"
            )
        self._is_first = False
        return row


def delimiter_of(header: str) -> str:
    """What parts the columns of a header: a comma, or a semicolon or tab as spreadsheets of many countries write."""
    return max(",;\t", key=header.count)


def csv_rows(
    text: str | io.StringIO, path: Path, *, delimiter: str | None = None, quoted: bool = True
) -> csv.DictReader[str]:
    """Return a reader of rows by column; `line_num` and `fieldnames` as usual.

    Columns of numbers that are surely written with decimal commas (`1.234,50`) come with points (`1234.50`).

    Args:
        text: the file's, or the file opened as text, at its beginning.
        path: for messages.
        delimiter: between columns; None: as the header says.
        quoted: whether a cell may stand in quotation marks.

    Raises:
        InputError: from the reader, at the line that cannot be read.
    """
    lines = io.StringIO(text) if isinstance(text, str) else text
    if delimiter is None:
        delimiter = delimiter_of(lines.readline())
        lines.seek(0)
    commas = delimiter in ";\t" or (isinstance(text, str) and _QUOTED.search(text) is not None)
    reader: csv.DictReader[str] = csv.DictReader(())
    reader.reader = _Lines(lines, path, delimiter, quoted=quoted, commas=commas)  # type: ignore[assignment]
    return reader


def with_points(rows: list[list[str]]) -> list[list[str]]:
    """The rows with decimal points in the columns whose numbers are surely written with decimal commas.

    Sure is a column of numbers only, of which one has other than three digits after its comma, or before it a sign of
    thousands, a zero alone or more than three digits: `1,234` may be a thousand. Other columns stay as they are.

    Args:
        rows: cells, without the header.
    """
    width = max(map(len, rows), default=0)
    for at in range(width):
        cells = [row[at] for row in rows if at < len(row) and row[at].strip()]
        if not any("," in cell for cell in cells):
            continue
        numbers = [_NUMBER.fullmatch(cell) for cell in cells]
        if all(numbers) and any(number is not None and _is_sure(number) for number in numbers):
            for row in rows:
                if at < len(row):
                    row[at] = re.sub(rf"[.'’{_SPACES}]", "", row[at]).replace("−", "-").replace(",", ".")
    return rows


def _is_sure(number: re.Match[str]) -> bool:
    """Whether the comma of a number can only be a decimal sign: `1,234` may be a thousand."""
    decimals, plain = number["decimals"], number["plain"]
    return decimals is not None and (len(decimals) != 3 or plain is None or plain == "0" or len(plain) > 3)


def comma_hint(cell: str | None) -> str:
    """What to write in place of a number with a comma, as the end of a message; empty for other texts."""
    if cell is None or "," not in cell or not _NUMBER.fullmatch(cell):
        return ""
    return "; write decimals with a point and thousands without a sign"
