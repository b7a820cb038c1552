"""Rows of small frames: pandas looks each column up by its position, a review asked it two thousand times."""

from __future__ import annotations

from collections import namedtuple
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def _own(value: Any) -> Any:
    """Python's own value of a number of numpy."""
    return value.item() if type(value).__module__ == "numpy" else value


@lru_cache(256)
def _row_type(names: tuple[str, ...]) -> Any:
    return namedtuple("Row", names, rename=True)
