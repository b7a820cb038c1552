"""Which members to trust: weights from their own past forecasts, at every origin with what was known there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.finops.forecast.clean import without_huge_days
from planner.finops.forecast.members import MEMBERS, all_paths
from planner.records import record

Floats = NDArray[np.float64]
Days = NDArray[np.datetime64]
SHORT_HORIZONS = (7, 14)  # judged beside the horizon asked for: they are known sooner
HALF_LIFE_DAYS = 120.0  # of an error's weight
SHARPNESS = 6.0  # weight = score ** -SHARPNESS
EQUAL_SHARE = 0.05  # added to every relative score, so that no member takes all
_WRONG = 1e3  # relative score
FIRST_ORIGIN = 7  # days before the first forecast


@record(frozen=True, eq=False)
class Ensemble:
    """The ensemble's forecasts at every origin.

    Attributes:
        paths: (n_days + 1, horizon) expected cost; row t knows days 0..t-1.
        weights: (n_members, n_days + 1).
    """

    paths: Floats
    weights: Floats


def window_totals(cost: Floats, length: int, start: int = 0) -> Floats:
    """Actual cost of `length` days that begin `start` days after each origin; NaN where they are not all known."""
    known = np.concatenate([[0.0], np.cumsum(cost)])
    out = np.full(len(cost) + 1, np.nan)
    n = len(cost) + 1 - start - length
    if n > 0:
        out[:n] = known[start + length : start + length + n] - known[start : start + n]
    return out


def combine(cost: Floats, days: Days, horizon: int) -> Ensemble:
    """Forecast the coming days at every origin.

    Args:
        cost: (n_days,) cost per day without gaps.
        days: (n_days,) the days.
        horizon: days ahead.
    """
    return weigh(cost, all_paths(cost, days, horizon))


def weigh(cost: Floats, paths: Floats) -> Ensemble:
    """Weigh the members' paths (n_members, n_days + 1, horizon)."""
    weights = _weights(without_huge_days(cost), paths, paths.shape[2])
    filled = np.where(weights[:, :, None] > 0, paths, 0.0)
    return Ensemble(np.einsum("mt,mth->th", weights, filled), weights)


def _weights(cost: Floats, paths: Floats, horizon: int) -> Floats:
    usable = np.isfinite(paths).all(axis=2)
    total = np.zeros(paths.shape[:2])
    for length in sorted({*(h for h in SHORT_HORIZONS if h < horizon), horizon}):
        score = _discounted_errors(cost, paths[:, :, :length].sum(axis=2), length)
        middle = np.nanmedian(np.where(usable, score, np.nan)[:, FIRST_ORIGIN:], axis=0)
        scale = np.concatenate([np.zeros(FIRST_ORIGIN), middle])
        wrong = np.where(score > 0, _WRONG, 0.0)  # where most members are exact, one that is not gets nothing
        total += np.divide(score, scale, out=wrong, where=scale > 0)
    power = (total + EQUAL_SHARE) ** -SHARPNESS * usable
    mass = power.sum(axis=0)
    return np.asarray(np.divide(power, mass, out=np.zeros_like(power), where=mass > 0))


def _discounted_errors(cost: Floats, totals: Floats, length: int) -> Floats:
    """Mean absolute error per day of each member's `length`-day totals that were known at each origin."""
    error = np.abs(totals - window_totals(cost, length)) / length
    error[error < 1e-9 * (np.abs(cost).mean() + 1e-300)] = 0.0  # rounding
    seen = np.isfinite(error)
    seen[:, :FIRST_ORIGIN] = False
    keep = 0.5 ** (1 / HALF_LIFE_DAYS)
    mass, weight, out = np.zeros(len(MEMBERS)), np.zeros(len(MEMBERS)), np.zeros_like(error)
    for origin in range(error.shape[1]):
        known = origin - length
        if known >= 0:
            mass = keep * mass + np.where(seen[:, known], error[:, known], 0.0)
            weight = keep * weight + seen[:, known]
        out[:, origin] = np.divide(mass, weight, out=np.zeros_like(mass), where=weight > 0)
    return out
