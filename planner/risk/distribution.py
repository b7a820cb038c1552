"""Distribution of the elapsed time: an atom at the undisturbed time and a gamma-shaped excess, averaged over frailty.

Given the hazards, the elapsed time is the undisturbed time with probability p0 (capacity at launch and no interruption),
else more by an excess whose mean and variance are known exactly; it is taken as gamma with those moments (Wilson and
Hilferty's cube-root normal form, PNAS 1931). The frailties of up and down hazards are log-normal with mean 1 and are
integrated by Gauss-Hermite quadrature. Every piece is a distribution function, so a later deadline is never less likely.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from planner.risk.moments import FloatArray, Job, compute_moments

_POINTS = 5
_BISECTIONS = 50


@lru_cache(maxsize=1)
def _normal_table() -> tuple[FloatArray, FloatArray]:
    """Grid and standard normal distribution function; linear interpolation is within 3e-6 and exactly monotone."""
    grid = np.linspace(-8.0, 8.0, 2001)
    values = np.asarray([0.5 * math.erfc(-x / math.sqrt(2.0)) for x in grid])
    values[0], values[-1] = 0.0, 1.0
    return grid, values


def normal_cdf(x: FloatArray) -> FloatArray:
    """Standard normal distribution function, elementwise."""
    grid, values = _normal_table()
    return np.asarray(np.interp(x, grid, values), dtype=np.float64)


def gamma_cdf(x: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Distribution function of a gamma variable with `mean` and `variance` (Wilson-Hilferty), elementwise."""
    square = np.maximum(variance / (mean * mean), 1e-12)
    root = np.cbrt(np.maximum(x, 0.0) / mean)
    z = (root - (1.0 - square / 9.0)) / (np.sqrt(square) / 3.0)
    return np.where(x < 0, 0.0, normal_cdf(z))


@lru_cache(maxsize=8)
def _frailties(sd: float) -> tuple[tuple[float, float], ...]:
    """(factor, weight) of a log-normal with mean 1 and log-sd `sd`."""
    if sd == 0.0:
        return ((1.0, 1.0),)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_POINTS)
    factors = np.exp(sd * nodes - sd * sd / 2.0)
    return tuple(zip(factors.tolist(), (weights / weights.sum()).tolist(), strict=True))


class _Piece:
    """The distribution given one pair of frailties."""

    def __init__(self, job: Job, rate: FloatArray, wait: FloatArray) -> None:
        moments = compute_moments(job, rate, wait, variance=True)
        load = rate * wait
        ready = 1.0 / (1.0 + load)
        start = wait * (1.0 - ready)
        # Var of the launch wait: 0 with probability `ready`, else exponential with mean w.
        start_variance = 2.0 * wait * wait * (1.0 - ready) - start * start
        self.floor = moments.floor_hours
        self.still = ready * np.exp(-rate * self.floor)
        mean = moments.excess_hours + start
        variance = moments.excess_variance + start_variance
        moved = np.maximum(1.0 - self.still, 1e-300)
        self.mean = mean / moved
        self.variance = np.maximum((variance + mean * mean) / moved - self.mean * self.mean, 0.0)
        self.calm = (mean <= 0.0) | (self.still >= 1.0)
        self.lost = ~np.isfinite(self.mean) | ~np.isfinite(self.variance)

    def cdf(self, hours: FloatArray) -> FloatArray:
        excess = hours - self.floor
        usable = ~(self.calm | self.lost)
        mean = np.where(usable, self.mean, 1.0)
        variance = np.where(usable, self.variance, 1.0)
        late = gamma_cdf(np.where(np.isinf(excess), 1e300, excess), mean, variance)
        late = np.where(self.lost, 0.0, np.where(self.calm, 1.0, late))
        reached = self.still + (1.0 - self.still) * late
        # 1e-9 relative: a deadline equal to the undisturbed time is met in spite of rounding.
        return np.where(excess >= -1e-9 * np.maximum(self.floor, 1.0), reached, 0.0)


def _pieces(job: Job, rate: FloatArray, wait: FloatArray, sd: float) -> list[tuple[float, _Piece]]:
    # A fitted pool sees up and down hazards drift apart, so the two frailties are independent.
    return [
        (weight_up * weight_down, _Piece(job, rate * up, wait * down))
        for up, weight_up in _frailties(sd)
        for down, weight_down in _frailties(sd)
    ]


def _mixture(pieces: list[tuple[float, _Piece]], hours: FloatArray) -> FloatArray:
    total = np.zeros_like(hours)
    for weight, piece in pieces:
        total += weight * piece.cdf(hours)
    return np.minimum(total, 1.0)


def meet_probability(job: Job, rate: FloatArray, wait: FloatArray, deadline: FloatArray, sd: float) -> FloatArray:
    """P(elapsed <= deadline), shape `(n,)`; 1 where the deadline is infinite.

    Args:
        job: the job, arrays of shape `(n,)`.
        rate: interruptions of the gang per up-hour.
        wait: mean wait for capacity, hours.
        deadline: hours from the request for capacity.
        sd: standard deviation of the log frailty.
    """
    return np.where(np.isposinf(deadline), 1.0, _mixture(_pieces(job, rate, wait, sd), deadline))


def elapsed_quantile(job: Job, rate: FloatArray, wait: FloatArray, level: float, sd: float) -> FloatArray:
    """Elapsed hours not exceeded with probability `level`, shape `(n,)`; inf where no finite time reaches it."""
    pieces = _pieces(job, rate, wait, sd)
    low = job.floor_hours.astype(np.float64, copy=True)
    high = low + 1.0
    for _ in range(60):
        short = _mixture(pieces, high) < level
        if not short.any():
            break
        high = np.where(short, low + (high - low) * 2.0, high)
    never = _mixture(pieces, high) < level
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        enough = _mixture(pieces, middle) >= level
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle)
    at_floor = _mixture(pieces, job.floor_hours) >= level
    return np.where(never, np.inf, np.where(at_floor, job.floor_hours, high))
