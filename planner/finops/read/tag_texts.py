"""The tag texts by which the keys of a bill are known: all of a small bill, stretches of rows of a large one.

All texts of a large bill have many millions of keys. Rows at the beginning of a file would do for its first days only:
keys that are spelled in another way from some day on would be missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.finops.engine.duckdb import DuckDbEngine
from planner.finops.read.columns import COST
from planner.finops.read.model import ALL_TAGS, Conversion
from planner.finops.read.select import Group, dataset_sql, text

WHOLE_ROWS = 50_000  # a bill of at most so many is read whole
SAMPLE_ROWS = 20_000
STRETCHES = 16  # of consecutive rows, spread evenly over the files
MOST_FILES = 50
_ROW = "file_row_number"  # DuckDB's name of a row's place in a Parquet file; rows in between are not read


def texts_sql(
    reader: DuckDbEngine, groups: Sequence[Group], where: str = "", conversion: Conversion | None = None
) -> str:
    """The query of the different texts, the same rows each time.

    Args:
        reader: reads the files.
        groups: the files of the bill.
        where: condition of the view `focus`.
        conversion: that of the view `focus`.
    """
    files = [file for group in groups if group.dataset == COST for file in group.files]
    rows = reader.rows_by_file(files)
    is_small = sum(rows.values()) <= WHOLE_ROWS
    if is_small or not rows.keys() >= {*files} or reader.has_column(files, _ROW):
        return ALL_TAGS
    largest = sorted(rows, key=lambda file: (-rows[file], file))[:MOST_FILES]
    each = max(1, STRETCHES // len(largest))
    length = SAMPLE_ROWS // (each * len(largest))
    sampled = [
        replace(group, table=f"({' UNION ALL BY NAME '.join(parts)}) AS {group.table}")
        for group in groups
        if group.dataset == COST
        and (
            parts := [
                part
                for file in group.files
                if file in largest
                for part in _stretches(file, rows[file], each, length)
            ]
        )
    ]
    charges = dataset_sql(sampled, COST, where, conversion)
    return f"SELECT DISTINCT Tags AS tag_text FROM ({charges}) AS sampled WHERE Tags LIKE '{{%'"


def _stretches(file: str, rows: int, count: int, length: int) -> list[str]:
    """Selections of stretches of a file's rows, each in the middle of an equal part of the file."""
    starts = sorted({max(0, rows * (2 * part + 1) // (2 * count) - length // 2) for part in range(count)})
    read = f"SELECT * FROM READ_PARQUET({text(file)}, filename = 'x_file', {_ROW} = true)"
    return [f"{read} WHERE {_ROW} BETWEEN {start} AND {start + length - 1}" for start in starts]
