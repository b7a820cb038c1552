"""How much of the time spot workers are up, and the chance that what they do in it is enough.

A worker is up at the start with probability a and then comes and goes. Over h hours it is up for a share F of them,

    E F = a,   Var F = a (1 - a) g(v h),   g(y) = 2 (y - 1 + e^-y) / y^2

(alternating renewal process that is in balance, Cox 1962): a = 1 / (1 + L w) at L interruptions per hour up and a mean
wait of w hours, and v = (L + 1 / w) / k, k the dispersion. Workers of one offer share the level of its hazards: rate
and wait are both multiplied by one log-normal number whose square has mean 1, which is averaged over by quadrature. The
work of all spot workers lies between nothing and what they do if they are up all the time. Its distribution is taken as
the beta distribution with those limits, its mean and its variance: within 0.03 of a simulation for 1, 4 and 12 workers,
where a normal distribution is up to 0.3 off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.fleet.question import WORK_TOLERANCE
from planner.records import record
from planner.spot.distribution import frailties

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.model import Candidates
    from planner.fleet.workers import Workers


LEVELS = 7  # points of the frailty
_FEW, _EACH_SIDE = 9.0, 4  # whole numbers looked at; those below a mean
_WIDE = 0.7  # a deviation that covers more
_LEAST = 1e-12  # of the squared range: a variance below it is taken as this


@record(frozen=True, eq=False)
class Luck:
    """How workers of each line come and go at levels of its hazards, arrays of shape `(n_levels, n_lines)`.

    Attributes:
        weight: of each level, shape `(n_levels,)`.
        up: share of time up; 1 for what nobody takes back.
        pace: per hour, how fast up and down times even out.
    """

    weight: Floats
    up: Floats
    pace: Floats

    @property
    def mean(self) -> Floats:
        """Expected share of time up, shape `(n_lines,)`."""
        return np.asarray(self.weight @ self.up)

    @property
    def is_lucky(self) -> Bools:
        """Lines that may be taken back, shape `(n_lines,)`."""
        return np.asarray((self.up < 1.0).any(axis=0))

    @property
    def level_variance(self) -> Floats:
        """Variance of the share that the workers of a line have in common, shape `(n_lines,)`."""
        return np.maximum(self.weight @ self.up**2 - self.mean**2, 0.0)

    def own_variance(self, hours: Floats) -> Floats:
        """Variance of the share of one worker over `hours` by its own luck, shape `(n_lines,)`."""
        evened = _evened(self.pace * hours)
        return np.asarray(self.weight @ (self.up * (1.0 - self.up) * evened))

    def take(self, lines: Ints) -> Luck:
        """Of some lines."""
        return Luck(self.weight, self.up[:, lines], self.pace[:, lines])


def luck_of_lines(candidates: Candidates, workers: Workers) -> Luck | None:
    """The luck of workers of each line; None where none is on spot."""
    context = candidates.context
    at = np.flatnonzero(context.market.is_spot[workers.rows])
    if not len(at):
        return None
    pool = context.gang_risk(workers.rows[at], workers.nodes[at]).pool
    spot = luck_at(pool.rate, pool.wait, pool.frailty_sd, pool.dispersion)
    shape = (len(spot.weight), len(workers.rows))
    up, pace = np.ones(shape), np.ones(shape)
    up[:, at], pace[:, at] = spot.up, spot.pace
    return Luck(spot.weight, up, pace)


def luck_at(rate: Floats, wait: Floats, frailty_sd: Floats, dispersion: Floats) -> Luck:
    """The luck of spot.

    Args:
        rate: interruptions per hour up, shape `(n_lines,)`.
        wait: mean hours until a machine is back.
        frailty_sd: log sd of the level of both.
        dispersion: variance of hours up over that of exponential spells.
    """
    # rate and wait are off by a factor each: their product by the square of one that is off by less
    levels = frailties(frailty_sd / np.sqrt(2.0), LEVELS)
    both = np.stack([factor for factor, _ in levels]) * np.exp(-(frailty_sd**2) / 4.0)
    rate, wait = rate * both, wait * both
    weight = np.asarray([weight for _, weight in levels])
    return Luck(weight, 1.0 / (1.0 + rate * wait), (rate + 1.0 / wait) / dispersion)


def at_least(need: Floats, mean: Floats, variance: Floats, most: Floats) -> Floats:
    """P(X >= need) of X between 0 and `most` with a mean and a variance, as a beta distribution; elementwise."""
    from scipy.special import betainc

    need, mean, variance, most = np.broadcast_arrays(need, mean, variance, most)
    chance = np.where(need <= 0, 1.0, 0.0)
    open_ones = ~((need <= 0) | (need > most))  # the rest is certain, and incomplete beta functions are dear
    if open_ones.any():
        need, mean, variance, most = (part[open_ones] for part in (need, mean, variance, most))
        top = np.maximum(most, 1e-100)
        share = np.clip(mean / top, 1e-12, 1.0 - 1e-12)
        spread = np.clip(variance / top**2, _LEAST, share * (1.0 - share) * (1.0 - 1e-9))
        size = share * (1.0 - share) / spread - 1.0
        # of what is left: the complement itself, `betaincc`, takes thirteen times as long
        left = 1.0 - np.clip(need / top, 0.0, 1.0)
        chance[open_ones] = betainc((1.0 - share) * size, share * size, left)
    return chance


def whole_part(most: Floats, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of the whole part of X between 0 and `most`, a beta variable with a mean and a variance.

    From the chances to reach each whole number, where those that matter are few; where X spreads over more it is as
    likely to have any fraction: 1/2 less, and 1/12 more.
    """
    few = (most <= _FEW) | (variance <= _WIDE**2)
    out = np.where(few, 0.0, np.maximum(mean - 0.5, 0.0))
    spread = np.where(few, 0.0, variance + 1.0 / 12.0)
    if few.any():
        top, middle, own = most[few], mean[few], variance[few]
        base = np.where(top <= _FEW, 0.0, np.maximum(np.floor(middle) - _EACH_SIDE, 0.0))
        steps = np.arange(1.0, 2 * _EACH_SIDE + 2)[:, None]
        reached = at_least(base + steps - WORK_TOLERANCE, middle, own, top)
        over = reached.sum(axis=0)
        out[few] = base + over
        spread[few] = np.maximum(((2 * steps - 1) * reached).sum(axis=0) - over**2, 0.0)
    return out, spread


def _evened(y: Floats) -> Floats:
    """2 (y - 1 + e^-y) / y^2, 1 at 0."""
    safe = np.maximum(y, 1e-3)
    return np.where(y < 1e-3, 1.0 - y / 3.0, 2.0 * (safe + np.expm1(-safe)) / safe**2)
