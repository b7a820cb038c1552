"""Shapes estimated before, kept beside the compiled catalog: a workload is planned again and again while it changes.

A copy only saves time (docs/adr/0004): its key is a hash over all that the shapes follow from (model, training, every
value of the hardware, node counts, the code and data of this package, numpy's version), it carries a checksum, and one
that cannot be read or written is no error. The file: the checksum, a line of JSON, the columns as they lie in memory,
each from a whole word on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from catalogs.cache.copies import cache_directory, open_copy, write_copy
from catalogs.tables.table import Array, Coded, Table
from planner.version import __version__

if TYPE_CHECKING:
    from planner.performance.spec import ModelSpec, TrainingSpec

MAX_COPIES = 32
MAX_BYTES = 4 << 20  # of one copy: sixteen thousand shapes
MOST_IN_MEMORY = 4  # tables of one workload: all sizes of all machines, sizes between, its present cluster
_PREFIX = "shapes-2-"
_SUM_BYTES = 32  # of sha256
_WORD_BYTES = 16  # columns start at multiples of it: numpy copies unaligned ones value by value
_LAST: dict[str, Table] = {}
_ROOT = Path(__file__).parents[2]
RULES = (
    "catalogs/tables/rows.py", "catalogs/tables/table.py", "planner/bundled.py", "planner/records.py",
    "planner/normal/*.py", "planner/releases/*.py",
    "planner/performance/*.py", "planner/performance/*/*.py",
    "planner/data/adapters.csv", "planner/data/engines.csv", "planner/data/engine_releases.csv",
    "planner/data/measured_layouts.csv",
    "planner/data/software.csv", "planner/data/vision_operators.csv",
    "planner/data/performance/*.csv",
)  # fmt: skip


def estimate_shapes(
    model: ModelSpec,
    training: TrainingSpec,
    hardware: Table,
    node_counts: Sequence[int],
    *,
    keep: bool = True,
) -> Table:
    """The table of `planner.performance.search.estimate_shapes`, from a copy where there is one.

    Args:
        model: as there; so are `training`, `hardware` and `node_counts`.
        training: see `model`.
        hardware: see `model`.
        node_counts: see `model`.
        keep: on disk; else the last few stay in memory, for the scenarios of one workload that follow each other.
    """
    key = _key(model, training, hardware, node_counts)
    if not keep:
        return _in_memory(key, model, training, hardware, node_counts)
    path = cache_directory() / f"{_PREFIX}{key[:40]}.bin"
    # A copy may be damaged in any way; every failure to read it means only that it is not used.
    with contextlib.suppress(Exception), open_copy(path) as file:
        return _read(file.read(2 * MAX_BYTES), key)
    from planner.performance.search import estimate_shapes as estimate

    shapes = estimate(model, training, hardware, node_counts)
    data = _written(shapes, key)
    if len(data) <= MAX_BYTES:
        write_copy(path, lambda file: file.write(data), pattern=f"{_PREFIX}*.bin", most=MAX_COPIES)
    return shapes


def _in_memory(
    key: str, model: ModelSpec, training: TrainingSpec, hardware: Table, node_counts: Sequence[int]
) -> Table:
    from planner.performance.search import estimate_shapes as estimate

    if key not in _LAST:
        shapes = estimate(model, training, hardware, node_counts)
        if len(_LAST) >= MOST_IN_MEMORY:
            _LAST.pop(next(iter(_LAST)), None)
        _LAST[key] = shapes
    return _LAST[key]


def _key(model: ModelSpec, training: TrainingSpec, hardware: Table, node_counts: Sequence[int]) -> str:
    """Hash over all that the shapes follow from."""
    digest = hashlib.sha256(_rules())
    digest.update(repr((model, training, hardware.n_rows, [int(count) for count in node_counts])).encode())
    for name in hardware:
        stored = hardware.column(name)
        values, texts = (stored.codes, stored.values) if isinstance(stored, Coded) else (stored, None)
        digest.update(repr((name, values.dtype.str, texts)).encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def rule_files() -> Iterator[Path]:
    """Code and data that decide what shapes are."""
    for pattern in RULES:
        yield from sorted(_ROOT.glob(pattern)) if "*" in pattern else [_ROOT / pattern]


@cache
def _rules() -> bytes:
    digest = hashlib.sha256(f"{__version__} {np.__version__} {sys.byteorder}".encode())
    for path in rule_files():
        with contextlib.suppress(OSError):
            digest.update(b"\0" + path.name.encode() + b"\0" + path.read_bytes())
    return digest.digest()


def _written(table: Table, key: str) -> bytes:
    columns: list[tuple[str, str, tuple[str, ...] | None]] = []
    blocks: list[bytes] = []
    for name in table:
        stored = table.column(name)
        values, texts = (stored.codes, stored.values) if isinstance(stored, Coded) else (stored, None)
        columns.append((name, values.dtype.str, texts))
        blocks.append(_padded(values.tobytes(), b"\0"))
    body = b"".join(blocks)
    head = _padded(json.dumps([table.n_rows, columns]).encode() + b"\n", b" ", last=1)[:-1]
    return _sum(key, head, body) + head + b"\n" + body


def _padded(block: bytes, filler: bytes, *, last: int = 0) -> bytes:
    """A block of whole words, so that what follows it is aligned; the filler goes before its `last` bytes."""
    end = len(block) - last
    return block[:end] + filler * (-len(block) % _WORD_BYTES) + block[end:]


def _read(data: bytes, key: str) -> Table:
    """The table of a copy.

    Raises:
        ValueError: it is not what was written for this key.
    """
    end = data.index(b"\n", _SUM_BYTES)
    head, body = data[_SUM_BYTES:end], memoryview(data)[end + 1 :]
    if _sum(key, head, body) != data[:_SUM_BYTES]:
        raise ValueError("damaged")
    rows, columns = json.loads(head)
    table_columns: dict[str, Array | Coded] = {}
    at = 0
    for name, kind, values in columns:
        column = np.frombuffer(body, dtype=kind, count=rows, offset=at)
        table_columns[name] = column if values is None else Coded(column, tuple(values))
        at += column.nbytes + -column.nbytes % _WORD_BYTES
    return Table(table_columns, length=rows)


def _sum(key: str, head: bytes, body: bytes | memoryview) -> bytes:
    digest = hashlib.sha256(key.encode())
    digest.update(head)
    digest.update(body)
    return digest.digest()
