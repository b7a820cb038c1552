"""The compiled copy of a snapshot: one npz of codes, numbers and texts, keyed by the snapshot's hash.

It only saves time. Whatever is wrong with it (unwritable, truncated, foreign) it is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from catalogs.cache.copies import cache_directory, open_copy, write_copy
from catalogs.tables.columns import load_columns
from catalogs.tables.table import Array, Coded, Table

_VERSION = "3"
_KEPT = 16


def _path(key: str) -> Path:
    return cache_directory() / f"catalog-{_VERSION}-{key[:32]}.npz"


def load_compiled(key: str, names: Sequence[str]) -> dict[str, Table] | None:
    """Load the compiled tables of a snapshot, or None when there is no usable copy.

    Args:
        key: hash of the snapshot.
        names: tables to load.
    """
    try:
        with open_copy(_path(key)) as file, np.load(file, allow_pickle=False) as arrays:
            layout = json.loads(arrays["layout"].tobytes())
            if layout["key"] != key:
                return None
            return {name: _unpack(name, layout["tables"][name], arrays) for name in names}
    # A cache may be damaged in any way; every failure to read it means only that it is not used.
    except Exception:  # noqa: BLE001
        return None


def save_compiled(key: str, tables: Mapping[str, Table]) -> None:
    """Write the compiled tables atomically; a cache that cannot be written is no error."""
    arrays: dict[str, Array] = {}
    layout: dict[str, Any] = {"key": key, "tables": {}}
    for name, table in tables.items():
        layout["tables"][name] = _pack(name, table, arrays)
    arrays["layout"] = np.frombuffer(json.dumps(layout).encode(), dtype=np.uint8)

    def write(file: BinaryIO) -> None:
        np.savez(file, allow_pickle=False, **arrays)

    write_copy(_path(key), write, pattern="catalog-*.npz", most=_KEPT)


def _pack(name: str, table: Table, arrays: dict[str, Array]) -> dict[str, Any]:
    """Put a table's columns into few arrays: opening each array of an npz costs more than its bytes."""
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
    arrays[f"{name}.codes"] = np.asarray(codes, dtype=np.int32).reshape(len(codes), rows)
    arrays[f"{name}.numbers"] = np.asarray(numbers, dtype=np.float64).reshape(len(numbers), rows)
    arrays[f"{name}.parsed"] = np.concatenate([np.empty(0), *parsed])
    return {"rows": rows, "columns": columns}


def _numbers(texts: Sequence[str]) -> Array | None:
    """Decimal texts as numbers, so that no later run parses them; None where one is no number."""
    try:
        return np.asarray([float(text) if text else np.nan for text in texts], dtype=np.float64)
    except ValueError:
        return None


def _unpack(name: str, layout: Mapping[str, Any], arrays: Mapping[str, Array]) -> Table:
    codes, numbers = iter(arrays[f"{name}.codes"]), iter(arrays[f"{name}.numbers"])
    parsed, start = arrays[f"{name}.parsed"], 0
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
