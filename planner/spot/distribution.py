"""Distribution of the elapsed time: an atom at the undisturbed time and a skewed excess.

Given the hazards, the elapsed time is the undisturbed time with probability p0 (capacity at launch and no
interruption), else more by an excess whose mean and variance are known (`planner.spot.moments`). Real pools
are less regular than one exponential rate, so up and down hazards carry log-normal frailties of mean 1: the
moments of the excess are averaged over the first by Gauss-Hermite quadrature and over the second exactly
(waits scale with it). The excess is then a blend,
both with those two moments: gamma (Wilson and Hilferty's cube-root normal form, PNAS 17, 1931) by the share
of the variance that chance brings, log-normal by the share that the frailties bring.

Chances that are stated or asked for are calibrated on recorded days (`planner.spot.meet`); expectations are the
model's own.
Against simulation of the model the distribution function is within 0.03 (tests). Every piece is a distribution function
of the deadline, so a later deadline is never less likely to be met.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from catalogs.tables.rows import pick
from catalogs.tables.table import Bools, Floats, Ints
from planner.normal.arrays import normal_cdf_by_table, normal_quantile_by_table
from planner.records import record
from planner.spot.meet import calibration
from planner.spot.moments import Job, compute_moments

# n points integrate polynomials of the log frailty up to degree 2 n - 1 exactly. Against simulation two give
# means within 2 %, three the distribution within 0.03; each point costs one evaluation of the model.
MEAN_POINTS = 2
SPREAD_POINTS = 3
MOST_STACKED = 20_000  # numbers in one call


def gamma_cdf(x: Floats, mean: Floats, variance: Floats) -> Floats:
    """Distribution function of a gamma variable with `mean` and `variance` (Wilson-Hilferty), elementwise."""
    square = np.maximum(variance / (mean * mean), 1e-12)
    root = np.cbrt(np.maximum(x, 0.0) / mean)
    z = (root - (1.0 - square / 9.0)) / (np.sqrt(square) / 3.0)
    return np.where(x < 0, 0.0, normal_cdf_by_table(z))


def gamma_quantile(level: Floats, mean: Floats, variance: Floats) -> Floats:
    """Inverse of `gamma_cdf` at `level`, elementwise."""
    square = np.maximum(variance / (mean * mean), 1e-12)
    root = 1.0 - square / 9.0 + normal_quantile_by_table(level) * np.sqrt(square) / 3.0
    return np.asarray(mean * np.maximum(root, 0.0) ** 3, dtype=np.float64)


def lognormal_cdf(x: Floats, mean: Floats, variance: Floats) -> Floats:
    """Distribution function of a log-normal variable with `mean` and `variance`, elementwise."""
    square = np.log1p(np.maximum(variance / (mean * mean), 1e-12))
    logs = np.log(np.maximum(x, 1e-300)) - np.log(mean)
    return np.where(x <= 0, 0.0, normal_cdf_by_table((logs + square / 2.0) / np.sqrt(square)))


def lognormal_quantile(level: Floats, mean: Floats, variance: Floats) -> Floats:
    """Inverse of `lognormal_cdf` at `level`, elementwise."""
    square = np.log1p(np.maximum(variance / (mean * mean), 1e-12))
    return np.asarray(
        mean * np.exp(normal_quantile_by_table(level) * np.sqrt(square) - square / 2.0), dtype=np.float64
    )


@lru_cache(maxsize=8)
def hermite(points: int) -> tuple[tuple[float, float], ...]:
    """(node, weight) of a standard normal variable, by Golub and Welsch (1969).

    Nodes are the eigenvalues of the Jacobi matrix of the Hermite polynomials, weights the squared first components of
    its eigenvectors. numpy's `hermegauss` gives the same, but importing its module takes longer than all the rest here.
    """
    beside = np.sqrt(np.arange(1.0, points))
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    nodes, weights = (nodes - nodes[::-1]) / 2.0, vectors[0] ** 2
    weights = weights + weights[::-1]
    return tuple(zip(nodes.tolist(), (weights / weights.sum()).tolist(), strict=True))


def frailties(sd: Floats, points: int) -> list[tuple[Floats, float]]:
    """(factor, weight) of a log-normal with mean 1 and log-sd `sd`; factors have the shape of `sd`."""
    if not sd.any():
        return [(np.ones_like(sd), 1.0)]
    return [(np.exp(sd * node - sd * sd / 2.0), weight) for node, weight in hermite(points)]


def stacked_frailties(sd: Floats, points: int, like: Floats) -> list[tuple[Floats, list[float]]]:
    """`frailties` one below the other, as many in a call as are quick: a call takes long however few its rows.

    Args:
        sd: log-sd, shape `(n,)`.
        points: of the quadrature.
        like: what they are worked out for, shape `(n,)` or `(k, n)`.

    Returns:
        Factors of shape `(p, n)` or `(p, 1, n)` with their weights.
    """
    each = frailties(sd, points)
    at_once = len(each) if len(each) * like.size <= MOST_STACKED else 1
    parts = [each[first : first + at_once] for first in range(0, len(each), at_once)]
    over = (slice(None), *(None,) * (like.ndim - 1))
    return [
        (np.stack([factor for factor, _ in part])[over], [weight for _, weight in part]) for part in parts
    ]


@record(frozen=True)
class Elapsed:
    """Distribution of the elapsed time, hours, arrays of shape `(n,)`, of a scaled job `(k, n)`.

    Attributes:
        floor: undisturbed time.
        still: probability of the undisturbed time.
        mean, variance: of the excess given that there is one.
        paid_share: share of the mean excess that is paid up-time.
        skew: share of the variance that the frailties bring; the excess is that much log-normal, else gamma.
    """

    floor: Floats
    still: Floats
    mean: Floats
    variance: Floats
    paid_share: Floats
    skew: Floats

    def scale(self, number: int) -> Elapsed:
        """Of a scaled job, one scale: arrays of shape `(n,)`."""
        return Elapsed(**{field.name: getattr(self, field.name)[number] for field in fields(self)})

    def reshape(self, shape: tuple[int, ...]) -> Elapsed:
        """The same in arrays of another shape."""
        return Elapsed(**{field.name: getattr(self, field.name).reshape(shape) for field in fields(self)})

    @cached_property
    def calm(self) -> Bools:
        """Where there is no excess to speak of (below 1e-12 h)."""
        return np.asarray((self.still >= 1.0) | (self.mean <= 1e-12), dtype=np.bool_)

    @cached_property
    def lost(self) -> Bools:
        """Where no finite time suffices."""
        return np.asarray(~(np.isfinite(self.mean) & np.isfinite(self.variance)), dtype=np.bool_)

    @cached_property
    def _shape(self) -> tuple[Floats, Floats]:
        usable = ~(self.calm | self.lost)
        return np.where(usable, self.mean, 1.0), np.where(usable, self.variance, 1.0)

    @cached_property
    def still_chance(self) -> Floats:
        """Calibrated probability of the undisturbed time."""
        return calibration("renewal").apply(np.where(self.calm, 1.0, self.still))

    def moved_chance(self, hours: Floats) -> Floats:
        """P(elapsed <= hours and there is an excess), calibrated."""
        still = np.where(self.calm, 1.0, self.still)
        within = np.minimum(still + self.moved_cdf(hours), 1.0)
        return np.asarray(calibration("renewal").apply(within) - self.still_chance, dtype=np.float64)

    def chance(self, hours: Floats) -> Floats:
        """P(elapsed <= hours), calibrated."""
        return calibration("renewal").apply(self.cdf(hours))

    def moved_cdf(self, hours: Floats) -> Floats:
        """P(elapsed <= hours and there is an excess)."""
        mean, variance = self._shape
        excess = np.where(np.isinf(hours), 1e300, hours - self.floor)
        late = (1.0 - self.skew) * gamma_cdf(excess, mean, variance) + self.skew * lognormal_cdf(
            excess, mean, variance
        )
        late = np.where(self.lost | self.calm, 0.0, late)
        return np.asarray((1.0 - np.where(self.calm, 1.0, self.still)) * late, dtype=np.float64)

    def cdf(self, hours: Floats, moved: Floats | None = None) -> Floats:
        """P(elapsed <= hours); a deadline equal to the undisturbed time is met in spite of rounding.

        Args:
            hours: the deadline.
            moved: `moved_cdf` of it, where that is known.
        """
        reached = hours >= self.floor * (1.0 - 1e-9)
        still = np.where(self.calm, 1.0, self.still)
        within = still + (self.moved_cdf(hours) if moved is None else moved)
        return np.where(reached, np.minimum(within, 1.0), 0.0)

    def excess_within(self, hours: Floats, moved: Floats | None = None) -> Floats:
        """E[excess, where elapsed <= hours]: the shares of a gamma and of a log-normal variable below a bound.

        The share of the mean below x is a distribution function itself: of a gamma variable with one more unit of
        shape, of a log-normal one with log-mean raised by its log-variance. Far below the mean the former is too large
        in its normal form; the bound itself limits it.
        """
        mean, variance = self._shape
        grown = 1.0 + variance / (mean * mean)
        excess = np.where(np.isinf(hours), 1e300, hours - self.floor)
        even = gamma_cdf(excess, mean * grown, variance * grown)
        skewed = lognormal_cdf(excess, mean * grown, variance * grown * grown)
        share = (1.0 - self.skew) * even + self.skew * skewed
        found = np.where(self.lost | self.calm, 0.0, (1.0 - self.still) * mean * share)
        moved = self.moved_cdf(hours) if moved is None else moved
        return np.minimum(found, np.maximum(excess, 0.0) * moved)

    def quantile(self, level: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Elapsed and paid hours at `level` (one, or one each); infinite where no finite time reaches it."""
        mean, variance = self._shape
        still = np.where(self.calm, 1.0, self.still)
        within = (np.asarray(level, dtype=np.float64) - still) / np.maximum(1.0 - still, 1e-300)
        within = np.clip(within, 0.0, 1.0)
        even, skewed = gamma_quantile(within, mean, variance), lognormal_quantile(within, mean, variance)
        excess = np.where(within <= 0.0, 0.0, (1.0 - self.skew) * even + self.skew * skewed)
        excess = np.where(self.lost, np.inf, excess)
        paid = np.where(np.isinf(excess), np.inf, np.where(np.isinf(excess), 1.0, excess) * self.paid_share)
        return self.floor + excess, self.floor + paid


@record(frozen=True, eq=False)
class SpotPool:
    """How the capacity of a gang comes and goes, arrays of shape `(n,)`.

    Attributes:
        rate: interruptions per up-hour.
        wait: mean wait for capacity after an interruption, hours.
        first_wait: mean wait at launch where capacity is down then, hours: whoever comes at any time meets the long
            waits more often (for exponential waits the same as `wait`).
        frailty_sd: standard deviation of the log frailties.
        dispersion: variance of the excess over that of exponential spells with the same means.
    """

    rate: Floats
    wait: Floats
    first_wait: Floats
    frailty_sd: Floats
    dispersion: Floats

    @property
    def wait_at_launch(self) -> Floats:
        """Mean hours from asking for capacity to having it, at any time: 0 where it is there then; shape `(n,)`."""
        load = self.rate * self.wait
        waits: Floats = self.first_wait * load / (1.0 + load)
        return waits

    def take(self, at: Ints | slice) -> SpotPool:
        """Some of the pools."""
        return SpotPool(
            pick(self.rate, at), pick(self.wait, at), pick(self.first_wait, at),
            pick(self.frailty_sd, at), pick(self.dispersion, at),
        )  # fmt: skip


def describe_elapsed(job: Job, pool: SpotPool) -> Elapsed:
    """Average the model over the frailties.

    Args:
        job: the job, arrays of shape `(n,)`, or scaled.
        pool: capacity, shape `(n,)`.
    """
    rate, wait, frailty_sd = pool.rate, pool.wait, pool.frailty_sd
    floor = job.floor_hours
    total, square, paid, still, within = (np.zeros_like(floor) for _ in range(5))
    spread = np.expm1(frailty_sd * frailty_sd)
    with np.errstate(over="ignore", invalid="ignore"):
        for factors, weights in stacked_frailties(frailty_sd, SPREAD_POINTS, floor):
            hazard = rate * factors
            moments = compute_moments(job, hazard, wait, variance=True)
            ready = 1.0 / (1.0 + hazard * wait)
            # At launch capacity is down with probability 1 - ready, then for the first wait.
            start = pool.first_wait * (1.0 - ready)
            start_variance = 2.0 * pool.first_wait**2 * (1.0 - ready) - start * start
            up = np.maximum(moments.paid_hours - floor, 0.0)
            mean = moments.excess_hours + start
            waits = mean - up
            chance = moments.excess_variance * pool.dispersion + start_variance
            # Var over the wait's frailty: the waiting part scales with it.
            variance = chance * (1.0 + spread) + waits * waits * spread
            raw, decay = variance + mean * mean, np.exp(-hazard * floor)
            for at, weight in enumerate(weights):
                total += weight * mean[at]
                paid += weight * up[at]
                within += weight * chance[at]
                square += weight * raw[at]
                still += weight * ready[at] * decay[at]
        moved = np.maximum(1.0 - still, 1e-300)
        mean = total / moved
        share = np.where(total > 0, paid / np.where(total > 0, total, 1.0), 0.0)
        share = np.where(np.isnan(share), 1.0, share)
        all_variance = square - total * total
        skew = np.where(all_variance > 0, 1.0 - within / np.where(all_variance > 0, all_variance, 1.0), 0.0)
        variance = np.maximum(square / moved - mean * mean, 0.0)
        skew = np.minimum(np.maximum(np.where(np.isnan(skew), 0.0, skew), 0.0), 1.0)
        return Elapsed(floor, still, mean, variance, share, skew)


def scaled_job(job: Job, factor: Floats) -> Job:
    """The jobs, shape `(n,)`, with their work scaled by each of `factor`, shape `(k, n)` or `(k, 1)`.

    Segments scale as a real number here: whole segments stay whole in the mean.
    """
    return replace(
        job, work=job.work * factor, segments=job.segments * factor, remainder=job.remainder * factor
    )
