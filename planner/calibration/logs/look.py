"""How logs of steps and of progress begin: the names of their columns; it reads no file."""

from __future__ import annotations

import json
from typing import Any, Literal

from planner.files.tables import delimiter_of

STEP = ("step", "global_step", "iteration", "iter", "train/step", "train/global_step", "_step")
TIME = ("time", "timestamp", "wall_time", "datetime", "ts", "_timestamp")
# Column -> unit and factor to it.
STEP_COLUMNS: dict[str, tuple[Literal["seconds", "tokens", "samples", "steps"], float]] = {
    "seconds": ("seconds", 1.0), "step_seconds": ("seconds", 1.0), "step_time_s": ("seconds", 1.0),
    "time_s": ("seconds", 1.0),
    "milliseconds": ("seconds", 1e-3), "step_time_ms": ("seconds", 1e-3), "time_ms": ("seconds", 1e-3),
    "tokens_per_s": ("tokens", 1.0), "tokens_per_second": ("tokens", 1.0), "tokens/s": ("tokens", 1.0),
    "samples_per_s": ("samples", 1.0), "samples_per_second": ("samples", 1.0), "samples/s": ("samples", 1.0),
    "images_per_s": ("samples", 1.0), "images/s": ("samples", 1.0), "steps_per_s": ("steps", 1.0),
}  # fmt: skip


def is_progress(head: str) -> bool:
    """Whether a text begins like a log of progress: a header, or an object, with a step and a time."""
    lines = (line for line in head.splitlines() if line.strip() and not line.startswith("#"))
    return {"step", "time"} <= _names(next(lines, ""))


def _names(line: str) -> set[str | None]:
    if line.lstrip().startswith("{"):
        entry = object_of(line)
        return set() if entry is None else {kind_of(name) for name in entry}
    return {kind_of(name) for name in line.split(delimiter_of(line))}


def names_a_time(head: str) -> bool:
    """Whether the header of a CSV names a time or a throughput of each step."""
    line = next((line for line in head.splitlines() if line.strip()), "")
    return any(name.strip().strip('"').lower() in STEP_COLUMNS for name in line.split(delimiter_of(line)))


def object_of(line: str) -> dict[str, Any] | None:
    """The object that a line of JSON is; None for anything else."""
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def kind_of(name: str) -> str | None:
    """Whether a column is the `step` or the `time`; None for others."""
    lowered = name.strip().strip('"').lower()
    return "step" if lowered in STEP else "time" if lowered in TIME else None
