"""From a sweep file to a `Sweep`, or to one error that lists every fault with its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from planner.inputs.documents import Document, load_document
from planner.inputs.faults import Fault
from planner.records import record

if TYPE_CHECKING:
    from planner.inputs.sweep_schema import Sweep

MOST_JOBS = 100_000


@record(frozen=True)
class LoadedSweep:
    """A valid sweep and its file."""

    sweep: Sweep
    document: Document

    @property
    def workloads(self) -> tuple[Path, ...]:
        """The workload files named in it; relative paths start from the sweep's folder."""
        return tuple(self.document.path.parent / name for name in self.sweep.workloads)


def load_sweep(path: Path) -> LoadedSweep:
    """Load and validate a sweep file.

    Raises:
        InputError: lists all faults with their places.
    """
    from planner.inputs.sweep_schema import Sweep

    return LoadedSweep(*load_document(path, Sweep, lambda sweep: _faults(sweep, path.parent)))


def _faults(sweep: Sweep, folder: Path) -> Iterator[Fault]:
    if not sweep.work_hours and not sweep.workloads:
        yield Fault(("work_hours",), "is missing: give hours of work, or files under 'workloads'")
    for at, name in enumerate(sweep.workloads):
        if not (folder / name).exists():
            yield Fault(("workloads", at), f"no such file: {name}")
    jobs = len(sweep.work_hours) * len(sweep.deadline_ratio) * len(sweep.restart_hours)
    if jobs > MOST_JOBS:
        yield Fault(("work_hours",), f"the lists make {jobs:,} jobs; at most {MOST_JOBS:,} are taken")
