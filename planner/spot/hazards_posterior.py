"""What the counts of one zone say of its level, exactly: Poisson ends, and zones that were never up.

The normal form of a count, `log((N + 1/2) / (E + 1/2))`, is good for many ends and wrong for none: after 720 h without
capacity it leaves the level where its region has it. Here the likelihood is exact, on a grid of levels:

* N ends where a level of 0 expects E: Poisson with a drift of the record's days that is gamma distributed, which makes
  the count negative binomial (Greenwood and Yule, J. R. Stat. Soc. 83, 1920); the gamma variable has a log of mean 0
  and of variance drift_sd^2 (to the second order: shape k = 1/drift_sd^2 + 1/2, rate k - 1/2);
* a zone whose capacity never came in a record of T hours: the down spell was met at a random moment, so it outlasts
  the record with the equilibrium chance `integral of S from T / integral of S` (Cox, Renewal Theory, 1962).

A pool that never opened may also be *closed*: no capacity is meant for this gang at all. That state has a prior share
among spells met down and a low rate at which it ends (`closed_prior`, `closed_end_per_hour` in hazard_scales.csv); its
posterior share weighs the two hazards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from catalogs.tables.table import Floats
from planner.spot.hazards_cells import AGE_EDGES_HOURS

_POINTS = 161
_PRIOR_REACH, _DATA_REACH = (
    6.0,
    3.0,
)  # sd of the prior below and above its mean; log units around a record's own level
# three-point Gauss-Hermite of a standard normal variable: nodes -sqrt(3), 0, sqrt(3)
_DRIFT = ((-(3.0**0.5), 1.0 / 6.0), (0.0, 2.0 / 3.0), (3.0**0.5, 1.0 / 6.0))


class Belief(NamedTuple):
    """Normal belief about a log effect."""

    mean: float
    variance: float


class Count(NamedTuple):
    """One record of a zone: spells that ended, what a level of 0 expects, and the hours of a zone never up (else 0)."""

    ends: float
    expected: float
    never_up_hours: float = 0.0


def zone_level(
    prior: Belief, counts: Sequence[Count], shape: Floats, drift_sd: float
) -> tuple[Belief, float]:
    """Level of a zone given its records, and the likelihood of the records under the prior.

    Args:
        prior: what its region says without it.
        counts: its records.
        shape: hazard per hour by age at a level of 0, shape `(k,)`.
        drift_sd: sd of the log level between the days of a record and others.

    Returns:
        Mean and variance of the level, and the prior mean of the likelihood: of meeting no end where the zone was
        never up; without meaning otherwise (up to a factor).
    """
    sd = prior.variance**0.5
    centres = [float(np.log((c.ends + 0.5) / (c.expected + 0.5))) for c in counts]
    low = min([prior.mean - _PRIOR_REACH * sd, *(c - _DATA_REACH for c in centres)])
    high = max([prior.mean + _PRIOR_REACH * sd, *(c + _DATA_REACH for c in centres)])
    grid = np.linspace(low, high, _POINTS)
    start = -0.5 * ((grid - prior.mean) / sd) ** 2
    total = start + sum(_log_likelihood(grid, count, shape, drift_sd) for count in counts)
    weight = np.exp(total - total.max())
    mean = float((weight * grid).sum() / weight.sum())
    variance = float((weight * (grid - mean) ** 2).sum() / weight.sum())
    likelihood = float(np.exp(total).sum() / np.exp(start).sum())
    return Belief(mean, variance), likelihood


def closed_share(prior_share: float, likelihood: float, end_per_hour: float, hours: float) -> float:
    """Posterior share of the closed state after `hours` without capacity.

    Args:
        prior_share: of spells met down, how many are closed pools.
        likelihood: of no capacity for so long in an open pool.
        end_per_hour: rate at which a closed pool opens.
        hours: without capacity.
    """
    closed = prior_share * float(np.exp(-end_per_hour * hours))
    return closed / (closed + (1.0 - prior_share) * likelihood)


def _log_likelihood(grid: Floats, count: Count, shape: Floats, drift_sd: float) -> Floats:
    """Log likelihood of one record at each level of `grid`, averaged over the drift of its days."""
    if not count.never_up_hours:
        k = 1.0 / drift_sd**2 + 0.5
        return np.asarray(
            count.ends * grid - (count.ends + k) * np.log(k - 0.5 + count.expected * np.exp(grid))
        )
    parts = []
    for node, share in _DRIFT:
        level = grid + node * drift_sd
        parts.append(np.log(share * np.maximum(outlasts(shape, level, count.never_up_hours), 1e-300)))
    return np.asarray(np.logaddexp.reduce(parts, axis=0))


def outlasts(shape: Floats, level: Floats, hours: float) -> Floats:
    """Chance that a spell met at a random moment lasts another `hours`, by log level of its hazard, shape of `level`.

    With H the cumulative hazard, `integral of S from T / integral of S from 0`, in closed form within age buckets.
    """
    edges = np.asarray(sorted({*AGE_EDGES_HOURS.tolist(), hours}))  # np.unique would import numpy.ma
    bucket = np.searchsorted(AGE_EDGES_HOURS, edges, side="right") - 1
    hazard = shape[bucket][None, :] * np.exp(level)[:, None]
    width = np.append(np.diff(edges), np.inf)
    cumulative = np.concatenate(
        [np.zeros((len(level), 1)), np.cumsum(hazard[:, :-1] * width[:-1], axis=1)], axis=1
    )
    area = np.exp(-cumulative) * -np.expm1(-hazard * width) / hazard
    later = area[:, edges >= hours].sum(axis=1)
    return np.asarray(later / area.sum(axis=1))
