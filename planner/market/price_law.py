"""Distribution of a spot price at a horizon: a mixture of the unchanged quote and a clipped log-normal.

With the probability that the price has not changed since, it is the quote; else its logarithm is normal, clipped to the
floor and the list price. Mean and quantiles are exact: the quote is a point mass at x, so a quantile is x wherever it
falls into that mass, else that of the changed prices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.normal.arrays import normal_cdf, normal_quantile
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats


HIGH = 0.9  # levels from here on are the list price where `listed`


@record(frozen=True, eq=False)
class PriceLaw:
    """Distributions of the logarithm of price over base, shape `(n,)` each.

    Attributes:
        x: logarithm of quote over base.
        moved: probability that the price is no longer the quote.
        middle, sd: mean and standard deviation of a changed price, before clipping to `low` and `high`.
        listed: whether the most expensive tenth is the list price.
    """

    x: Floats
    moved: Floats
    middle: Floats
    sd: Floats
    low: Floats
    high: Floats
    listed: Bools

    def mean(self) -> Floats:
        """Expected price over the base."""
        of_moved = _clipped_mean(self.middle, self.sd, self.low, self.high)
        return np.asarray(of_moved + (1.0 - self.moved) * (np.exp(self.x) - of_moved), dtype=np.float64)

    def spread(self) -> Floats:
        """Standard deviation of the logarithm, before it is clipped."""
        between = (1.0 - self.moved) * (self.middle - self.x) ** 2
        return np.sqrt(self.moved * (self.sd**2 + between))

    def quantile(self, level: Floats | float) -> Floats:
        """Quantile of price over base at `level`, which broadcasts against `(n,)`.

        Below the quote, it is the quantile of changed prices at `level / moved`; above, at `1 - (1 - level) / moved`;
        in between, the quote.
        """
        levels = np.asarray(level, dtype=np.float64)
        share = np.maximum(self.moved, 1e-12)
        below = self.middle + self.sd * normal_quantile(levels / share)
        above = self.middle + self.sd * normal_quantile(1.0 - (1.0 - levels) / share)
        logs = np.clip(np.maximum(np.minimum(self.x, below), above), self.low, self.high)
        return np.exp(np.where(self.listed & (levels >= HIGH), 0.0, logs))


def moved_ratio(still_days: Floats, still_power: Floats, days: Floats) -> Floats:
    """Probability that a price is no longer the quote after `days` (Weibull); 1 where `still_days` is 0."""
    stays = still_days > 0
    return np.where(stays, -np.expm1(-((days / np.where(stays, still_days, 1.0)) ** still_power)), 1.0)


def _clipped_mean(middle: Floats, sd: Floats, low: Floats, high: Floats) -> Floats:
    """Mean of exp(clip(N, low, high)) for normal N: the two ends hold the mass beyond them."""
    a, b = (low - middle) / sd, (high - middle) / sd
    inside = np.exp(middle + 0.5 * sd**2) * (normal_cdf(b - sd) - normal_cdf(a - sd))
    at_low = np.where(np.isfinite(low), np.exp(np.where(np.isfinite(low), low, 0.0)), 0.0) * normal_cdf(a)
    at_high = np.where(
        np.isfinite(high), np.exp(np.where(np.isfinite(high), high, 0.0)) * (1.0 - normal_cdf(b)), 0.0
    )
    return np.asarray(inside + at_low + at_high, dtype=np.float64)
