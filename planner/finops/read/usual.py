"""Cells of small CSV files read first as nearly all are spelled: decimal points, ISO moments, JSON objects.

What reads every spelling (`cells`) has two patterns for a number, and two with two lists of formats for a moment.
DuckDB compiles them for each column, which takes a third of the time in which a small file is read. A file in which the
usual spelling leaves a cell unread is read again with all of them, so values are the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.finops.read.cells import TOO_LARGE, USUAL
from planner.finops.read.columns import Kind
from planner.finops.read.files import BillFile


def is_usual(file: BillFile) -> bool:
    """Whether a file is a CSV whose dates and numbers may be spelled as usual."""
    return file.kind == "csv" and file.spelling == USUAL


def usual_cell(cell: str, kind: Kind) -> str:
    """Return the expression of a text cell's value: that of `read_cell`, or none.

    Args:
        cell: expression of the text.
        kind: what it holds.
    """
    if kind == "number":
        value = f"TRY_CAST({cell} AS DOUBLE)"
        return f"CASE WHEN ABS({value}) < {TOO_LARGE} THEN {value} END"
    if kind == "moment":
        begins = f"TRANSLATE(LEFT({cell}, 10), '123456789', '000000000') = '0000-00-00'"
        return f"CASE WHEN {begins} THEN TRY_CAST({cell} AS TIMESTAMPTZ) AT TIME ZONE 'UTC' END"
    if kind == "json":
        return f"CASE WHEN JSON_VALID({cell}) AND {cell} NOT LIKE '[%' THEN {cell} END"
    return cell


def unread_sql(cells: Mapping[str, tuple[str, str]]) -> str:
    """Return an expression that is an empty text where a cell has text and no value, else NULL.

    Args:
        cells: name -> value and raw cell.
    """
    tests = [f"({value} IS NULL AND TRIM({cell}) <> '')" for value, cell in cells.values()]
    return f"CASE WHEN {' OR '.join(tests) or 'FALSE'} THEN '' END"
