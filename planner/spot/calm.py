"""Hazards of a zone in calm weather, from hazards that were counted over good weather and bad.

Futures draw weather. A table's hazards were counted over it: that they fall with age is partly because spells that last
are those that met good weather, so weather drawn around them would count that twice. With weather theta, what is
counted at age a is `h(a) = h0(a) E[theta | the spell lasts to a]` (a frailty model: Vaupel, Manton and Stallard,
Demography 16(3), 1979). Spells begin in the weather in which those before them ended; those that met bad weather end
sooner, and weather passes. All is followed on the nodes of a Gauss-Hermite rule, and h0 is found step by step so that
the share of spells that lasts to each age is the table's. Futures then have the table's hazards at every age, hence its
mean spells and share of time up. Days are no such weather: a table is at the level of its own, and others are drawn
around it.
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import factorial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.spot.hazards_cells import age_bucket
from planner.spot.hazards_table import mean_spell_hours

if TYPE_CHECKING:
    from planner.spot.hazards import HazardTable, Weather


# Nodes and probabilities from 0 on, as numpy's `hermegauss`, whose module takes longer to import than a question has.
_RULE = (
    (0.0, 0.3694083694083693), (0.928868997381064, 0.24224029987396997), (1.876035020154846, 0.06613874607105778),
    (2.865123160643645, 0.0067202852355372706), (3.936166607129977, 0.0001956719302712236),
    (5.1880012243748705, 8.121849790214909e-07),
)  # fmt: skip
_NODES = 2 * len(_RULE) - 1
_EVEN_HOURS, _EVEN_STEPS = 0.1, 10  # steps of age; later ones grow
_GROWTH, _LONGEST_HOURS = 1.15, 400.0
_NEWTON_STEPS = 3
_NO_END, _NONE_LAST = 1e-9, 20.0  # hazards over a step
_FEW = 1e-9  # of the spells: those that are left are followed no further
_ROUNDS = 4  # of spells that begin where the others ended


def calm_hazards(table: HazardTable, sky: Weather, ages_hours: Floats) -> tuple[Floats, Floats]:
    """Hazards per hour of leaving up and of leaving down while weather is calm.

    Args:
        table: hazards as counted.
        sky: weather that futures draw.
        ages_hours: of the spell, shape `(n,)`, as are both answers.
    """
    sides, step, bucket = _followed(table, sky), _step_of(ages_hours), age_bucket(ages_hours)
    down, up = table.down_per_hour[bucket], table.up_per_hour[bucket]
    return down / sides[0].means[step], up / sides[1].means[step]


def log_chance_of_weather(
    table: HazardTable, sky: Weather, up: Bools, ages_hours: Floats, weather: Floats
) -> Floats:
    """How much likelier weather is where a zone's spell has lasted, on the log scale.

    Args:
        table: hazards as counted.
        sky: weather that futures draw.
        up: whether the zone is up, shape `(n,)`.
        ages_hours: of the spell, shape `(n,)`.
        weather: log of its factor over its sd, shape `(n, k)`, as is the answer.
    """
    nodes, chance = _rule()
    shares = np.stack([side.shares for side in _followed(table, sky)])
    log_ratio = np.log(np.maximum(shares / chance, 1e-9))[np.where(up, 0, 1), _step_of(ages_hours)]
    right = np.clip(np.searchsorted(nodes, weather), 1, _NODES - 1)
    part = np.clip((weather - nodes[right - 1]) / (nodes[right] - nodes[right - 1]), 0.0, 1.0)
    rows = np.arange(len(weather))[:, None]
    return np.asarray((1.0 - part) * log_ratio[rows, right - 1] + part * log_ratio[rows, right])


class _Spells(NamedTuple):
    """Spells of one side.

    Attributes:
        means: factor of weather, in the mean over those that last to each step of age, shape `(n_steps,)`.
        shares: of them in each kind of weather, shape `(n_steps, n)`.
        ended: share of all that ends in each, shape `(n,)`.
    """

    means: Floats
    shares: Floats
    ended: Floats


def _followed(table: HazardTable, sky: Weather) -> tuple[_Spells, _Spells]:
    """Up spells and down spells of a table."""
    sd = float(np.hypot(sky.region_sd, sky.common_sd))
    return _both_sides(table.down_per_hour.tobytes(), table.up_per_hour.tobytes(), sd, sky.hours)


@lru_cache(maxsize=2048)
def _both_sides(down: bytes, up: bytes, sd: float, hours: float) -> tuple[_Spells, _Spells]:
    """Up spells and down spells that follow each other.

    Args:
        down: bytes of the hazards per hour of leaving up, by age bucket.
        up: the same of leaving down.
        sd: of weather, on the log scale.
        hours: its correlation time.
    """
    hazards = np.frombuffer(down), np.frombuffer(up)
    weather, chance = _rule()
    thetas = np.exp(sd * weather), np.exp(-sd * weather)
    mean_hours = [mean_spell_hours(hazard) for hazard in hazards]
    # a first guess: weather that lasts much longer than spells
    begun = chance / (mean_hours[0] / thetas[0] + mean_hours[1] / thetas[1])
    for _ in range(_ROUNDS):
        of_up = _along(hazards[0], thetas[0], begun / begun.sum(), hours)
        of_down = _along(hazards[1], thetas[1], of_up.ended, hours)
        begun = of_down.ended
    return of_up, of_down


def _along(hazard: Floats, theta: Floats, begun: Floats, weather_hours: float) -> _Spells:
    """Follow spells of one side until they have ended.

    Args:
        hazard: per hour, by age bucket.
        theta: factor of the hazard in each kind of weather, shape `(n,)`.
        begun: share of the spells that begins in each, shape `(n,)`.
        weather_hours: correlation time.
    """
    count, share = 1.0, begun
    means, shares, ended = [], [], np.zeros_like(begun)
    for expected, width in zip(_per_step(hazard), np.diff(_ages()), strict=True):
        shares.append(share)
        means.append(float(share @ theta))
        if count < _FEW:
            continue
        own = expected / means[-1]
        for _ in range(_NEWTON_STEPS if expected > _NO_END else 0):
            lasts = share * np.exp(-theta * own)
            own += float((np.log(lasts.sum()) + expected) * lasts.sum() / (lasts @ theta))
            means[-1] = expected / own
        lasts = share * np.exp(-theta * own)
        ended += count * (share - lasts)
        count *= float(lasts.sum())
        share = np.maximum(_passing(float(np.exp(-width / weather_hours))) @ lasts, 0.0)
        share = share / share.sum()
    # those that last beyond the last age go on ending as weather comes
    return _Spells(np.asarray(means), np.stack(shares), ended + count * share * theta / (share @ theta))


def _step_of(ages_hours: Floats) -> Ints:
    return np.clip(np.searchsorted(_ages(), ages_hours - 1e-9) - 1, 0, len(_ages()) - 2)


def _per_step(hazard: Floats) -> Floats:
    """Hazard over each step of age; ages include the tick, so an even step has the hazard of its end."""
    ages = _ages()
    even = np.arange(len(ages) - 1) < _EVEN_STEPS
    middle = np.where(even, ages[1:], (ages[1:] + ages[:-1]) / 2.0)
    return np.minimum(hazard[age_bucket(middle)] * np.diff(ages), _NONE_LAST)


@cache
def _ages() -> Floats:
    """Edges of the steps of age, hours."""
    even = _EVEN_HOURS * np.arange(_EVEN_STEPS)
    first = _EVEN_HOURS * _EVEN_STEPS
    n = int(np.ceil(np.log(_LONGEST_HOURS / first) / np.log(_GROWTH)))
    return np.concatenate([even, first * _GROWTH ** np.arange(n + 1)])


@cache
def _rule() -> tuple[Floats, Floats]:
    """Nodes and probabilities of a standard normal variable."""
    x, chance = np.asarray(_RULE).T
    return np.concatenate([-x[:0:-1], x]), np.concatenate([chance[:0:-1], chance])


@lru_cache(maxsize=256)
def _passing(keep: float) -> Floats:
    """Chances of weather at each node (rows) after it was at each (columns); `keep` is the correlation.

    Mehler's kernel, the transition of an Ornstein-Uhlenbeck process in Hermite polynomials.
    """
    _, weight = _rule()
    basis = _basis()
    return np.asarray(weight[:, None] * ((basis * keep ** np.arange(_NODES)) @ basis.T))


@cache
def _basis() -> Floats:
    """Normed Hermite polynomials at the nodes (rows), by degree (columns), by Clenshaw's recurrence."""
    x, _ = _rule()
    of_degree = np.eye(_NODES)[:, :, None]  # coefficient by coefficient, of each polynomial
    low, high = of_degree[-2], of_degree[-1]
    for degree in range(_NODES - 2, 0, -1):
        low, high = of_degree[degree - 1] - high * degree, low + high * x
    norm = np.sqrt([float(factorial(degree)) for degree in range(_NODES)])
    return np.ascontiguousarray((low + high * x).T / norm)
