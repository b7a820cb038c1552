"""What the hours before launch say of a zone's hazards: levels between the record and what was just seen.

With N ends of spells where the table expects E, the log level x of a hazard has the prior `N(0, sd^2)` and the
likelihood `exp(w (N x - E e^x))`. `sd^2` is the table's frailty without the drift between days: a day shows how a zone
is that was never seen, and little of what a zone on record will do next. Spells come in clusters, so a day of them is
worth less than as many that are independent: w is one half.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Bools
from planner.spot.futures import seen_in, spells_of
from planner.spot.hazards_cells import scale

if TYPE_CHECKING:
    from planner.spot.hazards import HazardTable

_WEIGHT = 0.5
_GRID = np.linspace(-3.5, 3.5, 57)
_STEP = 0.05


def recent_levels(table: HazardTable, history: Bools, tick_hours: float) -> tuple[float, float]:
    """Mean log levels of leaving up and of leaving down, rounded so that jobs side by side share what is solved.

    Args:
        table: hazards by age, and how far they may be off.
        history: whether the zone was up per tick before launch, oldest first; empty: levels of 0.
        tick_hours: length of a tick of the history.
    """
    if not len(history):
        return 0.0, 0.0
    up, down = spells_of(table.down_per_hour, tick_hours), spells_of(table.up_per_hour, tick_hours)
    seen = seen_in(np.asarray(history, dtype=np.bool_), up, down)
    return (
        _mean_level(_unseen_sd(table.frailty_sd_down, "down"), seen.downs, seen.downs_expected),
        _mean_level(_unseen_sd(table.frailty_sd_up, "up"), seen.ups, seen.ups_expected),
    )


def _unseen_sd(frailty_sd: float, side: str) -> float:
    return math.sqrt(max(frailty_sd**2 - scale("drift_sd", side) ** 2, 0.0))


def _mean_level(sd: float, ends: float, expected: float) -> float:
    level = sd * _GRID
    log_weight = -0.5 * _GRID**2 + _WEIGHT * (ends * level - expected * np.exp(level))
    weight = np.exp(log_weight - log_weight.max())
    return round(float(weight @ level / weight.sum()) / _STEP) * _STEP
