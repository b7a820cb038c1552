"""Chances to meet a deadline on spot, calibrated: what a model says against how often it came true on recorded days.

`logit(p') = shift + slope logit(p)`, fitted on days that the hazards were not fitted to (Platt, "Probabilistic outputs
for support vector machines", 1999); constants in planner/data/spot/meet_calibration.csv, figures in docs/risk.md. The
map rises, keeps 0 and 1, and has an inverse: a confidence asked for is one of the model, so limits and chances agree.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Floats
from planner.bundled import bundled_rows
from planner.records import record


@record(frozen=True)
class Calibration:
    """A map of chances, by slope and shift of the log odds."""

    slope: float
    shift: float

    def apply(self, chance: npt.ArrayLike) -> Floats:
        """The calibrated chance of each chance of the model, any shape, 0..1."""
        return _by_odds(np.asarray(chance, dtype=np.float64), self.slope, self.shift)

    def invert(self, chance: npt.ArrayLike) -> Floats:
        """The model's chance behind each calibrated one, any shape, 0..1."""
        return _by_odds(np.asarray(chance, dtype=np.float64), 1.0 / self.slope, -self.shift / self.slope)


def _by_odds(chance: Floats, slope: float, shift: float) -> Floats:
    """`logistic(shift + slope logit(chance))` without logarithms of 0: quotients of powers."""
    met = np.exp(shift) * np.clip(chance, 0.0, 1.0) ** slope
    late = (1.0 - np.clip(chance, 0.0, 1.0)) ** slope
    return np.asarray(met / (met + late))


@cache
def calibration(estimator: str) -> Calibration:
    """The constants of `renewal` (plans) or `replay` (drawn futures with the last hours known)."""
    rows = {row["estimator"]: row for row in bundled_rows("spot/meet_calibration.csv")}
    return Calibration(float(rows[estimator]["slope"]), float(rows[estimator]["shift"]))
