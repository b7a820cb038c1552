"""Reads the progress of a run: CSV or JSON lines of step and time, or a log that `planner calibrate` reads."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from planner.calibration.logs import read_log, read_text
from planner.calibration.logs.look import STEP, TIME
from planner.calibration.logs.progress import moment, number
from planner.errors import InputError
from planner.files.limited import read_start
from planner.files.tables import delimiter_of
from planner.tracking.model import MEASURES, Progress, Rows
from planner.tracking.row_order import in_order

MOST_BAD_RATIO = 0.5
MOST_ROWS = 5_000_000
_TOKENS = ("tokens", "tokens_done", "tokens_seen", "consumed_tokens", "total_tokens")
_SAMPLES = ("samples", "samples_done", "consumed_samples")
_NODES = ("nodes", "num_nodes", "instances")
_HOST = ("host", "hostname", "node", "rank")
_COLUMNS = "step,time and, where known, tokens,samples,nodes,loader_seconds,gpu_busy,checkpoint_seconds,network_seconds"


def read_progress(path: Path, kind: str = "auto") -> Progress:
    """Read a log.

    Args:
        path: CSV or JSON lines with `step` and `time`, or any log that `planner calibrate` reads.
        kind: `auto`, `progress`, or a format of `planner calibrate`.

    Raises:
        InputError: the file cannot be read, or has no progress in it; names the line and the remedy.
    """
    rows = _progress_rows(path) if kind in ("auto", "progress") else None
    if rows is not None:
        return in_order(rows)
    if kind == "progress":
        raise InputError(f"{path}: has no columns of progress; the header must name {_COLUMNS}")
    return _from_steps(path, kind)


def _progress_rows(path: Path) -> Rows | None:
    """The rows of a progress log; None where the file is of another kind."""
    with_head = _first_line(path)
    if with_head.lstrip().startswith("{"):
        return _gather(path, "jsonl", _objects(path)) if _is_progress_object(with_head) else None
    delimiter = delimiter_of(with_head)
    names = [known_as(name) for name in with_head.split(delimiter)]
    if "step" not in names or "time" not in names:
        return None
    return _csv_rows(path, names, delimiter)


def _first_line(path: Path) -> str:
    try:
        head = read_start(path, 1 << 16)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    if head.startswith(b"\x1f\x8b"):
        head = read_text(path)[: 1 << 16].encode()
    lines = head.decode("utf-8-sig", "replace").splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith("#")), None)
    if first is None:
        raise InputError(f"{path}: is empty: no step has been logged yet")
    return first


def _is_progress_object(line: str) -> bool:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and {"step", "time"} <= {known_as(str(name)) for name in row}


def _csv_rows(path: Path, names: list[str | None], delimiter: str) -> Rows:
    lines = (line for line in read_text(path).splitlines() if line.strip() and not line.startswith("#"))
    cells = csv.reader(lines, delimiter=delimiter)
    next(cells)
    columns = [(at, name) for at, name in enumerate(names) if name is not None]
    return _gather(path, "csv", ({name: row[at] for at, name in columns if at < len(row)} for row in cells))


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """A row of known columns per line; a line that is no object counts as a row without figures."""
    for line in read_text(path).splitlines():
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        fields = record.items() if isinstance(record, dict) else ()
        yield {kind: value for name, value in fields if (kind := known_as(str(name))) is not None}


def _gather(path: Path, kind: str, rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Columns of figures; rows without step or time are counted and left out.

    Raises:
        InputError: none is left, or most are no rows of progress.
    """
    values: dict[str, list[float]] = {}
    hosts: list[str] = []
    moments = bad = count = 0
    for row in rows:
        count += 1
        if count > MOST_ROWS:
            raise InputError(f"{path}: more than {MOST_ROWS:,} rows; log every tenth step, or cut the file")
        step, (time, is_moment) = number(row.get("step")), moment(row.get("time"))
        if not (math.isfinite(step) and step >= 0 and math.isfinite(time)):
            bad += 1
            continue
        moments += is_moment
        figures = {"step": step, "seconds": time}
        figures |= {name: _figure(name, text) for name, text in row.items() if name not in _OWN}
        for name in figures.keys() - values.keys():
            values[name] = [math.nan] * len(hosts)
        for name, column in values.items():
            column.append(figures.get(name, math.nan))
        hosts.append(str(row.get("host", "")))
    _check(path, count, bad, len(hosts), moments)
    notes = (f"{bad:,} of {count:,} rows left out: no step or no time in them",) if bad else ()
    return Rows(path.name, kind, values, hosts if any(hosts) else [], moments > 0, notes)


_OWN = ("step", "time", "host")


def _check(path: Path, count: int, bad: int, kept: int, moments: int) -> None:
    if not kept:
        raise InputError(f"{path}: none of its {count:,} rows has a step and a time; columns: {_COLUMNS}")
    if bad > MOST_BAD_RATIO * count:
        raise InputError(
            f"{path}: {bad:,} of {count:,} rows have no step or no time; is it a log of progress?"
        )
    if 0 < moments < kept:
        raise InputError(f"{path}: mixes timestamps and seconds: use one of them")


def _figure(name: str, value: Any) -> float:
    figure = number(value)
    return figure if name in ("tokens", "samples") or figure >= 0 else math.nan


def _from_steps(path: Path, kind: str) -> Progress:
    """A log of step times alone: seconds since its start are their sum."""
    log = read_log(path, kind)
    if log.unit not in ("seconds", "steps"):
        raise InputError(
            f"{path}: says {log.unit} per second and no steps: a log of progress has the columns {_COLUMNS}"
        )
    per_step = np.asarray(log.values if log.unit == "seconds" else [1.0 / value for value in log.values])
    per_step = np.concatenate([per_step[:1], per_step])  # the first row needs a row before it
    at = np.concatenate([[0.0], np.cumsum(per_step[1:] * log.steps)])
    step = np.arange(len(at), dtype=np.float64) * log.steps
    none = np.full(len(at), np.nan)
    note = "the log has step times only: waits, restarts and repeated steps are not in it"
    notes = tuple(text for text in (log.note, note) if text)
    return Progress(path.name, log.kind, at, False, step, none, none, {}, {}, notes)


def known_as(name: str) -> str | None:
    """What a column is: `step`, `time`, `tokens`, `samples`, `nodes`, `host`, a key of `MEASURES`, or None."""
    lowered = name.strip().strip('"').lower()
    kinds = {
        "step": STEP, "time": TIME, "tokens": _TOKENS, "samples": _SAMPLES, "nodes": _NODES, "host": _HOST, **MEASURES,
    }  # fmt: skip
    return next((kind for kind, names in kinds.items() if lowered in names), None)
