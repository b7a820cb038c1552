"""TensorBoard event files: scalars of step times, or the moments at which steps were logged.

A file is a row of records (8 bytes of length, a checksum, the data, a checksum), each an `Event` message of protocol
buffers (tensorflow/core/util/event.proto): 1 wall_time, 2 step, 5 summary; a value of the summary: 1 tag,
2 simple_value, 8 tensor (its float_val is 5, its tensor_content 4). These few fields are read here: the library that
also shows them brings a server.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from planner.calibration.logs import MAX_BYTES, Log, ReadOptions
from planner.errors import InputError
from planner.records import record

# Scalars that are seconds per step, by the tools that write them; the first that a file has counts.
_TIMES = (
    "iteration-time", "train_step_timing in s", "time_metrics/end_to_end(s)", "perf/step_time", "step_time",
    "train/step_time", "train/step_time_s",
)  # fmt: skip
_MOST_RECORD = 64 * 1024 * 1024
_HEADER = struct.Struct("<QI")
_WALL_NOTE = "the time between logged steps: evaluations and saves between them are in it"


@record(frozen=True)
class Scalar:
    """One value: its tag, the step, the moment in seconds, and the value, None where it is no scalar."""

    tag: str
    step: int
    moment: float
    value: float | None


def read(path: Path, options: ReadOptions) -> Log:
    """Read seconds per step."""
    del options
    series: dict[str, list[Scalar]] = defaultdict(list)
    for scalar in _scalars(path):
        series[scalar.tag].append(scalar)
    for tag in _TIMES:
        times = tuple(item.value for item in series.get(tag, ()) if item.value is not None and item.value > 0)
        if times:
            return Log("tensorboard", times, note=f"the scalar {tag}")
    logged = {tag: _between(items) for tag, items in series.items()}
    best = max(logged.values(), key=len, default=())
    if not best:
        raise InputError(
            f"{path}: no scalar of step times ({', '.join(_TIMES[:4])}, ...) and no two logged steps in this event file"
        )
    return Log("tensorboard", best, note=_WALL_NOTE)


def _between(items: list[Scalar]) -> tuple[float, ...]:
    """Seconds per step between logged steps, in the order of the file."""
    spans = ((later.moment - earlier.moment, later.step - earlier.step) for earlier, later in pairwise(items))
    return tuple(seconds / steps for seconds, steps in spans if steps > 0 and seconds > 0)


def _scalars(path: Path) -> Iterator[Scalar]:
    for record_data in _records(path):
        step, moment, summaries = 0, 0.0, []
        for number, wire, value in _fields(record_data, path):
            if number == 1 and wire == 1:
                moment = struct.unpack("<d", value)[0]
            elif number == 2 and wire == 0:
                step = int.from_bytes(value, "little")
            elif number == 5 and wire == 2:
                summaries.append(value)
        for summary in summaries:
            for number, wire, value in _fields(summary, path):
                if number == 1 and wire == 2:
                    tag, scalar = _value(value, path)
                    yield Scalar(tag, step, moment, scalar)


def _value(data: bytes, path: Path) -> tuple[str, float | None]:
    tag, scalar = "", None
    for number, wire, value in _fields(data, path):
        if number == 1 and wire == 2:
            tag = value.decode("utf-8", "replace")
        elif number == 2 and wire == 5:
            scalar = float(struct.unpack("<f", value)[0])
        elif number == 8 and wire == 2:
            scalar = _tensor(value, path)
    return tag, scalar


def _tensor(data: bytes, path: Path) -> float | None:
    """The value of a tensor that holds one 32-bit float."""
    for number, wire, value in _fields(data, path):
        whole = (number == 4 or number == 5) and wire == 2
        if (whole or (number == 5 and wire == 5)) and len(value) == 4:
            return float(struct.unpack("<f", value)[0])
    return None


def _records(path: Path) -> Iterator[bytes]:
    """The records; a last one that is cut short, as of a run still writing, is left out."""
    with path.open("rb") as file:
        while len(header := file.read(_HEADER.size)) == _HEADER.size:
            length, _ = _HEADER.unpack(header)
            if length > min(_MOST_RECORD, MAX_BYTES):
                raise InputError(f"{path}: is damaged: a record of {length:,} bytes")
            data = file.read(length)
            if len(data) < length or len(file.read(4)) < 4:
                return
            yield data


def _fields(data: bytes, path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Fields of a message: number, wire type, raw value (numbers as little-endian bytes)."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at, path)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _varint(data, at, path)
            yield number, wire, value.to_bytes(10, "little")
            continue
        if wire == 2:
            length, at = _varint(data, at, path)
        else:
            length = {1: 8, 5: 4}.get(wire, -1)
        if length < 0 or at + length > len(data):
            raise InputError(f"{path}: is damaged: a field of an event ends outside it")
        yield number, wire, data[at : at + length]
        at += length


def _varint(data: bytes, at: int, path: Path) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise InputError(f"{path}: is damaged: a number of an event has no end")
