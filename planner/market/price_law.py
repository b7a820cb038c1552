"""How a spot price is distributed at a horizon: it stands still, or it moves.

With the probability that a place was not priced anew it costs what it was quoted at; else the logarithm of its price is
normal, clipped to the floor and the list price. Mean and quantiles are exact: quoted prices are one lump of probability
at x, so a quantile is x wherever it falls into the lump, else the one of the prices that moved.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from planner.records import record

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]
    BoolArray = npt.NDArray[np.bool_]

HIGH = 0.9  # levels from here on are the list price where `listed`
_FAR = 40.0  # standard deviations, beyond which a normal distribution is 0 or 1 to the last digit


@record(frozen=True, eq=False)
class PriceLaw:
    """Logarithms of prices over a base, shape `(n,)` each.

    Attributes:
        x: of the quote.
        moved: probability that the price is no longer the quote.
        middle, sd: of a price that moved, before it is clipped to `low` and `high`.
        listed: the dearest tenth is at list.
    """

    x: FloatArray
    moved: FloatArray
    middle: FloatArray
    sd: FloatArray
    low: FloatArray
    high: FloatArray
    listed: BoolArray

    def mean(self) -> FloatArray:
        """Expected price over the base."""
        of_moved = _clipped_mean(self.middle, self.sd, self.low, self.high)
        return np.asarray(of_moved + (1.0 - self.moved) * (np.exp(self.x) - of_moved), dtype=np.float64)

    def spread(self) -> FloatArray:
        """Standard deviation of the logarithm, before it is clipped."""
        between = (1.0 - self.moved) * (self.middle - self.x) ** 2
        return np.sqrt(self.moved * (self.sd**2 + between))

    def quantile(self, level: FloatArray | float) -> FloatArray:
        """Price over the base that is not exceeded with probability `level`, which broadcasts against the law's shape.

        Of the prices that moved, `level / moved` are below a price under the quote, `1 - (1 - level) / moved` below one
        above it; between the two lies the quote.
        """
        levels = np.asarray(level, dtype=np.float64)
        share = np.maximum(self.moved, 1e-12)
        below = self.middle + self.sd * inverse_normal(levels / share)
        above = self.middle + self.sd * inverse_normal(1.0 - (1.0 - levels) / share)
        logs = np.clip(np.maximum(np.minimum(self.x, below), above), self.low, self.high)
        return np.exp(np.where(self.listed & (levels >= HIGH), 0.0, logs))


def moved_ratio(still_days: FloatArray, still_power: FloatArray, days: FloatArray) -> FloatArray:
    """Share of prices that are no longer the quote after `days`; all of them where `still_days` is 0."""
    stays = still_days > 0
    return np.where(stays, -np.expm1(-((days / np.where(stays, still_days, 1.0)) ** still_power)), 1.0)


def _clipped_mean(middle: FloatArray, sd: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Mean of exp(clip(N, low, high)) for normal N: the two ends hold the mass beyond them."""
    a, b = (low - middle) / sd, (high - middle) / sd
    inside = np.exp(middle + 0.5 * sd**2) * (normal_cdf(b - sd) - normal_cdf(a - sd))
    at_low = np.where(np.isfinite(low), np.exp(np.where(np.isfinite(low), low, 0.0)), 0.0) * normal_cdf(a)
    at_high = np.where(
        np.isfinite(high), np.exp(np.where(np.isfinite(high), high, 0.0)) * (1.0 - normal_cdf(b)), 0.0
    )
    return np.asarray(inside + at_low + at_high, dtype=np.float64)


def normal_cdf(z: FloatArray) -> FloatArray:
    """Standard normal distribution function."""
    out = np.where(z > 0, 1.0, 0.0)  # what it is far out, to the last digit
    near = ~(np.abs(z) >= _FAR)
    out[near] = [0.5 * value for value in map(math.erfc, (-z[near] * math.sqrt(0.5)).tolist())]
    return out


def inverse_normal(level: FloatArray) -> FloatArray:
    """Inverse of the standard normal distribution function, infinite from 0 down and from 1 up.

    The approximation 26.2.23 of Abramowitz and Stegun (off by 4.5e-4), then Newton's method; `statistics` has the same,
    but takes longer to import than this does.
    """
    values, at = np.unique(level, return_inverse=True)  # equal levels are worked out once
    known = np.where(values <= 0, -np.inf, np.inf)
    inside = (values > 0) & (values < 1)
    tail = np.minimum(values[inside], 1.0 - values[inside])
    t = np.sqrt(-2.0 * np.log(tail))
    z = t - ((0.010328 * t + 0.802853) * t + 2.515517) / (
        ((0.001308 * t + 0.189269) * t + 1.432788) * t + 1.0
    )
    for _ in range(3):
        z += (normal_cdf(-z) - tail) * math.sqrt(2.0 * math.pi) * np.exp(0.5 * z * z)
    known[inside] = np.where(values[inside] < 0.5, -z, z)
    return known[at].reshape(level.shape)
