"""One copy as bytes: what it is of, a line of JSON and arrays as they lie in memory, under one checksum.

numpy's own `.npz` would do; opening one imports `zipfile`, which takes longer than all the reading. The file: the
checksum, the line, the arrays, each from a whole word on.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_SUM_BYTES = 8  # of a CRC-32 as text
_WORD_BYTES = 16  # arrays start at multiples of it: numpy copies unaligned ones value by value


def packed(key: str, head: Any, arrays: Sequence[Array]) -> bytes:
    """The bytes of a copy.

    Args:
        key: hash of all that the copy follows from.
        head: values of JSON.
        arrays: of numbers, of any shape.
    """
    shapes = [(array.dtype.str, array.shape) for array in arrays]
    blocks = [np.ascontiguousarray(array).tobytes() for array in arrays]
    body = b"".join(block + bytes(-len(block) % _WORD_BYTES) for block in blocks)
    line = json.dumps([key, head, shapes]).encode()
    line += b" " * (-(_SUM_BYTES + len(line) + 1) % _WORD_BYTES) + b"\n"
    return _sum(line + body) + line + body


def unpacked(data: bytes, key: str) -> tuple[Any, list[Array]]:
    """Head and arrays (read-only) of a copy.

    Raises:
        ValueError: it is damaged, or not of this key.
    """
    if data[:_SUM_BYTES] != _sum(memoryview(data)[_SUM_BYTES:]):
        raise ValueError("damaged")
    end = data.index(b"\n", _SUM_BYTES) + 1
    stored_key, head, shapes = json.loads(data[_SUM_BYTES:end])
    if stored_key != key:
        raise ValueError("of another key")
    arrays, at = [], end
    for kind, shape in shapes:
        count = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(data, dtype=kind, count=count, offset=at).reshape(shape)
        arrays.append(array)
        at += array.nbytes + -array.nbytes % _WORD_BYTES
    return head, arrays


def _sum(data: bytes | memoryview) -> bytes:
    return b"%08x" % zlib.crc32(data)
