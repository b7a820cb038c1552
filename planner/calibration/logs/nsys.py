"""Nsight Systems: NVTX ranges around the steps, from its SQLite export or from `nsys stats -r nvtx_pushpop_trace`."""

from __future__ import annotations

import csv
import re
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

from planner.calibration.logs import Log, ReadOptions, read_text
from planner.errors import InputError

STEP_NAME = r"(train(ing)?[ _-]?)?(step|iter(ation)?|batch)[ _#:-]*\d*$"
_NOTE = "profiling itself slows the steps; a plain log is better evidence"
# ranges of push and pop, and of start and end
_QUERY = """
select coalesce(e.text, s.value), e.start, e.end, e.globalTid
from NVTX_EVENTS e left join StringIds s on s.id = e.textId
where e.end is not null and e.end > e.start order by e.start
"""


def read(path: Path, options: ReadOptions) -> Log:
    """Read the length of each range whose name looks like a step (`--step-name` says which)."""
    pattern = _pattern(options.step_name)
    with path.open("rb") as file:
        binary = file.read(16).startswith(b"SQLite format 3")
    ranges = _from_sqlite(path) if binary else _from_csv(path)
    tracks: dict[str, list[float]] = defaultdict(list)
    names: dict[str, int] = defaultdict(int)
    for name, seconds, track in ranges:
        names[name] += 1
        if pattern.fullmatch(name.strip()):
            tracks[track].append(seconds)
    if not tracks:
        common = ", ".join(sorted(names, key=lambda name: -names[name])[:5]) or "none"
        raise InputError(
            f"{path}: no NVTX range is named like a step (most common: {common}); wrap the step in "
            "torch.cuda.nvtx.range('step') or say which by --step-name"
        )
    # every rank of a node has its own track: the one with most steps stands for all
    best = max(tracks.values(), key=len)
    return Log("nsys", tuple(best), note=_NOTE)


def _pattern(text: str | None) -> re.Pattern[str]:
    try:
        return re.compile(text or STEP_NAME, re.IGNORECASE)
    except re.error as error:
        raise InputError(f"--step-name: {text!r} is not a regular expression: {error}") from None


def _from_sqlite(path: Path) -> list[tuple[str, float, str]]:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as base:
            rows = base.execute(_QUERY).fetchall()
    except sqlite3.Error as error:
        raise InputError(
            f"{path}: no table of NVTX ranges ({error}); export with `nsys export --type sqlite` from a run profiled "
            "with --trace=cuda,nvtx"
        ) from None
    return [(str(name or ""), (end - start) * 1e-9, str(track)) for name, start, end, track in rows]


def _from_csv(path: Path) -> list[tuple[str, float, str]]:
    lines = read_text(path).splitlines()
    # `nsys stats` writes progress before the table
    head = next(
        (number for number, line in enumerate(lines) if "Duration (ns)" in line and "Name" in line), None
    )
    if head is None:
        raise InputError(
            f"{path}: no header with 'Duration (ns)' and 'Name'; use `nsys stats -r nvtx_pushpop_trace -f csv`"
        )
    out = []
    for number, row in enumerate(csv.DictReader(lines[head:]), start=head + 2):
        text = str(row.get("Duration (ns)") or "")
        try:
            seconds = float(text.replace(",", "")) * 1e-9
        except ValueError:
            raise InputError(f"{path}:{number}: 'Duration (ns)' must be a number, got {text!r}") from None
        name = str(row.get("Name") or "").lstrip(":")
        out.append((name, seconds, f"{row.get('PID')}/{row.get('TID')}"))
    return out
