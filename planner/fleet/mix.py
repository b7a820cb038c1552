"""The workers that a fleet was answered with: how many, and the hours of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.fleet.search import FleetResult
    from planner.fleet.workers import Workers

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Mix:
    """The workers chosen, how many of each, the hours each of them works, and the proof.

    Attributes:
        numbers: positions in the question, shape `(n_lines,)`; workers: what they are; count: how many;
            hours: of work, each.
        limit_hours: hours there were; work: tokens or samples in all.
        proof: what the solver proved of hours as worked, None where nothing was asked;
            gap: what was asked; seconds: wall-clock seconds;
            note: what else is to be said of the proof.
    """

    numbers: IntArray
    workers: Workers
    count: IntArray
    hours: FloatArray
    limit_hours: float
    work: float
    proof: FleetResult | None
    gap: float = 0.0
    seconds: float = 0.0
    note: str = ""

    @property
    def ends_hours(self) -> FloatArray:
        """When each line's workers end, hours after the start, shape `(n_lines,)`."""
        ends = np.minimum(self.workers.lead_hours + self.hours, self.limit_hours)
        return np.asarray(ends, dtype=np.float64)

    @property
    def period(self) -> float:
        """When the last worker ends, hours after the start."""
        return float(self.ends_hours.max())

    def runs(self, job_units: float) -> FloatArray:
        """Runs of `job_units` that each line does, shape `(n_lines,)`."""
        return self.units / job_units

    @property
    def units(self) -> FloatArray:
        """Tokens or samples that each line's workers do together, at the cautious end; shape `(n_lines,)`."""
        done = self.count * self.workers.units_per_hour * self.hours
        return np.asarray(done, dtype=np.float64)
