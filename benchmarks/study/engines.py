"""Maps the records of a suite over processes of this machine, Dask or Ray."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.study.record import StudyOptions, study_record
from benchmarks.study.suite import published
from planner.engines.executors import Engine


def map_records(files: Sequence[Path], options: StudyOptions, engine: Engine) -> list[dict[str, Any]]:
    """The records of workload files in their order, the same on every engine.

    A file whose workers die every time that it is tried is a row with that reason.
    """
    work = partial(study_record, options=options)
    paths = [str(path.resolve()) for path in files]
    return [record for _, record in sorted(engine.completed(work, paths, on_lost), key=lambda item: item[0])]


def on_lost(path: str, reason: str) -> dict[str, Any]:
    """The record of a workload whose workers died."""
    file = Path(path)
    return {"id": file.stem, "published": asdict(published(file)), "status": "failed", "reason": reason}
