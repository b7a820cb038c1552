"""Tags of large bills, whose texts cost more to read than all other columns together: one reading instead of two.

A cell that is not JSON ends a query, so cells are looked through when a bill is opened. A reader that itself reads all
tags (`planner.finops.review.short_tags`) can do that on its way: it opens the bill with `tags_later`, the engine gives
such cells no value, and what it met of them is a finding as of opening (`with_bad_tags`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.finops.engine.duckdb import DuckDbEngine
from planner.finops.read.cells import bad_cells
from planner.finops.read.model import Finding, worst_first
from planner.finops.read.select import text

if TYPE_CHECKING:
    from planner.finops.read.files import BillFile
    from planner.finops.read.model import Bill
    from planner.finops.read.stage import Stager

MANY_ROWS = 300_000  # of smaller bills the texts are read soon enough
LONG_TEXT = 150  # characters in the mean; the KPI `allocation` does not sum by longer texts either
SAMPLE = 20_000


def mean_length_sql(column: str, table: str) -> str:
    """The mean length of a sample of texts."""
    sample = f"SELECT {column} AS one FROM {table} WHERE {column} IS NOT NULL LIMIT {SAMPLE}"
    return f"SELECT AVG(LENGTH(one)) AS mean FROM ({sample}) AS texts"


def has_long(stager: Stager, file: BillFile, name: str) -> bool:
    """Whether a Parquet file has many rows, with long texts in a column."""
    (rows,) = stager.one(file, f"SELECT SUM(num_rows) FROM PARQUET_FILE_METADATA({text(str(file.path))})")
    if int(str(rows or 0)) < MANY_ROWS:
        return False
    (mean,) = stager.one(file, mean_length_sql(name, stager.table(file)))
    return mean is not None and float(str(mean)) > LONG_TEXT


def with_bad_tags(bill: Bill) -> Bill:
    """The bill with findings of the tags that are no JSON, by file; these have no value from here on."""
    frame = bill.engine.query(
        "SELECT x_source, COUNT(*) AS n, MIN(Tags) AS example FROM focus WHERE Tags <> '' AND NOT JSON_VALID(Tags) "
        "GROUP BY x_source ORDER BY x_source"
    )
    found = [
        Finding(
            "warning", "bad_cells", bad_cells(path, "Tags", "JSON", example, int(count)), path, int(count)
        )
        for path, count, example in frame.itertuples(index=False)
    ]
    if isinstance(bill.engine, DuckDbEngine):
        bill.engine.without_bad_json("focus", "Tags")
    return replace(bill, findings=worst_first((*bill.findings, *found)))
