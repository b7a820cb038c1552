"""Slurm: `sacct --parsable2`, one row per job (steps are left out, their accelerators are the job's)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from planner.errors import InputError
from planner.files.tables import csv_rows
from planner.finops.usage.cells import moment, number
from planner.finops.usage.model import Allocated, UsageFile, days_of

KIND = "Slurm sacct"
COLUMNS = "JobID,JobName,Account,User,Cluster,State,Start,End,ElapsedRaw,AllocTRES,NodeList"
REMEDY = f"TZ=UTC sacct -a -P -S 2026-10-01 -E 2026-11-01 -o {COLUMNS}"
_COMPLETED = ("COMPLETED", "RUNNING", "COMPLETING", "SUSPENDED", "PENDING", "REQUEUED", "RESIZING")
_ELAPSED = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9})(?:\.\d+)?")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12}))?")
_MAX_HOSTS = 100_000
_LONGEST_HOST = 255  # characters


def recognises(text: str) -> bool:
    """Whether the first line is sacct's header, in either of its forms."""
    first = text.split("\n", 1)[0]
    names = {name.strip() for name in first.split("|")}
    piped = bool(names & {"JobID", "JobIDRaw"}) and len(names) > 1  # -o puts the columns in any order
    return piped or bool(re.match(r"\s*JobID(Raw)?\s", first))


def read(path: str, text: str) -> UsageFile:
    """Accelerators of jobs by day and node.

    A job's accelerators are taken as spread evenly over its nodes: sacct does not say where they were.

    Raises:
        InputError: it is not --parsable2, or lacks a column or a readable cell.
    """
    if "|" not in text.split("\n", 1)[0]:
        raise InputError(f"{path}:1: sacct without --parsable2 cannot be read; export it with {REMEDY}")
    lines = csv_rows("\n".join(text.splitlines()), Path(path), delimiter="|", quoted=False)
    names = set(lines.fieldnames or ())
    lacking = [one for one in ("Start", "NodeList") if one not in names]
    lacking += [] if names & {"AllocTRES", "AllocGRES"} else ["AllocTRES"]
    lacking += [] if names & {"ElapsedRaw", "Elapsed", "End"} else ["ElapsedRaw"]
    if lacking:
        raise InputError(f"{path}:1: sacct lacks {', '.join(lacking)}; export it with {REMEDY}")
    allocations: list[Allocated] = []
    for row in lines:
        allocations += _job(row, f"{path}:{lines.line_num}")
    days = sorted({one.day for one in allocations})
    window = (
        frozenset(days[0] + timedelta(n) for n in range((days[-1] - days[0]).days + 1))
        if days
        else frozenset()
    )
    remarks = (
        "Slurm spreads a job's accelerators evenly over its nodes here, and its times count as UTC.",
        "Slurm does not say how busy they were; a DCGM export does.",
    )
    return UsageFile(path, KIND, tuple(allocations), days=window, remarks=remarks)


def _job(row: Mapping[str, str | None], place: str) -> Iterator[Allocated]:
    cells = {
        name: (cell or "").strip()
        for name, cell in row.items()
        if isinstance(name, str) and not isinstance(cell, list)
    }
    job = cells.get("JobID") or cells.get("JobIDRaw", "")
    gpus = _gpus(cells, place)
    if "." in job or not gpus or cells["Start"] in ("", "Unknown", "None"):
        return
    start = moment(cells["Start"], f"{place}: Start")
    nodes = hosts(cells["NodeList"], f"{place}: NodeList") or [""]
    state = (cells.get("State") or "COMPLETED").split()[0].rstrip("+")
    runs = tuple(
        dict.fromkeys(one for one in (cells.get("JobName", ""), job, cells.get("JobIDRaw", "")) if one)
    )
    places = tuple(one for one in (cells.get("Cluster", ""), cells.get("Account", "")) if one)
    team = cells.get("Account") or cells.get("User", "")
    for day, hours in days_of(start, _end(cells, start, place), place):
        each = hours * gpus / len(nodes)
        for node in nodes:
            yield Allocated(day, node, team, runs, places, each, 0.0 if state in _COMPLETED else each)


def _end(cells: Mapping[str, str], start: datetime, place: str) -> datetime:
    if raw := cells.get("ElapsedRaw", ""):
        return _after(start, number(raw, f"{place}: ElapsedRaw"), place)
    if elapsed := cells.get("Elapsed", ""):
        match = _ELAPSED.fullmatch(elapsed)
        if not match:
            raise InputError(f"{place}: Elapsed: {elapsed[:40]!r} is not a time like 1-02:03:04")
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return _after(start, 60.0 * (60.0 * (24.0 * days + hours) + minutes) + seconds, place)
    return start if cells["End"] in ("", "Unknown") else moment(cells["End"], f"{place}: End")


def _after(start: datetime, seconds: float, place: str) -> datetime:
    try:
        return start + timedelta(seconds=seconds)
    except OverflowError:
        raise InputError(
            f"{place}: {seconds:g} s after {start:%Y-%m-%d} is no moment of a calendar"
        ) from None


def _gpus(cells: Mapping[str, str], place: str) -> float:
    """Accelerators of a job: `gres/gpu=8`, else the sum of `gres/gpu:TYPE=`; of old versions `gpu:TYPE:8`."""
    total, typed = 0.0, 0.0
    for item in cells.get("AllocTRES", "").split(","):
        name, _, count = item.partition("=")
        if name == "gres/gpu":
            total = number(count, f"{place}: AllocTRES")
        elif name.startswith("gres/gpu:"):
            typed += number(count, f"{place}: AllocTRES")
    if total or typed:
        return total or typed
    old = [item.split(":") for item in cells.get("AllocGRES", "").split(",") if item.startswith("gpu:")]
    return sum(number(parts[-1].split("(")[0], f"{place}: AllocGRES") for parts in old)


def hosts(text: str, place: str) -> list[str]:
    """Names of a Slurm host list: `gpu[01-03,07],login1`.

    Raises:
        InputError: brackets do not match, or it names more hosts than a cluster has.
    """
    if text in ("", "None assigned", "(null)"):
        return []
    out: list[str] = []
    for part in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text):
        out += _expanded(part, place)
        if len(out) > _MAX_HOSTS:
            raise InputError(f"{place}: names more than {_MAX_HOSTS:,} hosts")
    if text.count("[") != text.count("]"):
        raise InputError(f"{place}: {text[:40]!r}: a bracket is not closed")
    return out


def _expanded(part: str, place: str) -> list[str]:
    """Names of one part of a host list, its ranges written out: `gpu[01-03]`."""
    head, *rest = _BRACKETS.split(part.strip())  # text, ranges, text, ...
    names, ranges, tails = [head], rest[::2], rest[1::2]
    if len(head) + sum(map(len, tails)) + len(ranges) > _LONGEST_HOST:
        raise InputError(f"{place}: {part[:40]!r}: a name of a host has over {_LONGEST_HOST} characters")
    for pieces, tail in zip(ranges, tails, strict=True):
        spans = [_RANGE.fullmatch(piece) for piece in pieces.split(",")]
        counted: list[str] = []
        for span in spans:
            if span is None:
                raise InputError(f"{place}: {part[:40]!r} is not a list of hosts like gpu[01-04]")
            low, high = span[1], span[2] or span[1]
            if (int(high) - int(low) + 1 + len(counted)) * len(names) > _MAX_HOSTS:
                raise InputError(f"{place}: names more than {_MAX_HOSTS:,} hosts")
            counted += [f"{number:0{len(low)}d}" for number in range(int(low), int(high) + 1)]
        names = [f"{name}{number}{tail}" for name in names for number in counted]
    return names
