"""Which members to trust: weights from their own past forecasts, at every origin with what was known there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from catalogs.tables.table import Floats
from planner.finops.forecast.clean import without_huge_days
from planner.finops.forecast.members import all_paths, median
from planner.records import record

Days = NDArray[np.datetime64]
SHORT_HORIZONS = (7, 14)  # judged beside the horizon asked for: they are known sooner
_WRONG = 1e3  # relative score
FIRST_ORIGIN = 7  # days before the first forecast


@record(frozen=True)
class Trust:
    """How members are trusted; the defaults are what `python -m benchmarks.forecast_left_out` chooses among.

    Attributes:
        half_life_days: of an error's weight.
        sharpness: weight = (score + equal_share) ** -sharpness.
        equal_share: added to every relative score, so that no member takes all.
        alike_windows: windows of no difference between the members, with which every history begins.
        alike_share: of what even good members miss; differences below it say little.
        good_rank: a member's regret is its error beyond that of the member of this rank; 0: beyond none.
        recent: weight of what was missed in the last days beside the record.
        recent_window_days, recent_half_life_days: of the totals that show a shift of the level.
    """

    half_life_days: float = 120.0
    sharpness: float = 6.0
    equal_share: float = 0.05
    alike_windows: float = 10.0
    alike_share: float = 0.1
    good_rank: int = 3
    recent: float = 3.0
    recent_window_days: int = 3
    recent_half_life_days: float = 7.0


TRUST = Trust()


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
    known = np.concatenate([[0.0], np.cumsum(np.nan_to_num(cost))])
    unknown = np.concatenate([[0], np.cumsum(np.isnan(cost))])
    out = np.full(len(cost) + 1, np.nan)
    n = len(cost) + 1 - start - length
    if n > 0:
        first, last = slice(start, start + n), slice(start + length, start + length + n)
        out[:n] = np.where(unknown[last] > unknown[first], np.nan, known[last] - known[first])
    return out


def combine(cost: Floats, days: Days, horizon: int) -> Ensemble:
    """Forecast the coming days at every origin.

    Args:
        cost: (n_days,) cost per day without gaps.
        days: (n_days,) the days.
        horizon: days ahead.
    """
    return weigh(cost, all_paths(cost, days, horizon))


def weigh(cost: Floats, paths: Floats, trust: Trust = TRUST) -> Ensemble:
    """Weigh the members' paths (n_members, n_days + 1, horizon)."""
    weights = _weights(without_huge_days(cost), paths, paths.shape[2], trust)
    filled = np.where(weights[:, :, None] > 0, paths, 0.0)
    return Ensemble(np.einsum("mt,mth->th", weights, filled), weights)


def _weights(cost: Floats, paths: Floats, horizon: int, trust: Trust) -> Floats:
    usable: NDArray[np.bool_] = np.asarray(np.isfinite(paths).all(axis=2))
    total = trust.recent * _recent_misses(cost, paths, usable, trust)
    prior = trust.alike_windows
    for length in sorted({*(h for h in SHORT_HORIZONS if h < horizon), horizon}):
        regrets = _regrets(cost, paths[:, :, :length].sum(axis=2), length, trust)
        score, seen = regrets.mean(trust.half_life_days)
        scale = _middle(score, usable) + trust.alike_share * regrets.usual(trust.half_life_days)
        wrong = np.where(score > 0, _WRONG, 0.0)  # where most members are exact, one that is not gets nothing
        relative = np.divide(score, scale, out=wrong, where=scale > 0)
        total += np.where(scale > 0, (relative * seen + prior) / np.maximum(seen + prior, 1e-9), relative)
    power = (total + trust.equal_share) ** -trust.sharpness * usable
    mass = power.sum(axis=0)
    return np.asarray(np.divide(power, mass, out=np.zeros_like(power), where=mass > 0))


def _recent_misses(cost: Floats, paths: Floats, usable: NDArray[np.bool_], trust: Trust) -> Floats:
    """How much worse members did in the last days than is usual, (n_members, n_origins); 0 where they did not.

    After a shift of the level the long means are wrong every day, and a week shows it; their record of months does
    not. A single odd day is missed by all members alike, so it costs none of them anything.
    """
    length = min(trust.recent_window_days, paths.shape[2])
    regrets = _regrets(cost, paths[:, :, :length].sum(axis=2), length, trust)
    recent, _ = regrets.mean(trust.recent_half_life_days)
    usual = _middle(regrets.mean(trust.half_life_days)[0], usable) + regrets.usual(trust.half_life_days)
    return np.maximum(np.divide(recent, usual, out=np.zeros_like(recent), where=usual > 0) - 1.0, 0.0)


def _middle(score: Floats, usable: NDArray[np.bool_]) -> Floats:
    """The median member's score, (n_origins,)."""
    middle = median(np.where(usable, score, np.nan)[:, FIRST_ORIGIN:], axis=0)
    return np.concatenate([np.zeros(FIRST_ORIGIN), middle])


@record(frozen=True, eq=False)
class _Regrets:
    """Errors per day of totals of `length` days above those of the third best member of the same window.

    What all members missed, since nobody could know, says nothing of them.

    Attributes:
        length: days of a window.
        values: (n_members, n_days + 1) by the origin of the window; 0 where it is not over.
        good: (n_days + 1,) error per day of the third best.
        seen: (n_members, n_days + 1) whether the member said something and the window is over.
    """

    length: int
    values: Floats
    good: Floats
    seen: NDArray[np.bool_]

    def mean(self, half_life: float) -> tuple[Floats, Floats]:
        """Discounted mean of what was known at each origin, and the discounted number of windows; both as `values`."""
        weight = _discounted(self.seen.astype(float), self.length, half_life)
        total = _discounted(self.values, self.length, half_life)
        return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0), weight

    def usual(self, half_life: float) -> Floats:
        """Discounted mean of `good`, (n_days + 1,)."""
        weight = _discounted(self.seen.any(axis=0, keepdims=True).astype(float), self.length, half_life)
        total = _discounted(self.good[None], self.length, half_life)
        return np.asarray(np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)[0])


def _regrets(cost: Floats, totals: Floats, length: int, trust: Trust) -> _Regrets:
    """Regrets of totals of `length` days, (n_members, n_days + 1), told at each origin."""
    error = np.abs(totals - window_totals(cost, length)) / length
    rounding = 1e-9 * (np.abs(cost).mean() + 1e-300)
    error[error < rounding] = 0.0
    error[:, :FIRST_ORIGIN] = np.nan
    seen = np.isfinite(error)
    good = np.sort(np.where(seen, error, np.inf), axis=0)[: trust.good_rank]
    good = np.where(np.isfinite(good), good, 0.0).max(axis=0, initial=0.0)
    regret = np.where(seen, error - good, 0.0)
    regret[regret < rounding] = 0.0
    return _Regrets(length, regret, good, seen)


def _discounted(values: Floats, length: int, half_life: float) -> Floats:
    """Sums of what was known at each origin, (n_rows, n_origins): windows are over `length` days later."""
    growth = 2.0 ** (np.arange(values.shape[1]) / half_life)
    sums = np.cumsum(values * growth, axis=1) / growth
    out = np.zeros_like(values)
    out[:, length:] = sums[:, : max(values.shape[1] - length, 0)]
    return out
