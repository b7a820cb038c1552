"""Trace formats by name, and the reader that finds out which one a file or folder is in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from planner.errors import InputError
from planner.files import files_below
from planner.files.limited import MAX_RECORD_BYTES, open_text
from planner.spot.trace import ZoneTrace
from planner.spot.traces.own import read_csv_log
from planner.spot.traces.public import Polarity, read_failed_text, read_rounds, read_sample_lists
from planner.spot.traces.run_length import read_run_length

Reader = Callable[[Sequence[Path], int | None, Polarity, float], tuple[ZoneTrace, ...]]


def _each(read: Callable[..., tuple[ZoneTrace, ...]]) -> Reader:
    def all_of(
        paths: Sequence[Path], gang: int | None, _: Polarity, tick_hours: float
    ) -> tuple[ZoneTrace, ...]:
        return tuple(trace for path in paths for trace in read(path, gang=gang, tick_hours=tick_hours))

    return all_of


FORMATS: Mapping[str, Reader] = {
    "run_length": _each(read_run_length),
    "sample_list": lambda paths, gang, polarity, tick: read_sample_lists(
        paths, gang=gang, polarity=polarity, tick_hours=tick
    ),
    "rounds": lambda paths, gang, _, tick: read_rounds(paths, gang=gang, tick_hours=tick),
    "failed_text": _each(read_failed_text),
    "csv": _each(read_csv_log),
}
"""Name to reader: run-length JSON; lists of samples (spot-traces and simulator JSON); rounds of the H100 prober; the
2022 text files; our CSV and probe logs."""


def read_traces(
    path: Path,
    *,
    format: str = "auto",
    gang: int | None = None,
    polarity: Polarity = "auto",
    tick_hours: float = 0.1,
) -> tuple[ZoneTrace, ...]:
    """Read a trace file, or all of a folder (in the order of their names, sub-folders too).

    Args:
        path: file or folder.
        format: a key of `FORMATS`, or `auto`.
        gang: instances needed together; None takes what the file says.
        polarity: what the values of sample lists mean, see `read_sample_lists`.
        tick_hours: grid of the answer, hours.

    Raises:
        InputError: nothing there can be read, or it reads the wrong way round.
    """
    if format not in ("auto", *FORMATS):
        raise InputError(f"format: {format!r} is not known; choose one of auto, {', '.join(FORMATS)}")
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    try:
        files = [p for p in files_below(path) if p.suffix in _SUFFIXES] if path.is_dir() else [path]
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read: {error.strerror}") from None
    groups: dict[str, list[Path]] = {}
    for file in files:
        kind = format_of(file) if format == "auto" else format
        if kind is None and not path.is_dir():
            raise InputError(f"{file}: no known trace format; known: {', '.join(FORMATS)}")
        if kind is not None:
            groups.setdefault(kind, []).append(file)
    if not groups:
        raise InputError(f"{path}: holds no trace in a known format ({', '.join(FORMATS)})")
    return tuple(
        trace for kind, found in groups.items() for trace in FORMATS[kind](found, gang, polarity, tick_hours)
    )


_SUFFIXES = (".json", ".csv", ".txt")


def format_of(path: Path) -> str | None:
    """The format a file is in, by its first lines; None where none fits."""
    try:
        text = open_text(path, MAX_RECORD_BYTES).read()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if path.suffix == ".json" or text.lstrip().startswith("{"):
        return _json_format(text)
    first = text.split("\n", 1)[0].strip().lower().split(",")
    if "available" in first and "zone" in first:
        return "csv"
    return "failed_text" if len(first) == 3 and first[0].strip().isdigit() else None


def _json_format(text: str) -> str | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    keys = set(found) if isinstance(found, dict) else set()
    for name, needed in (
        ("run_length", {"zones", "gap_seconds"}),
        ("sample_list", {"metadata", "data"}),
        ("rounds", {"zone_results", "scheduled_at"}),
    ):
        if needed <= keys:
            return name
    return None
