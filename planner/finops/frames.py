"""Rows of small frames, in an order of their own.

Pandas looks each column up by its position before it gives rows: a review asked it two thousand times.
"""

from __future__ import annotations

from collections import namedtuple
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_FEW_ROWS = 300  # pandas takes 2 ms to look at the columns, and to sort so many takes less than that


def rows_of(frame: Any) -> Iterator[Any]:
    """Each row of a pandas frame as a named tuple, the values of `itertuples(index=False)`."""
    make = _row_type(tuple(map(str, frame.columns)))._make
    return map(make, zip(*(column for _, column in frame.items()), strict=True))


def records_of(frame: Any) -> list[dict[str, Any]]:
    """Each row of a pandas frame by its columns, the values of `to_dict("records")`."""
    names = [str(name) for name in frame.columns]
    columns = (
        map(_own, column) if column.dtype == object else column for _, column in frame.items()
    )  # a column of objects may have numbers of numpy
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def in_order(frame: Any) -> Any:
    """Rows by their names: engines give them in any order, and an answer must not depend on it."""
    import pandas as pd

    if len(frame) < 2:
        return frame.reset_index(drop=True)
    kinds = zip(frame.columns, frame.dtypes, strict=True)
    names = [name for name, kind in kinds if not pd.api.types.is_numeric_dtype(kind)]
    if not names:
        return frame.reset_index(drop=True)
    if len(frame) > _FEW_ROWS:
        return frame.sort_values(names, kind="stable", na_position="first").reset_index(drop=True)
    cells = zip(*(frame[name].to_numpy(dtype=object) for name in names), strict=True)
    keys = [
        tuple((True, one) if one is not None and one == one else (False, 0) for one in row) for row in cells
    ]
    places = sorted(range(len(keys)), key=keys.__getitem__)
    return frame.take(places).reset_index(drop=True)


def _own(value: Any) -> Any:
    """Python's own value of a number of numpy."""
    return value.item() if type(value).__module__ == "numpy" else value


@lru_cache(256)
def _row_type(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names, rename=True)
