"""The workers that a fleet was answered with: how many, and the hours of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.fleet.search import FleetResult
    from planner.fleet.workers import Workers
    from planner.market.model import Market


class Bill(NamedTuple):
    """Of one worker of each line, in the mean, as in `planner.market.costs.Money`; shape `(n_lines,)` each."""

    billed_hours: Floats
    instance_hours: Floats
    cost_usd: Floats
    dataset_gib_months: Floats
    checkpoint_gib_months: Floats


@dataclass(frozen=True, eq=False)
class Mix:
    """The workers chosen, how many of each, the hours each of them works, and the proof.

    Attributes:
        numbers: positions in the question, shape `(n_lines,)`; workers: what they are; count: how many;
            hours: of work, each, in the mean where whole runs do not divide among them.
        limit_hours: hours there were; work: tokens or samples in all.
        proof: what the solver proved of hours as worked, None where nothing was asked;
            gap: what was asked; seconds: wall-clock seconds;
            note: what else is to be said of the proof.
        run_units: tokens or samples of a run that nobody divides, 0 where work divides freely.
        part: of the work of the whole fleet, where others do the rest of it.
    """

    numbers: Ints
    workers: Workers
    count: Ints
    hours: Floats
    limit_hours: float
    work: float
    proof: FleetResult | None
    gap: float = 0.0
    seconds: float = 0.0
    note: str = ""
    run_units: float = 0.0
    part: float = 1.0

    @property
    def shifts(self) -> tuple[Floats, Floats, Ints]:
        """Hours of the workers that do the fewest and the most runs of each line, and how many do the most."""
        if not self.run_units:
            return self.hours, self.hours, self.count
        each = self.run_units / self.workers.units_per_hour
        runs = np.rint(self.count * self.hours / each).astype(np.int64)
        fewest, more = runs // self.count, runs % self.count
        most = np.where(more > 0, fewest + 1, fewest)
        return fewest * each, most * each, np.where(more > 0, more, self.count)

    def price(self, market: Market) -> Bill:
        """What a worker of each line is billed in the mean."""
        few, most, number = self.shifts
        last = self.workers.price(market, most, self.hours)
        if (few == most).all():
            return Bill(last.billed_hours, last.instance_hours, last.cost_usd, last.dataset_gib_months,
                        last.checkpoint_gib_months)  # fmt: skip
        first, share = self.workers.price(market, few, self.hours), number / self.count
        billed, hours, usd, saved = (
            getattr(last, name) * share + getattr(first, name) * (1.0 - share)
            for name in ("billed_hours", "instance_hours", "cost_usd", "checkpoint_gib_months")
        )
        return Bill(billed, hours, usd, last.dataset_gib_months, saved)

    @property
    def after_hours(self) -> Floats:
        """Expected instance-hours of each line after the end of what the user pays, shape `(n_lines,)`."""
        few, most, number = self.shifts
        after = self.workers.after_hours
        return np.asarray(after(few) * (self.count - number) + after(most) * number)

    @property
    def ends_hours(self) -> Floats:
        """When the last worker of each line ends, hours after the start, shape `(n_lines,)`."""
        ends = np.minimum(self.workers.lead_hours + self.shifts[1], self.limit_hours)
        return np.asarray(ends, dtype=np.float64)

    @property
    def period(self) -> float:
        """When the last worker ends, hours after the start."""
        return float(self.ends_hours.max())

    def runs(self, job_units: float) -> Floats:
        """Runs of `job_units` that each line does, shape `(n_lines,)`."""
        return self.units / job_units

    @property
    def units(self) -> Floats:
        """Tokens or samples that each line's workers do together, at the cautious end; shape `(n_lines,)`."""
        done = self.count * self.workers.units_per_hour * self.hours
        return np.asarray(done, dtype=np.float64)
