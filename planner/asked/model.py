"""What one planning run is asked, and when; what can be bought is `planner.market`'s to say."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from planner.records import record

if TYPE_CHECKING:
    from catalogs.table import Table
    from planner.asked.assumptions import Assumptions
    from planner.asked.job import Job
    from planner.inputs.schema import Workload


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
    """What must be done: the workload, the job made of it, and the assumptions where it says nothing."""

    workload: Workload
    sha256: str
    job: Job
    assumptions: Assumptions
    calibration: Correction | None = None

    @property
    def restart_hours(self) -> float:
        """Hours from the end of an interruption to training again."""
        given = self.job.restart_hours
        return self.assumptions.restart_time_s / 3600.0 if given is None else given


@record(frozen=True)
class Dates:
    """The moment planned at, the start, and the deadline if there is one."""

    now: datetime
    start: datetime
    deadline: datetime | None

    @property
    def deadline_hours(self) -> float | None:
        """Hours from start to deadline."""
        return None if self.deadline is None else (self.deadline - self.start).total_seconds() / 3600.0
