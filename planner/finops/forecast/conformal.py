"""Intervals of totals from the ensemble's own past errors: adaptive conformal prediction.

Gibbs and Candes (2021): the share of misses asked for is moved after each past window, by `GAMMA` times the miss, so
that the share of windows that held comes back to the level after the series changed its manners. Scores are errors of
the *total* of the days ahead: bounds of single days added up would cover far too much, their root of squares too
little.
"""

from __future__ import annotations

import functools
import math
from bisect import insort
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from catalogs.tables.table import Floats
from planner.finops.forecast.clean import beside, without_huge_days
from planner.finops.forecast.ensemble import FIRST_ORIGIN, window_totals
from planner.records import record

GAMMA = 0.02
LEVELS = np.array((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98))
_HALF_LIFE_DAYS = 90.0  # of a past error's weight
_STAND_INS = (14, 7, 1)  # days of windows that are known where those of the horizon are not yet
_IDLE_DAYS = 7  # without use: from then on errors of such times alone count, see `past_widths`
_STAND_INS_IDLE = (14, 7)  # one day without cost after others tells of no month
_PRIOR_WINDOWS = (
    15.0  # what a stand-in counts for beside the windows of the horizon itself: half a month of origins
)
_GROWTH = (
    0.37  # relative error of a total grows as days ** _GROWTH beyond a week; see docs/finops/forecast.md
)
_OFFSET = 0.05  # of the usual cost of a window, added to both sides of a ratio
_RATE_DAYS = 30.0  # longer windows overlap more: what one day's misses teach is taught by many
_LEAST_ASKED = -0.1  # below 0: wider than the largest error so far, but within reason
_TINY = 1e-9  # relative errors below it are rounding


@record(frozen=True, eq=False)
class Spread:
    """How far a total may lie from its forecast.

    Attributes:
        centre: expected total.
        logarithmic: whether `widths` are logarithms of ratios, or shares of `size`.
        size: usual cost of as many days where widths are shares of it; else what is added to both sides of a ratio, so
            that a total of 0 has a logarithm.
        widths: (n_levels,) half width at each of `LEVELS`.
    """

    centre: float
    logarithmic: bool
    size: float
    widths: Floats

    def bounds(self, level: float) -> tuple[float, float]:
        """The interval that should hold the total in `level` (0..1) of cases."""
        width = float(np.interp(level, np.r_[0.0, LEVELS], np.r_[0.0, self.widths]))
        if width == 0:
            return self.centre, self.centre
        if self.logarithmic:
            lifted = self.centre + self.size
            return max(lifted * math.exp(-width) - self.size, 0.0), lifted * math.exp(width) - self.size
        return self.centre - width * self.size, self.centre + width * self.size

    def p_over(self, amount: float) -> float:
        """Probability that the total is above `amount`; the two sides are taken as equally likely."""
        if self.widths[-1] <= 0:
            return float(self.centre > amount)
        if self.logarithmic:
            lifted = amount + self.size
            away = math.log(lifted / (self.centre + self.size)) if lifted > 0 else -math.inf
        else:
            away = (amount - self.centre) / self.size
        outside = 1.0 - _level_of(abs(away), self.widths)
        return 0.5 * outside if away >= 0 else 1.0 - 0.5 * outside

    def at_least(self, other: Spread) -> Spread:
        """This spread, no narrower in proportion than `other`."""
        if self.logarithmic != other.logarithmic:
            return self
        return Spread(self.centre, self.logarithmic, self.size, np.maximum(self.widths, other.widths))


def _level_of(width: float, widths: Floats) -> float:
    """The level whose half width is `width`; beyond the last one the rest falls off with the width."""
    if width >= widths[-1]:
        return (
            1.0 - (1.0 - float(LEVELS[-1])) * float(widths[-1] / width) ** 2 if math.isfinite(width) else 1.0
        )
    strictly = np.r_[0.0, widths] + np.arange(len(widths) + 1) * 1e-15
    return float(np.interp(width, strictly, np.r_[0.0, LEVELS]))


@record(frozen=True, eq=False)
class Errors:
    """Errors of past forecasts of totals.

    Attributes:
        values: (n_days + 1,) per origin; NaN where the window is not over.
        logarithmic: whether they are log((actual + size) / (forecast + size)), or (actual - forecast) / size.
        size: (n_days + 1,); see `Spread`.
    """

    values: Floats
    logarithmic: bool
    size: Floats


def past_errors(cost: Floats, paths: Floats, length: int, start: int = 0) -> Errors:
    """Errors of the totals of `length` days that begin `start` days after each origin.

    Args:
        cost: (n_days,).
        paths: (n_days + 1, horizon) forecasts; row t knows days 0..t-1.
        length: days of a window.
        start: days between the origin and the window; both together at most the horizon.
    """
    actual = window_totals(cost, length, start)
    cost = _known(cost)
    expected = paths[:, start : start + length].sum(axis=1)
    known = np.isfinite(actual) & np.isfinite(expected)
    known[:FIRST_ORIGIN] = False
    calm = without_huge_days(cost)
    overall = float(np.abs(calm).mean()) * length
    logarithmic = bool((cost >= 0).all()) and overall > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        if logarithmic:
            size = np.full(len(cost) + 1, _OFFSET * overall)
            values = np.log((actual + size) / (expected + size))
        else:
            size = np.maximum(_usual(calm) * length, 0.1 * overall)
            values = (actual - expected) / size
    values[np.abs(values) < _TINY] = 0.0
    values[~np.isfinite(values)] = 0.0
    return Errors(np.where(known, values, np.nan), logarithmic, size)


def _known(cost: Floats) -> Floats:
    """Costs with those of the weeks beside them in the place of months that are not known."""
    if not np.isnan(cost).any():
        return cost
    out = cost.copy()
    for day in np.flatnonzero(np.isnan(cost)):
        out[day] = beside(cost, int(day), 0.0)
    return out


def _usual(cost: Floats) -> Floats:
    """Mean absolute cost per day of the eight weeks before each origin, (n_days + 1,)."""
    total = np.r_[0.0, np.cumsum(np.abs(cost))]
    at = np.arange(len(cost) + 1)
    first = np.maximum(at - 56, 0)
    return np.asarray((total[at] - total[first]) / np.maximum(at - first, 1))


def calibrate(
    cost: Floats,
    paths: Floats,
    length: int,
    level: float,
    start: int = 0,
    in_use: NDArray[np.bool_] | None = None,
) -> tuple[Spread, NDArray[np.bool_]]:
    """The spread of the total of the days ahead, and how past intervals did.

    Args:
        cost: (n_days,).
        paths: (n_days + 1, horizon) forecasts.
        length: days of the window.
        start: days between the last known one and the window.
        level: of the intervals that are checked; the nearest of `LEVELS`.
        in_use: as of `past_widths`.

    Returns:
        The spread, and per past window that had an interval whether it held the actual total.
    """
    errors, widths = past_widths(cost, paths, length, start, in_use)
    centre = float(paths[-1, start : start + length].sum())
    at = int(np.argmin(np.abs(LEVELS - level)))
    seen = np.isfinite(errors.values) & np.isfinite(widths[:, at])
    held: NDArray[np.bool_] = np.abs(errors.values[seen]) <= widths[seen, at]
    return Spread(centre, errors.logarithmic, float(errors.size[-1]), widths[-1]), held


def past_widths(
    cost: Floats, paths: Floats, length: int, start: int = 0, in_use: NDArray[np.bool_] | None = None
) -> tuple[Errors, Floats]:
    """Errors of past forecasts, and half widths (n_days + 1, n_levels) of their intervals.

    After a week without use, errors of windows that began after such weeks count alone (Mondrian conformal prediction;
    Vovk, Gammerman and Shafer 2005): what ended has no range of its time before, what often pauses that of its returns.
    Not so where fees, which a forecast may expect, have come to more than `Errors.size` since: errors of a time without
    would widen what they cost.

    Args:
        cost: as of `calibrate`, and so are `paths`, `length` and `start`.
        paths: (n_days + 1, horizon) forecasts.
        length: days of the window.
        start: days between the last known one and the window.
        in_use: (n_days,) whether a day has a charge of use, whatever credits leave of it; None: not known.
    """
    errors, ahead = past_errors(cost, paths, length, start), start + length
    stand_in = _stand_in(cost, paths, ahead, errors.logarithmic, _STAND_INS)
    widths = adaptive_widths(errors, ahead, _from_days(cost, ahead, errors.logarithmic, stand_in))
    idle = np.zeros(len(cost) + 1, dtype=bool) if in_use is None else _idle(in_use, cost, errors.size)
    if idle.any():
        own = _stand_in(cost, paths, ahead, errors.logarithmic, _STAND_INS_IDLE, of=idle)
        own = adaptive_widths(_of(errors, idle), ahead, np.where(np.isfinite(own), own, widths))
        widths[idle] = own[idle]
    return errors, widths


def _idle(in_use: NDArray[np.bool_], cost: Floats, little: Floats) -> NDArray[np.bool_]:
    """(n_days + 1,) origins before which a week has no use, though days before it had, and fees since are little."""
    at, total = np.arange(len(in_use)), np.cumsum(np.nan_to_num(cost))
    last = np.maximum.accumulate(np.where(in_use, at, -1))
    is_idle = (last >= 0) & (at - last >= _IDLE_DAYS) & (total - total[last] <= little[1:])
    return np.concatenate([[False], is_idle])


def _of(errors: Errors, origins: NDArray[np.bool_]) -> Errors:
    return replace(errors, values=np.where(origins, errors.values, np.nan))


def plain_halves(cost: Floats, paths: Floats, length: int, level: float) -> tuple[float, float]:
    """How far the total of the next `length` days may lie below and above its forecast, by all past errors alike.

    Cheaper than `calibrate`, for the days between on a chart.
    """
    errors = past_errors(cost, paths, length)
    known = np.abs(errors.values[np.isfinite(errors.values)])
    if not len(known):
        return math.inf, math.inf
    centre, width = float(paths[-1, :length].sum()), float(np.quantile(known, level))
    size = float(errors.size[-1])
    if errors.logarithmic:
        return (centre + size) * (1 - math.exp(-width)), (centre + size) * (math.exp(width) - 1)
    return width * size, width * size


def adaptive_widths(errors: Errors, delay: int, stand_in: Floats) -> Floats:
    """Half widths (n_origins, n_levels), each with what its origin knew: windows are over `delay` days later."""
    size = np.abs(errors.values)
    misses = 1.0 - LEVELS
    rate = GAMMA * min(1.0, _RATE_DAYS / delay)
    asked = misses.copy()
    widths = np.full((len(size), len(LEVELS)), np.nan)
    finite, has_stand_in = np.isfinite(size).tolist(), np.all(np.isfinite(stand_in), axis=1).tolist()
    weights = 0.5 ** (np.arange(len(size))[::-1] / _HALF_LIFE_DAYS)
    known, count = np.empty(len(size)), 0
    for origin in range(len(size)):
        over = origin - delay
        if over >= 0 and finite[over]:
            if np.isfinite(widths[over]).all():
                asked = np.maximum(asked + rate * (misses - (size[over] > widths[over])), _LEAST_ASKED)
            known[count] = size[over]
            count += 1
        widths[origin] = stand_in[origin]
        if count:
            own, mass = _own(known[:count], weights[len(weights) - count :], 1.0 - asked)
            if has_stand_in[origin]:
                own = (mass * own + _PRIOR_WINDOWS * stand_in[origin]) / (mass + _PRIOR_WINDOWS)
            widths[origin] = own  # drawn towards the stand-in while the windows are few
    return np.asarray(np.maximum.accumulate(widths, axis=1))


def _own(known: Floats, weight: Floats, level: Floats) -> tuple[Floats, float]:
    """Weighted quantiles of the known errors, the later ones counting more, and the sum of their weights."""
    order = known.argsort()
    weight = weight[order]
    mass = weight.cumsum()
    place = (mass - 0.5 * weight) / mass[-1]
    within = np.interp(np.minimum(np.maximum(level, 0.0), 1.0), place, known[order])
    return within * (1.0 + 2.0 * np.maximum(level - 1.0, 0.0)), mass[-1]


def _stand_in(
    cost: Floats,
    paths: Floats,
    length: int,
    logarithmic: bool,
    lengths: tuple[int, ...],
    of: NDArray[np.bool_] | None = None,
) -> Floats:
    """Widths (n_origins, n_levels) from shorter windows, of some origins alone; NaN where too few are over."""
    out = np.full((len(cost) + 1, len(LEVELS)), np.nan)
    for shorter in (h for h in lengths if h < length or length == 1):
        errors = past_errors(cost, paths, shorter)
        if errors.logarithmic != logarithmic:
            continue
        growth = (max(length, 7) / max(shorter, 7)) ** _GROWTH
        size = np.abs((errors if of is None else _of(errors, of)).values)
        missing = np.flatnonzero(~np.isfinite(out).all(axis=1))
        quantiles = _quantiles_so_far(size, least=1 if shorter == 1 else 7)
        out[missing] = growth * quantiles[np.maximum(missing - shorter + 1, 0)]
    return out


def _quantiles_so_far(size: Floats, least: int) -> Floats:
    """`np.quantile` at `LEVELS` of the finite ones of the first n values, by n from 0; NaN where they are too few."""
    known: list[float] = []
    nothing = (math.nan,) * len(LEVELS)
    low, high, count = [nothing], [nothing], [0]
    for value in size.tolist():
        if math.isfinite(value):
            insort(known, value)
        below, above = _neighbours(len(known))
        low.append(below(known) if len(known) >= least else nothing)
        high.append(above(known) if len(known) >= least else nothing)
        count.append(len(known))
    return _between(np.asarray(low), np.asarray(high), np.asarray(count))


@functools.lru_cache(maxsize=1 << 12)  # days of a history
def _neighbours(count: int) -> tuple[Callable[[list[float]], tuple[float, ...]], ...]:
    """What picks the values below and above each of `LEVELS` from as many sorted ones."""
    below = (LEVELS * max(count - 1, 0)).astype(np.int64)
    above = np.minimum(below + 1, max(count - 1, 0))
    return itemgetter(*below.tolist()), itemgetter(*above.tolist())


def _between(low: Floats, high: Floats, count: NDArray[np.int64]) -> Floats:
    """Quantiles between their neighbours of so many sorted values, as `np.quantile` rounds them."""
    at = LEVELS * np.maximum(count - 1, 0)[:, None]
    part = at - at.astype(np.int64)
    gap = high - low
    return np.asarray(np.where(part >= 0.5, high - gap * (1.0 - part), low + gap * part))


def _from_days(cost: Floats, length: int, logarithmic: bool, out: Floats) -> Floats:
    """Fill what is still unknown with the variation of single days, as if (log)normal."""
    cost = _known(cost)
    normal = np.array([NormalDist().inv_cdf(0.5 + level / 2) for level in LEVELS])
    for origin in np.flatnonzero(~np.isfinite(out).all(axis=1)):
        if origin < FIRST_ORIGIN:
            continue
        usual = float(np.abs(cost[:origin]).mean())
        noise = float(cost[:origin].std()) / usual if usual > 0 else 0.0
        noise = math.sqrt(math.log1p(noise**2)) if logarithmic else noise
        out[origin] = normal * (noise if noise > _TINY else 0.0) * (max(length, 7) / 7) ** _GROWTH
    return out
