"""A zone's spells as a Markov chain over stages of age, one step per tick.

Hazards fall with age, so how long a spell has lasted says how long it will last. The age is cut into stages. Within a
stage the step to the next one is a chance of one over its width, so that the time spent there has the right mean.
Two cuts: `stage_ticks`, single ticks at first and then stages that widen by `_GROWTH`, for several zones, where every
stage counts; `bucket_ticks`, each age bucket of the hazards in halves, for one zone. There no stage straddles two
hazards, and what the induction expects is within 2.5 % of what such spells cost (stages of the first kind: 8 %).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from catalogs.tables.table import Floats, Ints

_SINGLE_TICKS = 3
_GROWTH = 2.0
_LAST_AGE_HOURS = 48.0


class SpellChain:
    """Up stages 0..k-1, then down stages k..2k-1.

    Attributes:
        first_ticks: first age of each stage, ticks, the present tick included (so 1 for a new spell), shape `(k,)`.
        step: transition matrix per tick, shape `(2k, 2k)`.
        leave_up, leave_down: chance to leave in a tick, by stage, shape `(k,)`.
    """

    def __init__(
        self,
        age_edges_hours: Floats,
        down_per_hour: Floats,
        up_per_hour: Floats,
        tick_hours: float,
        first_ticks: Floats | None = None,
    ) -> None:
        self.tick_hours = tick_hours
        self.first_ticks = stage_ticks(tick_hours) if first_ticks is None else first_ticks
        width = np.diff(np.append(self.first_ticks, np.inf))
        middle = (
            self.first_ticks + np.where(np.isinf(width), self.first_ticks, self.first_ticks + width - 1)
        ) / 2
        bucket = np.searchsorted(age_edges_hours, middle * tick_hours + 1e-9, side="right") - 1
        bucket = np.clip(bucket, 0, len(age_edges_hours) - 1)
        self.leave_up = -np.expm1(-down_per_hour[bucket] * tick_hours)
        self.leave_down = -np.expm1(-up_per_hour[bucket] * tick_hours)
        self.step = self._matrix(1.0 / width)

    def _matrix(self, advance: Floats) -> Floats:
        k = len(self.first_ticks)
        step = np.zeros((2 * k, 2 * k))
        for side, leave in ((0, self.leave_up), (1, self.leave_down)):
            for stage in range(k):
                row, stay = side * k + stage, 1.0 - leave[stage]
                step[row, (1 - side) * k] = leave[stage]
                step[row, row] += stay * (1.0 - advance[stage])
                if stage + 1 < k:
                    step[row, row + 1] += stay * advance[stage]
        return step

    @cached_property
    def stage_of_ticks(self) -> Ints:
        """Stage by age in ticks, up to the first age of the last stage."""
        ages = np.arange(int(self.first_ticks[-1]) + 1)
        return np.maximum(np.searchsorted(self.first_ticks, ages, side="right") - 1, 0)

    def stage(self, since_hours: Floats) -> Ints:
        """Stage of an age, hours, the present tick included."""
        ticks = np.rint(since_hours / self.tick_hours).astype(np.int64)
        known = self.stage_of_ticks
        return known[np.minimum(np.maximum(ticks, 0), len(known) - 1)]


def stage_ticks(tick_hours: float) -> Floats:
    """First age of each stage, ticks."""
    first, width = [float(tick) for tick in range(1, _SINGLE_TICKS + 1)], 1.0
    while first[-1] * tick_hours < _LAST_AGE_HOURS:
        first.append(first[-1] + round(width))
        width *= _GROWTH
    return np.array(first)


def bucket_ticks(age_edges_hours: Floats, tick_hours: float) -> Floats:
    """First age of each stage, ticks: every age bucket in halves."""
    # sets, as np.unique would import numpy.ma, a tenth of a short call
    edges = np.asarray(sorted(set(np.maximum(np.ceil(age_edges_hours / tick_hours - 1e-9), 1.0).tolist())))
    return np.asarray(sorted({*np.floor((edges[:-1] + edges[1:]) / 2).tolist(), *edges.tolist()}))
