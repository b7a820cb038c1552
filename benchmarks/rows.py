"""Rows of CSV files: cells as text or numbers, the reason a row is left out, and tables written whole."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from planner.files import write_atomically


class Skip(Exception):  # noqa: N818
    """The row cannot be predicted; the message is the reason counted."""


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read a CSV file as dicts of text; cells that a short line lacks are empty, a byte-order mark is no text."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [{k: v or "" for k, v in row.items() if k is not None} for row in csv.DictReader(file)]


def plain_name(name: str) -> str:
    """A model's name without its organisation, in small letters and with hyphens between its words."""
    return re.sub(r"[\s_]+", "-", re.sub(r"^[\w.-]+/", "", name.strip()).lower())


def write_csv(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Write a table, its head first; a reader, or a killed fit, finds the old table or the new one."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_atomically(path, text.getvalue())


def write_records(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write records below a head of the first one's keys, as `write_csv` does.

    Raises:
        ValueError: a record has a key that the first lacks.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue())


def number(row: dict[str, str], name: str) -> float | None:
    """A cell as a number, None when empty, no number, not finite or negative (sizes and rates never are)."""
    try:
        value = float(row.get(name) or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0.0 else None


def whole(value: float | None) -> int | None:
    """A count, None when not given."""
    return None if value is None else int(value)
