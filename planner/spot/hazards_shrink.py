"""Shrinkage of spell hazards: record -> zone -> region -> pool (type, gang) -> everything, on the log scale.

The hazard of record r in age bucket b is `g_b exp(a_pool + a_region + a_zone + a_drift) f_b`: one age shape `g` for
everything, normal effects per level, and factors `f_b` of pool and zone shrunk to 1 by pseudo counts. Counts are
Poisson, so a record with N ends where the shape expects E says `log((N + 1/2) / (E + 1/2))` with variance
`1 / (N + 1/2)`, plus the variance of the drift between periods. Levels are combined as in a normal random-effects
model, each node leaving its own data out of its prior (Robinson, "That BLUP is a good thing", Statistical Science
6(1), 1991). A zone's own counts meet that prior with their exact likelihood (`planner.spot.hazards_posterior`), and a
zone that was never up may be closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from catalogs.tables.table import Bools, Floats
from planner.records import record
from planner.spot.hazards_posterior import Belief, Count, closed_share, zone_level

_SHAPE_ROUNDS = 12
_PSEUDO_POOL, _PSEUDO_ZONE, _PSEUDO_RECORD = 20.0, 12.0, 4.0


class Scales(NamedTuple):
    """Standard deviations of the log hazard per level, what one more factor e of gang adds to it, and closed pools.

    `gang_exponent_sd`: how far the gang exponent differs from zone to zone. `closed_prior`: how many spells met on this
    side belong to a pool that is closed; `closed_end_per_hour`: how soon such a pool opens.
    """

    drift_sd: float
    zone_sd: float
    region_sd: float
    pool_sd: float
    gang_exponent: float
    gang_exponent_sd: float
    closed_prior: float
    closed_end_per_hour: float


@record(frozen=True, eq=False)
class SideFit:
    """One direction (leaving up, or leaving down).

    Attributes:
        shape: hazard per hour by age of everything, shape `(k,)`.
        scales: spread of the levels.
        pools, regions, zones: belief about the effect of each, by key; `regions` and `zones` are whole effects
            (their pool's included), without the drift of another period.
        pool_factor, zone_factor: departures from `shape` by age, shape `(k,)` each.
        closed: per zone that was never up, the chance that it is closed.
    """

    shape: Floats
    scales: Scales
    pools: dict[tuple[str, ...], Belief]
    regions: dict[tuple[str, ...], Belief]
    zones: dict[tuple[str, ...], Belief]
    pool_factor: dict[tuple[str, ...], Floats]
    zone_factor: dict[tuple[str, ...], Floats]
    closed: dict[tuple[str, ...], float]

    def hazard(self, pool: tuple[str, ...], region: str, zone: str) -> tuple[Floats, float]:
        """Hazard per hour by age, and the sd of its log level, from the nearest level that is known."""
        s, zone_key, region_key = self.scales, (*pool, region, zone), (*pool, region)
        if zone_key in self.zones:
            belief, spread = self.zones[zone_key], 0.0
        elif region_key in self.regions:
            belief, spread = self.regions[region_key], s.zone_sd**2
        else:
            belief = self.pools.get(pool, Belief(0.0, s.pool_sd**2))
            spread = s.zone_sd**2 + s.region_sd**2
        ones = np.ones(len(self.shape))
        factor = self.pool_factor.get(pool, ones) * self.zone_factor.get(zone_key, ones)
        closed = self.closed.get(zone_key, 0.0)
        hazard = (1.0 - closed) * self.shape * factor * np.exp(belief.mean) + closed * s.closed_end_per_hour
        return hazard, float(np.sqrt(belief.variance + spread + s.drift_sd**2))


def fit_side(
    keys: Sequence[tuple[tuple[str, ...], str, str]],
    ends: Floats,
    hours: Floats,
    weight: Floats,
    never: Bools,
    scales: Scales,
) -> SideFit:
    """Fit one direction.

    Args:
        keys: per record its pool, region and zone.
        ends: spells ended by age, shape `(n, k)`.
        hours: exposure, shape `(n, k)`.
        weight: how much a record counts towards the common shape, shape `(n,)` (the same probes cut at several
            gangs count once between them).
        never: records in which no spell of this side ended because its zone was never seen on the other, shape `(n,)`.
        scales: spread of the levels.
    """
    shape, level = common_shape(ends, hours, weight)
    expected = hours @ shape
    count = ends.sum(axis=1)
    records = [
        Belief(float(np.log((n + 0.5) / (e + 0.5))), float(1.0 / (n + 0.5) + scales.drift_sd**2))
        for n, e in zip(count.tolist(), expected.tolist(), strict=True)
    ]
    counts = [
        Count(n, e, float(own.sum()) if stays else 0.0)
        for n, e, own, stays in zip(count.tolist(), expected.tolist(), hours, never.tolist(), strict=True)
    ]
    priors, regions, pools = _levels(keys, records, scales)
    zones, closed = _zones(keys, priors, counts, shape, scales)
    pool_factor = _factors([k[0] for k in keys], ends, (hours * shape) * level[:, None], _PSEUDO_POOL)
    of_pool = np.asarray([pool_factor[k[0]] for k in keys]).reshape(len(keys), len(shape))
    zone_keys = [(*k[0], k[1], k[2]) for k in keys]
    zone_factor = _factors(zone_keys, ends, (hours * shape) * level[:, None] * of_pool, _PSEUDO_ZONE)
    return SideFit(shape, scales, pools, regions, zones, pool_factor, zone_factor, closed)


def _zones(
    keys: Sequence[tuple[tuple[str, ...], str, str]],
    priors: dict[tuple[str, ...], Belief],
    counts: Sequence[Count],
    shape: Floats,
    scales: Scales,
) -> tuple[dict[tuple[str, ...], Belief], dict[tuple[str, ...], float]]:
    """Level of each zone from its prior and all of its records, and how sure it is closed where it was never up."""
    own: dict[tuple[str, ...], list[Count]] = {}
    for (pool, region, zone), one in zip(keys, counts, strict=True):
        own.setdefault((*pool, region, zone), []).append(one)
    levels, closed = {}, {}
    for key, mine in own.items():
        hours = sum(one.never_up_hours for one in mine)
        if not all(one.never_up_hours for one in mine):  # seen up in another record: what counts is how often
            mine, hours = [one._replace(never_up_hours=0.0) for one in mine], 0.0
        levels[key], likelihood = zone_level(priors[key], mine, shape, scales.drift_sd)
        if hours:
            closed[key] = closed_share(scales.closed_prior, likelihood, scales.closed_end_per_hour, hours)
    return levels, closed


def common_shape(ends: Floats, hours: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Age shape with a level per record (Poisson maximum likelihood by alternation), levels centred on 1."""
    n, k = ends.shape
    level = np.ones(n)
    shape = np.ones(k)
    for _ in range(_SHAPE_ROUNDS):
        exposure = (weight * level) @ hours
        total = weight @ ends
        overall = total.sum() / max(exposure.sum(), 1e-12)
        # a bucket nobody reached takes the overall rate; half an end keeps an empty one above zero
        shape = (total + 0.5) / (exposure + 0.5 / max(overall, 1e-12))
        level = (ends.sum(axis=1) + _PSEUDO_RECORD) / (hours @ shape + _PSEUDO_RECORD)
        level /= np.exp(np.average(np.log(level), weights=weight))
    return shape, level


def _levels(
    keys: Sequence[tuple[tuple[str, ...], str, str]], records: list[Belief], scales: Scales
) -> tuple[dict[tuple[str, ...], Belief], dict[tuple[str, ...], Belief], dict[tuple[str, ...], Belief]]:
    """Priors of zones, beliefs about regions and pools: up the tree, then down again without a node's own part."""
    by_zone = _grouped([(*pool, region, zone) for pool, region, zone in keys], records, 0.0)
    by_region = _grouped([key[:-1] for key in by_zone], list(by_zone.values()), scales.zone_sd**2)
    by_pool = _grouped([key[:-1] for key in by_region], list(by_region.values()), scales.region_sd**2)
    top = Belief(0.0, scales.pool_sd**2)
    pools = {key: _joined([top, own]) for key, own in by_pool.items()}
    regions = _below(by_region, top, scales.region_sd**2)
    # a region's prior without the zone that asks: its other zones, under its pool without this region
    zones: dict[tuple[str, ...], Belief] = {}
    for key in by_zone:
        pool_prior = _joined([top, *_others(by_region, key[:-1], scales.region_sd**2)])
        region_prior = Belief(pool_prior.mean, pool_prior.variance + scales.region_sd**2)
        zone_prior = _joined([region_prior, *_others(by_zone, key, scales.zone_sd**2)])
        zones[key] = Belief(zone_prior.mean, zone_prior.variance + scales.zone_sd**2)
    return zones, regions, pools


def _below(
    nodes: dict[tuple[str, ...], Belief], top: Belief, variance: float
) -> dict[tuple[str, ...], Belief]:
    """Belief about each node from its own data and what its siblings say of their parent, itself under `top`."""
    out = {}
    for key, own in nodes.items():
        parent = _joined([top, *_others(nodes, key, variance)])
        out[key] = _joined([Belief(parent.mean, parent.variance + variance), own])
    return out


def _others(nodes: dict[tuple[str, ...], Belief], key: tuple[str, ...], variance: float) -> list[Belief]:
    """What the siblings of `key` say of their parent."""
    return [
        Belief(belief.mean, belief.variance + variance)
        for other, belief in nodes.items()
        if other != key and other[:-1] == key[:-1]
    ]


def _grouped(
    keys: Sequence[tuple[str, ...]], beliefs: Sequence[Belief], variance: float
) -> dict[tuple[str, ...], Belief]:
    """Precision-weighted mean per key of beliefs that scatter by `variance` around it."""
    members: dict[tuple[str, ...], list[Belief]] = {}
    for key, belief in zip(keys, beliefs, strict=True):
        members.setdefault(key, []).append(Belief(belief.mean, belief.variance + variance))
    return {key: _joined(found) for key, found in members.items()}


def _joined(beliefs: Sequence[Belief]) -> Belief:
    """Product of normal densities."""
    precision = sum(1.0 / b.variance for b in beliefs)
    return Belief(sum(b.mean / b.variance for b in beliefs) / precision, 1.0 / precision)


def _factors(
    keys: Sequence[tuple[str, ...]], ends: Floats, expected: Floats, pseudo: float
) -> dict[tuple[str, ...], Floats]:
    """Ends over expectation by age, shrunk to the group's own level by `pseudo` counts, per key."""
    total: dict[tuple[str, ...], tuple[Floats, Floats]] = {}
    for key, n, e in zip(keys, ends, expected, strict=True):
        old = total.get(key, (0.0, 0.0))
        total[key] = (old[0] + n, old[1] + e)
    out = {}
    for key, (n, e) in total.items():
        # compared at the group's own level, so that a factor says shape only
        e = e * (n.sum() + pseudo) / (e.sum() + pseudo)
        out[key] = np.asarray((n + pseudo) / (e + pseudo))
    return out
