"""Exponential smoothing over a grid of parameters, in one pass that keeps the state at every origin.

Damped trend with a weekly season (Gardner and McKenzie 1985; Hyndman et al. 2008, model A,Ad,A). An optimiser would be
run again at every origin of a back-test; here all parameters of a grid advance together, one step per day, and at each
origin the best by its discounted one-step errors *so far* is taken. So a whole back-test costs one pass, and no origin
sees a parameter that was chosen with later days.
"""

from __future__ import annotations

import itertools

import numpy as np

from catalogs.tables.table import Floats
from planner.records import record

WEEK = 7
HALF_LIFE_DAYS = 60.0  # of a one-step error's weight when parameters are chosen
_WARM_UP_DAYS = 14  # first days: the start values, not the parameters, make the errors


@record(frozen=True, eq=False)
class Grid:
    """Parameters tried, one column each: level, trend (as share of level), season and damping, all (n_grid,)."""

    alpha: Floats
    beta: Floats
    gamma: Floats
    phi: Floats


def damped_grid() -> Grid:
    """Damped trend: slow to fast levels, no to quick trends, fixed to quick seasons."""
    found = [
        (alpha, beta, gamma, phi)
        for alpha, beta, gamma, phi in itertools.product(
            (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9), (0.0, 0.05, 0.15), (0.0, 0.05, 0.15), (0.8, 0.9, 0.98)
        )
        if beta > 0 or phi == 0.9  # without a trend its damping says nothing
    ]
    alpha, beta, gamma, phi = np.array(found).T
    return Grid(alpha, beta, gamma, phi)


def level_grid() -> Grid:
    """Level and season only, for Theta."""
    alpha = np.array((0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9))
    none = np.zeros_like(alpha)
    return Grid(alpha, none, none + 0.05, none + 1.0)


@record(frozen=True, eq=False)
class States:
    """The best parameters' state before each day, and after the last: origins 0..n.

    Attributes:
        level, trend, phi, alpha: (n_days + 1,).
        season: (n_days + 1, 7), by the day's number modulo 7.
    """

    level: Floats
    trend: Floats
    phi: Floats
    alpha: Floats
    season: Floats


def smooth(x: Floats, grid: Grid) -> States:
    """Run the recursion for all parameters and keep the best at each origin.

    Args:
        x: (n_days,) series, on the scale on which the season adds.
        grid: parameters.
    """
    n, width = len(x), len(grid.alpha)
    level, trend, season = np.empty((n + 1, width)), np.empty((n + 1, width)), np.empty((n + 1, WEEK, width))
    score = np.zeros((n + 1, width))
    now, slope, shape = np.full(width, x[: min(n, WEEK)].mean()), np.zeros(width), _first_season(x, width)
    season_rate, trend_rate = grid.gamma * (1 - grid.alpha), grid.alpha * grid.beta
    keep, floor = 0.5 ** (1 / HALF_LIFE_DAYS), 1e-9 * (np.abs(x).mean() + 1e-300)
    for day in range(n + 1):
        level[day], trend[day], season[day] = now, slope, shape
        if day == n:
            break
        step = grid.phi * slope
        expected, at = now + step, day % WEEK
        error = x[day] - expected - shape[at]
        now = expected + grid.alpha * error
        slope = step + trend_rate * error
        shape[at] += season_rate * error
        known = np.maximum(np.abs(error) - floor, 0.0) if day >= _WARM_UP_DAYS else 0.0
        score[day + 1] = keep * score[day] + known
    best = score.argmin(axis=1)
    rows = np.arange(n + 1)
    return States(
        level[rows, best], trend[rows, best], grid.phi[best], grid.alpha[best], season[rows, :, best]
    )


def _first_season(x: Floats, width: int) -> Floats:
    """Start values of the season (7, n_grid): weekday means of the first two weeks around their mean."""
    if len(x) < 2 * WEEK:
        return np.zeros((WEEK, width))
    means = x[: 2 * WEEK].reshape(2, WEEK).mean(axis=0)
    return np.repeat((means - means.mean())[:, None], width, axis=1)


def damped_paths(states: States, horizon: int) -> Floats:
    """Forecasts (n_origins, horizon) of the smoothing states."""
    damping = np.cumsum(states.phi[:, None] ** np.arange(1, horizon + 1), axis=1)
    return states.level[:, None] + damping * states.trend[:, None] + season_ahead(states.season, horizon)


def season_ahead(season: Floats, horizon: int) -> Floats:
    """The season of the days after each origin, (n_origins, horizon)."""
    rows = np.arange(len(season))[:, None]
    ahead: Floats = season[rows, (rows + np.arange(horizon)) % WEEK]
    return ahead
