"""Interruptions so far against the plan's: a conjugate prior, moved by what the log shows.

The rate of interruptions per hour in use has a gamma prior whose mean is the plan's and whose spread is that of the
plan's evidence (`spot_frailty_sd`, `spot_unrecorded_frailty_sd`); k interruptions in T hours give gamma(a + k, b + T).
What an interruption costs (waiting, restart, work done twice) is gamma with the shape kappa and an unknown scale; the
inverse of that scale has a gamma prior of its own, moved by the setbacks seen.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats
from planner.records import record
from planner.tracking.model import Intervals

if TYPE_CHECKING:
    from planner.tracking.planned import Planned

# Setbacks differ more than exponential ones: many are short and some very long (docs/spot/hazards.md); assumed.
SETBACK_SHAPE = 0.6
# The plan's mean setback counts as so many seen ones.
SETBACKS_KNOWN = 3.0
# Interruptions come in clusters (hazards fall with age, weather is shared): variance of counts over Poisson's; assumed.
CLUSTERED = 1.5


@record(frozen=True)
class Interruptions:
    """What the log shows, and what follows for the rest.

    Attributes:
        seen: interruptions; hours: in use; setbacks: hours that each cost, waiting, restart and work done twice.
        expected: that the plan expects in as many hours.
        shape, rate: of the gamma posterior of interruptions per hour.
        planned_per_hour: the plan's.
        setback_shape, setback_rate: of the gamma posterior of the inverse scale.
    """

    seen: int
    hours: float
    setbacks: tuple[float, ...]
    expected: float
    shape: float
    rate: float
    planned_per_hour: float
    setback_shape: float
    setback_rate: float

    @property
    def per_hour(self) -> float:
        """Posterior mean of the rate."""
        return self.shape / self.rate

    @property
    def setback_hours(self) -> float:
        """Posterior mean of a setback."""
        return SETBACK_SHAPE * self.setback_rate / max(self.setback_shape - 1.0, 0.5)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        """Rates per hour and scales of setbacks in hours, one per future."""
        rates = rng.gamma(self.shape, 1.0 / self.rate, n)
        return rates, self.setback_rate / np.maximum(rng.gamma(self.setback_shape, 1.0, n), 1e-9)


def count_interruptions(
    intervals: Intervals, planned: Planned, *, stopped_hours: float = 0.0
) -> Interruptions:
    """Count interruptions and move the plan's prior by them.

    Args:
        intervals: of the log.
        planned: the plan.
        stopped_hours: since the last row, beyond what a step takes: an interruption that has not ended.
    """
    events = np.flatnonzero(intervals.fell_back | intervals.gap)
    again = intervals.seconds * intervals.repeated / 3600.0
    ends = np.append(events, len(intervals.seconds))[1:]
    setbacks = []
    for at, end in zip(events.tolist(), ends.tolist(), strict=True):
        stood = max(intervals.seconds[at] - intervals.steps[at] * intervals.step_s, 0.0) / 3600.0
        setbacks.append(stood + float(again[at + 1 : end].sum()))
    hours = float(intervals.seconds[intervals.working].sum()) / 3600.0
    seen = len(setbacks) + (stopped_hours > 0)
    prior_shape = 1.0 / max(math.expm1(planned.rate_sd**2), 1e-6)
    shape = 1.0 + SETBACKS_KNOWN * SETBACK_SHAPE
    return Interruptions(
        seen, hours, tuple(setbacks), planned.rate_per_hour * hours, prior_shape + seen / CLUSTERED,
        prior_shape / planned.rate_per_hour + hours / CLUSTERED, planned.rate_per_hour,
        shape + SETBACK_SHAPE * len(setbacks),
        SETBACKS_KNOWN * planned.setback_hours + math.fsum(setbacks) + stopped_hours,
    )  # fmt: skip
