"""The question of one planning run and its date; `planner.market` holds what can be bought."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Table
    from planner.asked.assumptions import Assumptions
    from planner.asked.job import Job
    from planner.inputs.fio import DiskRates
    from planner.inputs.schema import Workload


_GB_PER_GIB = 2.0**30 / 1e9


class Correction(Protocol):
    """The user's own measurements, as a correction of predicted step times (`planner.calibration.correction`)."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Measurements that could not be used, and corrections that were clipped."""

    def apply(self, shapes: Table, hardware: Table) -> Table:
        """Return `shapes` with step times corrected; their `hardware_row` points into `hardware`."""

    def describe(self, generation: str) -> str:
        """Say in one sentence which measurements correct an accelerator generation; empty without any."""


@record(frozen=True, eq=False)
class Asked:
    """What must be done: the workload, the job made of it, and the assumptions where it says nothing.

    `disk`: the user's own measurement of a local disk. `keeps_shapes`: whether its shapes may be kept on disk for the
    next question; many workloads in one sweep would push out those of single questions.
    """

    workload: Workload
    sha256: str
    job: Job
    assumptions: Assumptions
    calibration: Correction | None = None
    disk: DiskRates | None = None
    keeps_shapes: bool = True

    def read_hours(self, write_hours: Floats) -> Floats:
        """Hours to read a checkpoint back, from those to write it: all nodes at once, up to what the store gives.

        Args:
            write_hours: of one checkpoint, any shape; it tells how many nodes share the work.
        """
        assume = self.assumptions
        per_node = assume.checkpoint_write_gb_per_s_per_node / assume.object_store_read_gb_per_s_per_node
        least_s = self.job.checkpoint_gib * _GB_PER_GIB / assume.object_store_read_gb_per_s_total
        return np.maximum(write_hours * per_node, least_s / 3600.0)

    def restart_hours(self, write_hours: Floats) -> Floats:
        """Hours from capacity back to training: the workload's, else the assumed ones and reading a checkpoint."""
        given = self.job.restart_hours
        if given is not None:
            return np.full_like(write_hours, given)
        return self.assumptions.restart_time_s / 3600.0 + self.read_hours(write_hours)


@record(frozen=True)
class Dates:
    """The moment planned at, the start, and the deadline if there is one."""

    now: datetime
    start: datetime
    deadline: datetime | None

    @cached_property
    def deadline_hours(self) -> float | None:
        """Hours from start to deadline."""
        return None if self.deadline is None else (self.deadline - self.start).total_seconds() / 3600.0
