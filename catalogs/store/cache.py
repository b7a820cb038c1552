"""The compiled copy of a snapshot: one file of codes, numbers and texts, keyed by the snapshot's hash.

It only saves time. Whatever is wrong with it (unwritable, truncated, foreign) it is ignored.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from catalogs.cache.arrays import packed, unpacked
from catalogs.cache.copies import cache_directory, open_copy, write_copy
from catalogs.tables.columns import load_columns
from catalogs.tables.table import Array, Coded, Table

_VERSION = "4"
_KEPT = 16
_MOST_BYTES = 1 << 30


def _path(key: str) -> Path:
    return cache_directory() / f"catalog-{_VERSION}-{key[:32]}.bin"


def load_compiled(key: str, names: Sequence[str]) -> dict[str, Table] | None:
    """Load the compiled tables of a snapshot, or None when there is no usable copy.

    Args:
        key: hash of the snapshot.
        names: tables to load.
    """
    try:
        with open_copy(_path(key)) as file:
            layout, arrays = unpacked(file.read(_MOST_BYTES), key)
        by_table = {table: arrays[3 * at : 3 * at + 3] for at, table in enumerate(layout)}
        return {name: _unpack(layout[name], *by_table[name]) for name in names}
    # A cache may be damaged in any way; every failure to read it means only that it is not used.
    except Exception:  # noqa: BLE001
        return None


def save_compiled(key: str, tables: Mapping[str, Table]) -> None:
    """Write the compiled tables atomically; a cache that cannot be written is no error."""
    arrays: list[Array] = []
    layout = {name: _pack(name, table, arrays) for name, table in tables.items()}
    data = packed(key, layout, arrays)

    def write(file: BinaryIO) -> None:
        file.write(data)

    write_copy(_path(key), write, pattern="catalog-*.bin", most=_KEPT)
    with contextlib.suppress(OSError):
        for former in cache_directory().glob("catalog-*.npz"):  # as versions before 4 wrote them
            former.unlink(missing_ok=True)


def _pack(name: str, table: Table, arrays: list[Array]) -> dict[str, Any]:
    """Put a table's columns into three arrays: codes, numbers, and the decimals among the texts."""
    columns: list[list[Any]] = []
    codes: list[Array] = []
    numbers: list[Array] = []
    parsed: list[Array] = []
    decimals = {column.name for column in load_columns()[name] if column.dtype == "decimal"}
    for column in table:
        stored = table.column(column)
        if isinstance(stored, Coded):
            texts = _numbers(stored.values) if column in decimals else None
            parsed += [] if texts is None else [texts]
            columns.append([column, "text" if texts is None else "decimal", list(stored.values)])
            codes.append(stored.codes)
        else:
            columns.append([column, stored.dtype.name, None])
            numbers.append(stored.astype(np.float64))
    rows = table.n_rows
    arrays += [
        np.asarray(codes, dtype=np.int32).reshape(len(codes), rows),
        np.asarray(numbers, dtype=np.float64).reshape(len(numbers), rows),
        np.concatenate([np.empty(0), *parsed]),
    ]
    return {"rows": rows, "columns": columns}


def _numbers(texts: Sequence[str]) -> Array | None:
    """Decimal texts as numbers, so that no later run parses them; None where one is not a number."""
    try:
        return np.asarray([float(text) if text else np.nan for text in texts], dtype=np.float64)
    except ValueError:
        return None


def _unpack(layout: Mapping[str, Any], all_codes: Array, all_numbers: Array, parsed: Array) -> Table:
    codes, numbers, start = iter(all_codes), iter(all_numbers), 0
    columns: dict[str, Array | Coded] = {}
    for column, kind, values in layout["columns"]:
        if kind == "text":
            columns[column] = Coded(next(codes), tuple(values))
        elif kind == "decimal":
            columns[column] = Coded(next(codes), tuple(values), parsed[start : start + len(values)])
            start += len(values)
        else:
            columns[column] = next(numbers).astype(kind, copy=False)
    return Table(columns, length=layout["rows"])
