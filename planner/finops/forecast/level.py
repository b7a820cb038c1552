"""The level since it last changed: the longest run of past weeks that agree with each other.

Lepski's rule (Lepski 1991; intersection of confidence intervals, Goldenshluger and Nemirovski 1997): the window of the
mean grows week by week into the past as long as the weeks added differ from the mean so far by no more than noise
explains. After a shift of the level it begins anew within a week; while nothing happens it is as long as can be.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.finops.forecast.smoothing import WEEK

_WINDOWS = (1, 2, 3, 4, 6, 8, 12, 16)  # weeks
_NOISE_WEEKS = 8  # the noise of a week's mean: median change from week to week
_NORMAL_MAD = 0.6745  # median of |x|, x standard normal
_ROUGHNESS = 0.005  # of the level: changes that matter to nobody


def steady_level(cost: Floats, most_errors: float) -> Floats:
    """Mean cost per day since the level last changed, before each origin.

    Args:
        cost: (n_days,).
        most_errors: standard errors by which weeks may differ and still be one level.

    Returns:
        (n_days + 1,); NaN before the first week is over.
    """
    weeks = _weekly_means(cost, _WINDOWS[-1])
    noise = _noise(weeks)
    level, agrees, length = weeks[:, 0].copy(), np.isfinite(weeks[:, 0]), _WINDOWS[0]
    for longer in _WINDOWS[1:]:
        added = weeks[:, length:longer].mean(axis=1)
        error = noise * np.sqrt(1 / length + 1 / (longer - length)) + _ROUGHNESS * np.abs(level)
        with np.errstate(invalid="ignore"):
            agrees = agrees & (np.abs(added - level) <= most_errors * error)
        level = np.where(agrees, (level * length + added * (longer - length)) / longer, level)
        length = longer
    return level


def _weekly_means(cost: Floats, count: int) -> Floats:
    """Means of the last `count` weeks before each origin, the last one first, (n_days + 1, count)."""
    total = np.concatenate([np.full(WEEK * count, np.nan), [0.0], np.cumsum(cost)])
    ends = WEEK * count + np.arange(len(cost) + 1)[:, None] - WEEK * np.arange(count)
    return np.asarray((total[ends] - total[ends - WEEK]) / WEEK)


def _noise(weeks: Floats) -> Floats:
    """Standard deviation of a week's mean around its level, by the median change, (n_origins,)."""
    change = np.sort(np.abs(np.diff(weeks[:, : _NOISE_WEEKS + 1], axis=1)), axis=1)  # NaN last
    known = np.isfinite(change).sum(axis=1)
    middle = np.take_along_axis(change, np.maximum(known - 1, 0)[:, None] // 2, axis=1)[:, 0]
    return np.asarray(np.nan_to_num(middle) / (_NORMAL_MAD * np.sqrt(2)))
