"""Days on which a service cost more than its neighbours in time explain: robust, weekday-aware, both sides of the day.

For the logarithm x of the daily cost, less what its weekday usually adds,

    base_i = median of the 7 days before and the 7 after (at an end of the series, of the 14 nearest days)
    s_i = 1.4826 median |x - base_i| over the same days, kept between FLOOR and CEILING
    score_i = (x_i - base_i) / s_i

A day with score above THRESHOLD is an anomaly. A review looks back, so the days after count too: a new level of cost is
then a move (see the bridge), not an anomaly every day. The floor keeps very steady series from crying at 10 %; the
ceiling lets +50 % be found in unsteady ones. `benchmarks/anomalies.py` measures the choice.

A day with too few neighbours to judge it (a service used once a week, a fee) is an anomaly where it cost more than
RARE_TIMES what any other day of the series did, and at least RARE_DAYS others cost something.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from catalogs.tables.table import Floats
from planner.records import record

SIDE_DAYS = 7
FLOOR, CEILING = 0.05, 0.2
THRESHOLD = 3.5
MIN_DAYS = 21
RARE_TIMES, RARE_DAYS = 3.0, 3
_RARE_WEEKS = 4  # on each side of such a day: what their same weekday cost is expected of it
_SCALE = 1.4826  # median absolute deviation of a normal distribution to its standard deviation


@record(frozen=True)
class Anomaly:
    """One unusual day.

    Attributes:
        index: of the day in the series.
        cost, expected: of the day, in the series' currency.
        score: robust standard deviations of the logarithm; of a day without neighbours infinite.
    """

    index: int
    cost: float
    expected: float
    score: float

    @property
    def excess(self) -> float:
        """What the day cost too much."""
        return self.cost - self.expected


def find_anomalies(cost: ArrayLike) -> tuple[Anomaly, ...]:
    """Unusually dear days.

    Args:
        cost: (n,) cost of consecutive days; NaN where unknown. Days at or below 0 are not judged.

    Returns:
        The anomalies in order of time.
    """
    given = np.asarray(cost, dtype=float)
    score, expected = scores(given)
    rare = _rare_spikes(given) & ~np.isfinite(score)
    score[rare] = np.inf
    expected[rare] = [_same_weekday(given, int(day)) for day in np.flatnonzero(rare)]
    hits = np.flatnonzero(score > THRESHOLD)
    return tuple(Anomaly(int(i), float(given[i]), float(expected[i]), float(score[i])) for i in hits)


def _rare_spikes(cost: Floats) -> NDArray[np.bool_]:
    """(n,) whether a day cost far more than any other, of which some cost something."""
    charged = np.sort(cost[cost > 0])
    if len(charged) <= RARE_DAYS:
        return np.zeros(len(cost), dtype=bool)
    others = np.where(cost == charged[-1], charged[-2], charged[-1])
    return np.asarray(cost > RARE_TIMES * others)


def _same_weekday(cost: Floats, day: int) -> float:
    """Median cost of the same weekday in the weeks around a day; days without a charge cost 0."""
    weeks = np.arange(-_RARE_WEEKS, _RARE_WEEKS + 1)
    at = day + 7 * weeks[weeks != 0]
    near = cost[at[(at >= 0) & (at < len(cost))]]
    return float(np.median(np.nan_to_num(near))) if len(near) else 0.0


def scores(cost: Floats) -> tuple[Floats, Floats]:
    """Score and expected cost of each day, NaN where a day cannot be judged; see the module.

    Args:
        cost: (n,) as of `find_anomalies`.
    """
    x = np.log(np.where(cost > 0, cost, np.nan))
    if np.isfinite(x).sum() < MIN_DAYS:
        return np.full(len(x), np.nan), np.full(len(x), np.nan)
    weekday = weekday_offsets(x)
    level = x - weekday
    near = level[_neighbours(len(x))]
    known = np.isfinite(near).sum(axis=1) >= SIDE_DAYS
    near[~known] = 0.0
    base = np.where(known, np.nanmedian(near, axis=1), np.nan)
    spread = _SCALE * np.nanmedian(np.abs(near - np.nan_to_num(base)[:, None]), axis=1)
    score = (level - base) / np.clip(spread, FLOOR, CEILING)
    return score, np.exp(base + weekday)


def _neighbours(n: int) -> NDArray[np.int64]:
    """(n, 14) indices: 7 days before and 7 after, borrowed from the other side at the ends."""
    place = np.arange(n)
    start = np.clip(place - SIDE_DAYS, 0, max(0, n - 2 * SIDE_DAYS - 1))
    around = start[:, None] + np.arange(2 * SIDE_DAYS)
    out: NDArray[np.int64] = np.minimum(around + (around >= place[:, None]), n - 1)
    return out


def weekday_offsets(x: Floats) -> Floats:
    """(n,) what the weekday of each day usually adds to the logarithm, pulled to 0 where that is unsure.

    The offset of a weekday is the median of x - centred 7-day median over its days, times m^2 / (m^2 + error^2).
    """
    n = len(x)
    padded = np.concatenate([np.full(3, np.nan), x, np.full(3, np.nan)])
    week = np.lib.stride_tricks.sliding_window_view(padded, 7).copy()
    enough = np.isfinite(week).sum(axis=1) >= 4
    week[~enough] = 0.0
    apart = np.where(enough, x - np.nanmedian(week, axis=1), np.nan)
    out = np.zeros(n)
    for first in range(7):
        own = apart[first::7][np.isfinite(apart[first::7])]
        if len(own) < 2:
            continue
        middle = float(np.median(own))
        error = _SCALE * float(np.median(np.abs(own - middle))) / np.sqrt(len(own))
        if middle:
            out[first::7] = middle * middle**2 / (middle**2 + error**2)
    return out
