"""Files beside the bill: globs, saved forecasts, and the measurements a review leaves."""

from __future__ import annotations

import csv
import glob
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.files import write_atomically
from planner.files.limited import read_limited
from planner.finops.review.model import Review

MAX_BYTES = 64 << 20


def find_named(option: str, names: Sequence[str]) -> tuple[Path, ...]:
    """Files that paths, folders (their `*.json`) and globs name, in order, each once.

    Raises:
        InputError: one of them names nothing.
    """
    found: dict[Path, None] = {}
    for name in names:
        path = Path(name)
        paths = sorted(path.glob("*.json")) if path.is_dir() else sorted(map(Path, glob.glob(name)))  # noqa: PTH207 - absolute globs too
        if not paths:
            raise InputError(f"{option} {name}: no such file")
        found.update(dict.fromkeys(p for p in paths if p.is_file() or p == path))
    return tuple(found)


def load_forecasts(paths: Iterable[Path]) -> tuple[Mapping[str, Any], ...]:
    """Read earlier answers of `planner forecast -o json`.

    Raises:
        InputError: a file cannot be read or is none.
    """
    return tuple(_forecast(path) for path in paths)


def _forecast(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(read_limited(path, MAX_BYTES).decode("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error})") from error
    if (
        not isinstance(content, dict)
        or not isinstance(content.get("scopes"), list)
        or "last_day" not in content
    ):
        raise InputError(
            f"{path}: JSON, but not a forecast; save one with `planner forecast ... -o json --out FILE`"
        )
    return content


def write_measurements(folder: Path, review: Review) -> tuple[Path, ...]:
    """Write `RUN.csv` for each measured run, as `planner calibrate WORKLOAD.yaml RUN.csv` reads it.

    Raises:
        InputError: the folder cannot be written.
    """
    tables = [
        t for s in review.sections if s.key == "plan_vs_actual" for t in s.tables if t.key == "measurements"
    ]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be created: {error.strerror}") from None
    out = []
    for run_id, value, unit, _ in (row for table in tables for row in table.rows):
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in str(run_id)).lstrip(".") or "run"
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([("step", f"{unit}_per_s"), (1, repr(value))])
        path = folder / f"{safe}.csv"
        write_atomically(path, text.getvalue())
        out.append(path)
    return tuple(out)
