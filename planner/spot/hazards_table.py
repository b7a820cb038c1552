"""Hazards of one gang in one zone by the age of a spell, and what follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Floats
from planner.records import record
from planner.spot.hazards_cells import AGE_EDGES_HOURS

if TYPE_CHECKING:
    from planner.spot.hints import Hint


@record(frozen=True, eq=False)
class HazardTable:
    """Hazards of one gang in one zone; `1 - exp(-h tick)` is the chance to leave within a tick.

    Attributes:
        age_edges_hours: lower edges of the age buckets, shape `(k,)`; `age_bucket` finds the bucket of an age.
        down_per_hour: hazard of leaving up by age of the up spell, shape `(k,)`.
        up_per_hour: hazard of leaving down by age of the down spell, shape `(k,)`.
        frailty_sd_down, frailty_sd_up: sd of the log level of each over the time of a job: how far next week differs
            from what was seen, and how little was seen.
        availability_ratio: long-run share of time up that the hazards give.
        hours_seen: hours of record behind the nearest level.
        source: which level that is, in words.
        observed_ratio: share of time up in the records of that level, as seen; None without a record.
        of_family: a record of the gang's own family is behind it; without one, published bands and priors know more.
    """

    age_edges_hours: Floats
    down_per_hour: Floats
    up_per_hour: Floats
    frailty_sd_down: float
    frailty_sd_up: float
    availability_ratio: float
    hours_seen: float
    source: str
    of_family: bool = True
    observed_ratio: float | None = None

    @property
    def mean_up_hours(self) -> float:
        """Mean length of an up spell."""
        return mean_spell_hours(self.down_per_hour)

    @property
    def mean_down_hours(self) -> float:
        """Mean length of a down spell."""
        return mean_spell_hours(self.up_per_hour)


def make_table(
    down_per_hour: Floats,
    up_per_hour: Floats,
    frailty_sd: tuple[float, float],
    hours_seen: float,
    source: str,
    *,
    of_family: bool = True,
    observed_ratio: float | None = None,
) -> HazardTable:
    """A table from its hazards; the availability follows from the mean spells."""
    up, down = mean_spell_hours(down_per_hour), mean_spell_hours(up_per_hour)
    return HazardTable(
        AGE_EDGES_HOURS,
        down_per_hour,
        up_per_hour,
        *frailty_sd,
        up / (up + down),
        hours_seen,
        source,
        of_family,
        observed_ratio,
    )


def moved_table(table: HazardTable, hint: Hint) -> HazardTable:
    """The table with its hazards moved by a hint."""
    down, up = table.down_per_hour * np.exp(hint.log_down), table.up_per_hour * np.exp(hint.log_up)
    sd = (table.frailty_sd_down, table.frailty_sd_up)
    source = f"{table.source}; moved by {hint.by}"
    return make_table(
        down, up, sd, table.hours_seen, source, of_family=table.of_family, observed_ratio=table.observed_ratio
    )


def mean_spell_hours(hazard_per_hour: Floats) -> float:
    """Mean of a spell whose hazard is constant within each age bucket: sum of S_b (1 - exp(-h_b w_b)) / h_b."""
    width = np.append(np.diff(AGE_EDGES_HOURS), np.inf)
    h = np.maximum(hazard_per_hour, 1e-9)
    survive = np.exp(-np.concatenate(([0.0], np.cumsum(h[:-1] * width[:-1]))))
    return float((survive * -np.expm1(-h * width) / h).sum())
