"""The workloads of a suite and what is published of each.

A suite is a folder with `workloads/*.yaml` and `index.csv`, or with the files themselves. Where a workload has no row
in the index, its leading comments are read: class, published hardware and hours, source, what cannot be expressed.

What a published time is of, `data/study_times.csv` says by what its source states: of the steps alone where it is
multiplied out of a speed, else of the whole run, also where nobody looked.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.rows import number, read_csv

TIMES = Path(__file__).parents[1] / "data" / "study_times.csv"
_HEAD = re.compile(r"#\s*\S+\s*\((?P<kind>[^)]*)\)\.\s*Published:\s*(?P<text>.*)")
_HOURS = re.compile(r"([0-9][0-9,]*(?:\.[0-9]+)?)\s*h\b")
_SOURCE = re.compile(r"#\s*Source\s*\((?P<evidence>[^)]*)\):\s*(?P<text>.*)")
_MISSING = re.compile(r"#\s*Not said here\s*\((?P<share>[^)]*)\):\s*(?P<text>.*)")
_REPOSITORY = re.compile(r"[^\s@;,:]+")


@dataclass(frozen=True)
class Published:
    """What is published of one workload; None and empty: not stated.

    Attributes:
        wall_hours: elapsed hours of the published run.
        usd: nodes x list price x published hours, on `price_as_of`.
        expressible: `yes`, `approx` (something that moves cost is missing) or `no` (the file is a stand-in).
    """

    kind: str = "unclassified"
    source: str = ""
    evidence: str = ""
    hardware: str = ""
    wall_hours: float | None = None
    usd: float | None = None
    price_as_of: str = ""
    expressible: str = "yes"
    cannot_express: str = ""

    @property
    def cluster(self) -> str:
        """The repository or page that the row was read in: rows of one source are not independent."""
        found = _REPOSITORY.match(self.source.strip().strip('"'))
        return found.group() if found else "unstated"

    @property
    def is_of_steps(self) -> bool:
        """Whether the published hours are those of the steps, multiplied out of a speed, and not of a whole run."""
        return any(has in self.source and time_of == "steps" for has, time_of in _times())

    @property
    def suspect(self) -> bool:
        """Whether the source contradicts physics; its hours are not compared."""
        return self.evidence.startswith("suspect")


@cache
def _times() -> tuple[tuple[str, str], ...]:
    """What sources say of their times: a part of the source's name, and `steps` or `run`."""
    return tuple((row["source_has"], row["time_of"]) for row in read_csv(TIMES))


def find_workloads(suite: Path) -> list[Path]:
    """The workload files of a suite in the order of their names.

    Raises:
        ValueError: the folder holds none.
    """
    inner = suite / "workloads"
    files = sorted((inner if inner.is_dir() else suite).glob("*.y*ml"))
    if not files:
        raise ValueError(f"{suite}: no workload (*.yaml) there or in its folder workloads/")
    return files


def published(workload: Path) -> Published:
    """What the index beside a workload says of it, else what its leading comments say."""
    for index in (workload.parent / "index.csv", workload.parent.parent / "index.csv"):
        if index.is_file():
            for row in _index(index):
                if row.get("id") == workload.stem:
                    return _of_row(row)
    return of_comments(workload)


def _index(path: Path) -> list[dict[str, str]]:
    try:
        return read_csv(path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: cannot be read as CSV: {error}") from error


def _of_row(row: dict[str, str]) -> Published:
    given = Published()
    return Published(
        kind=row.get("class") or given.kind,
        source=row.get("source", ""),
        evidence=row.get("evidence", ""),
        hardware=row.get("published_hardware", ""),
        wall_hours=number(row, "published_wall_h") or None,
        usd=number(row, "baseline_published_usd") or None,
        price_as_of=row.get("price_as_of", ""),
        expressible=row.get("expressible") or given.expressible,
        cannot_express=row.get("cannot_express", ""),
    )


def of_comments(workload: Path) -> Published:
    """What the leading comments of a workload say."""
    words: dict[str, Any] = {}
    hours = None
    try:
        text = workload.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Published()
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if found := _HEAD.match(line):
            words |= {"kind": found["kind"], "hardware": found["text"].rstrip(".")}
            stated = _HOURS.findall(found["text"])
            hours = float(stated[-1].replace(",", "")) if stated else None
        elif found := _SOURCE.match(line):
            words |= {"evidence": found["evidence"], "source": found["text"]}
        elif found := _MISSING.match(line):
            words |= {"expressible": found["share"], "cannot_express": found["text"]}
    return Published(**words, wall_hours=hours or None)
