"""Reading rows of CSV files: cells as text or numbers, and the reason a row is left out."""

from __future__ import annotations

import csv
from pathlib import Path


class Skip(Exception):  # noqa: N818
    """The row cannot be predicted; the message is the reason counted."""


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read a CSV file as dicts of text."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(row: dict[str, str], name: str) -> float | None:
    """A cell as a number, None when empty or no number."""
    try:
        return float(row.get(name) or "")
    except ValueError:
        return None


def whole(value: float | None) -> int | None:
    """A count, None when not given."""
    return None if value is None else int(value)
