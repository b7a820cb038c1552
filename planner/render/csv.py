"""CSV: the flat form of an answer, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from planner.render.text import clean

if TYPE_CHECKING:
    from planner.render.model import Answer, Cell

_FORMULA_STARTS = ("=", "+", "-", "@")


def render(answer: Answer, *, width: int, color: bool) -> str:
    """Render `answer` as CSV with a header, comma separated, lines ending in a newline."""
    del width, color  # data formats are always complete
    return csv_text(answer.columns, answer.rows)


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> str:
    """Rows under a header, safe to open in a spreadsheet; a cell that a row lacks is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return out.getvalue()


def _cell(value: Cell) -> str:
    """Return a cell's text; text that a spreadsheet would run is quoted, numbers stay numbers."""
    if value is None:
        return ""
    if isinstance(value, str):
        text = clean(value)
        return f"'{text}" if text.lstrip(" ").startswith(_FORMULA_STARTS) else text
    if not math.isfinite(value):
        return ""
    if isinstance(value, Decimal):
        return format(value, "f")
    return f"{float(value):.12g}" if isinstance(value, float) else str(int(value))
