"""The members of the ensemble: each says, at every origin of a history at once, how the coming days would go.

A member is a function of the series (n,), the day numbers and the horizon that returns paths (n + 1, horizon): row t
is the forecast made when days 0..t-1 are known. NaN where the history is too short for it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from catalogs.tables.table import Floats
from planner.finops.forecast.clean import one_day_spikes, without_huge_days, without_spikes
from planner.finops.forecast.level import steady_level
from planner.finops.forecast.monthly import monthly_charges
from planner.finops.forecast.smoothing import (
    WEEK,
    damped_grid,
    damped_paths,
    level_grid,
    season_ahead,
    smooth,
)

Days = NDArray[np.datetime64]
Member = Callable[[Floats, Days, int], Floats]
_SHAPE_WEEKS = 4
_TREND_DAYS = 90


def seasonal_naive(cost: Floats, days: Days, horizon: int) -> Floats:
    """Each day as on the same weekday of the last week."""
    del days
    return _ahead(_weeks(cost, 1)[:, 0, :], horizon)


def weekday_median(cost: Floats, days: Days, horizon: int) -> Floats:
    """Each day as the median of its last four weekdays: one-off days leave no trace."""
    del days
    return _ahead(median(_weeks(cost, _SHAPE_WEEKS), axis=1), horizon)


def run_rate(window: int) -> Member:
    """The mean of the last `window` days, spread over the week as the last four weeks were."""

    def paths(cost: Floats, days: Days, horizon: int) -> Floats:
        del days
        total = np.concatenate([[0.0], np.cumsum(cost)])
        at = np.arange(len(cost) + 1)
        first = np.maximum(at - window, 0)
        with np.errstate(invalid="ignore"):
            level = (total[at] - total[first]) / (at - first)
        return np.asarray(level[:, None] * _ahead(_week_shape(cost), horizon))

    return paths


def since_change(most_errors: float) -> Member:
    """The mean since the level last changed, spread over the week as the last four weeks were."""

    def paths(cost: Floats, days: Days, horizon: int) -> Floats:
        del days
        return np.asarray(steady_level(cost, most_errors)[:, None] * _ahead(_week_shape(cost), horizon))

    return paths


def median_rate(window: int) -> Member:
    """The median of the last `window` days, every day alike."""

    def paths(cost: Floats, days: Days, horizon: int) -> Floats:
        del days
        return np.repeat(median(_last(cost, window), axis=1)[:, None], horizon, axis=1)

    return paths


def drift(window: int) -> Member:
    """The last week, moved on by the median weekly change of the last `window` days: what is stored grows by the day.

    A median, because a shift of the level within the window is no trend: it is in seven of the changes only. At most
    `window` days ahead, then level; and never beyond half or double the last week.
    """

    def paths(cost: Floats, days: Days, horizon: int) -> Floats:
        week = seasonal_naive(cost, days, horizon)
        ahead = np.minimum(WEEK * (np.arange(horizon) // WEEK + 1), window)
        away = np.abs(week[:, : min(WEEK, horizon)].mean(axis=1, keepdims=True)) * np.array((0.5, 1.0))
        change = np.clip(_drift(cost, window)[:, None] * ahead, -away[:, :1], away[:, 1:])
        return np.asarray(week + change)

    return paths


def same_day_last_month(cost: Floats, days: Days, horizon: int) -> Floats:
    """Each day as on the same day a month earlier: charges that come once a month come again."""
    n = len(cost)
    day = days[0] + np.arange(n + horizon)
    month = day.astype("datetime64[M]")
    before = (month - 1).astype("datetime64[D]")
    length = (month.astype("datetime64[D]") - before).astype(int)
    source = before + np.minimum((day - month.astype("datetime64[D]")).astype(int), length - 1)
    back = (day - source).astype(int)  # 28..31 days
    rows = np.arange(n + 1)[:, None]
    ahead = rows + np.arange(horizon)
    at = ahead - back[np.minimum(ahead, n + horizon - 1)]
    while (late := at >= rows).any():  # more than a month ahead: the same days again
        at = np.where(late, at - 30, at)
    return np.where(at >= 0, cost[np.clip(at, 0, n - 1)], np.nan)


def damped_trend(cost: Floats, days: Days, horizon: int) -> Floats:
    """Exponential smoothing with damped trend and additive week."""
    del days
    return damped_paths(smooth(cost, damped_grid()), horizon)


def damped_trend_log(cost: Floats, days: Days, horizon: int) -> Floats:
    """The same on logarithms: week and trend multiply. Not for series with credits that outweigh the cost."""
    del days
    if (cost < 0).any() or not cost.any():
        return np.full((len(cost) + 1, horizon), np.nan)
    typical = float(
        np.median(cost[cost > 0][: _SHAPE_WEEKS * WEEK])
    )  # of the first days: known at any origin
    offset = max(
        0.01 * typical, float(np.finfo(np.float64).tiny)
    )  # of amounts too small to be divided, not 0
    most = np.log(10 * (cost.max() + offset))
    paths = damped_paths(smooth(np.log(cost + offset), damped_grid()), horizon)
    return np.asarray(np.exp(np.minimum(paths, most)) - offset)


def theta(cost: Floats, days: Days, horizon: int) -> Floats:
    """Smoothed level with half of the trend of the last 90 days (Assimakopoulos and Nikolopoulos 2000).

    Hyndman and Billah (2003): Theta is simple smoothing with drift of half the slope. The slope here is the median
    weekly change, not the least-squares line, which a shift of the level tilts.
    """
    del days
    states = smooth(cost, level_grid())
    half = 0.5 * _drift(cost, _TREND_DAYS)
    age = np.arange(len(cost) + 1)
    start = (1 - (1 - states.alpha) ** age) / states.alpha
    ahead = half[:, None] * (np.arange(horizon)[None, :] + start[:, None])
    return states.level[:, None] + season_ahead(states.season, horizon) + ahead


MEMBERS: dict[str, Member] = {
    "seasonal_naive": seasonal_naive,
    "run_rate_7": run_rate(7),
    "run_rate_14": run_rate(14),
    "run_rate_28": run_rate(28),
    "run_rate_56": run_rate(56),
    "run_rate_112": run_rate(112),
    "since_change_1.5": since_change(1.5),
    "since_change_2.5": since_change(2.5),
    "since_change_4": since_change(4.0),
    "median_7": median_rate(7),
    "weekday_median": weekday_median,
    "last_month": same_day_last_month,
    "damped_trend": damped_trend,
    "damped_trend_log": damped_trend_log,
    "theta": theta,
    "drift_28": drift(28),
    "drift_56": drift(56),
}


# a spike of one day is no news for these; run rates over weeks and the monthly member count it as what may come again
_UNMOVED = frozenset(
    {"seasonal_naive", "run_rate_7", "run_rate_14", "median_7", "weekday_median", "damped_trend", "damped_trend_log",
     "theta", "drift_28", "drift_56"}
)  # fmt: skip
_TOLD_AFTER = 2  # days after a spike at which it is known to be one


def all_paths(cost: Floats, days: Days, horizon: int) -> Floats:
    """Forecasts of all members, (n_members, n_origins, horizon), in the order of `MEMBERS`.

    Huge days are taken out for all, spikes of one day for the members that they would mislead, at the origins that
    know them as such; monthly charges are put onto their days for all, who then see no other spike either. Where no
    day is below 0 no forecast is either.
    """
    cost = without_huge_days(cost)
    monthly = monthly_charges(cost, days, horizon)
    seen = cost if monthly is None else monthly.without
    paths = np.stack([member(seen, days, horizon) for member in MEMBERS.values()])
    spikes = one_day_spikes(seen)
    if spikes.any():
        calm = without_spikes(seen, spikes)
        fresh = np.zeros(len(cost) + 1, dtype=bool)
        for day in np.flatnonzero(spikes):
            fresh[day + 1 : day + 1 + _TOLD_AFTER] = True
        charged = np.zeros_like(fresh) if monthly is None else monthly.ahead.any(axis=1)
        for at, (name, member) in enumerate(MEMBERS.items()):
            moved = ~fresh & (charged | (name in _UNMOVED))
            if moved.any():
                paths[at, moved] = member(calm, days, horizon)[moved]
    paths = np.maximum(paths, 0.0) if (cost >= 0).all() else paths
    return paths if monthly is None else paths + monthly.ahead


def _last(cost: Floats, window: int) -> Floats:
    """The last `window` days before each origin, (n + 1, window); NaN before the first day."""
    padded = np.concatenate([np.full(window, np.nan), cost])
    return np.lib.stride_tricks.sliding_window_view(padded, window)


def _weeks(cost: Floats, weeks: int) -> Floats:
    """The last weeks before each origin, (n + 1, weeks, 7), column 0 the weekday of the first day ahead."""
    return _last(cost, WEEK * weeks).reshape(len(cost) + 1, weeks, WEEK)


def median(values: Floats, axis: int) -> Floats:
    """Median of what is there, NaN where nothing is: `np.nanmedian` takes three times as long."""
    ordered = np.sort(values, axis=axis)  # NaN last
    count = (~np.isnan(values)).sum(axis=axis)
    low, high = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, np.maximum(count - 1, 0))
    pick = [np.take_along_axis(ordered, np.expand_dims(at, axis), axis).squeeze(axis) for at in (low, high)]
    middle: Floats = 0.5 * (pick[0] + pick[1])
    return middle


def _week_shape(cost: Floats) -> Floats:
    """Weekday factors (n + 1, 7) of the last four weeks, mean 1; flat where history or sign forbid it."""
    weeks = _weeks(cost, _SHAPE_WEEKS)
    means = weeks.mean(axis=1)
    level = means.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        good = np.isfinite(level) & (means > 0).all(axis=1, keepdims=True)
        return np.asarray(np.where(good, means / level, 1.0))


def _ahead(week: Floats, horizon: int) -> Floats:
    """Repeat the week (n_origins, 7) after each origin."""
    return np.asarray(week[:, np.arange(horizon) % WEEK])


def _drift(cost: Floats, window: int) -> Floats:
    """Change per day before each origin, (n + 1,): the median change from week to week in the last `window` days."""
    change = np.full(len(cost), np.nan)
    change[WEEK:] = (cost[WEEK:] - cost[:-WEEK]) / WEEK
    return np.nan_to_num(median(_last(change, window), axis=1))
