"""Several zones as one pool: which zone a run is in, how often it moves, how seldom none is up.

A run takes the cheapest zone that is up and stays until it is interrupted. Where zone i has just gone, zone j is down
with probability (1 - a_j) + c a_j (a: share of time up, c: correlation within or across regions); the zone of the next
spell then follows a Markov chain, whose stationary shares weigh rates and prices. Where all are down, the first to come
back is one of several independent waits: the inverse of their summed rates. The rest is the renewal model's.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.rows import distinct_rows
from catalogs.tables.table import Bools, Floats, Ints, distinct
from planner.records import record
from planner.spot.distribution import SpotPool

_RARE = 1e-9  # a share of futures that is as good as none
_STEPS = 24  # of the power iteration; two and three zones mix in a few


@record(frozen=True, eq=False)
class Union:
    """Sets of zones, each seen as one pool.

    Attributes:
        pool: of the whole set, arrays of shape `(n,)`.
        shares: of spot up-time per zone, shape `(n, k)`.
        moves: changes of region per interruption, shape `(n,)`.
    """

    pool: SpotPool
    shares: Floats
    moves: Floats


def unite(
    zones: SpotPool, region: Ints, correlation: tuple[float, float], evidence: Ints | None = None
) -> Union:
    """See sets of zones as one pool each.

    Args:
        zones: arrays of shape `(n, k)`, each set cheapest zone first.
        region: code of each zone's region, of the same shape.
        correlation: of being down, within a region and across regions.
        evidence: of the same shape: zones of one code of 0 or more are known from one line of a table alone and share
            its error whole; -1: zones with a record of their own. None: all have one.
    """
    k = zones.rate.shape[1]
    zones = _levels(zones, -1.0)
    # the sets stand on the last axis, so that every step below runs along memory: [gone, other, set]
    rate, wait, first_wait = (
        np.ascontiguousarray(column.T) for column in (zones.rate, zones.wait, zones.first_wait)
    )
    up = 1.0 / (1.0 + rate * wait)
    same = region.T[:, None] == region.T[None]
    linked = np.where(same, *correlation)
    down = (1.0 - up)[None] + linked * up[None]
    down[np.arange(k), np.arange(k)] = 1.0
    all_down = down.prod(axis=1)
    before = np.ones_like(down)
    np.cumprod(down[:, :-1], axis=1, out=before[:, 1:])
    back = (1.0 / wait) / (1.0 / wait).sum(axis=0)
    step = before * (1.0 - down) + all_down[:, None] * back[None]
    spell = np.full(rate.shape, 1.0 / k)
    for _ in range(_STEPS):
        after = spell[0] * step[0]
        for gone in range(1, k):
            after += spell[gone] * step[gone]
        spell = after
    length = spell / rate
    mean_rate = 1.0 / length.sum(axis=0)
    shares = np.ascontiguousarray((length * mean_rate).T)
    others = (1.0 / first_wait).sum(axis=0) - 1.0 / first_wait
    pause = 1.0 / (1.0 / wait + others)
    waits = spell * all_down
    mean_wait = (waits * pause).sum(axis=0)
    square = (waits * pause * pause).sum(axis=0) / np.maximum(mean_wait * mean_wait, 1e-300)
    mean = {name: (shares * getattr(zones, name)).sum(axis=1) for name in ("dispersion", "frailty_sd")}
    spread = np.sqrt(_common_error(shares, correlation[1] if k > 1 else 1.0, evidence))
    pool = SpotPool(
        rate=mean_rate, wait=mean_wait, first_wait=_first_wait(first_wait, up, linked, mean_rate * mean_wait),
        frailty_sd=mean["frailty_sd"] * spread, dispersion=mean["dispersion"] * square,
    )  # fmt: skip
    return Union(_levels(pool, 1.0), shares, _sum_of_pairs(spell[:, None] * step * ~same))


def unite_alike(
    zones: SpotPool, members: Ints, region: Ints, correlation: tuple[float, float], evidence: Ints
) -> Union:
    """The same of sets that share zones: those whose zones are alike are worked out once.

    Args:
        zones: all zones, arrays of shape `(n_zones,)`.
        members: of each set, cheapest zone first, shape `(n, k)`.
        region: as for `unite`.
        correlation: as for `unite`.
        evidence: code of each zone's evidence, shape `(n_zones,)`.
    """
    first, kind = distinct_rows(*(getattr(zones, name) for name in zones.__dataclass_fields__), evidence)
    number, count = np.zeros(len(members), dtype=np.int64), len(first)
    for column in range(members.shape[1]):
        number = number * count + kind[members[:, column]]
        for earlier in range(column):
            number = number * 2 + (region[:, column] == region[:, earlier])
    _, one, own = distinct(number)
    union = unite(zones.take(members[one]), region[one], correlation, evidence[members[one]])
    return Union(union.pool.take(own), union.shares[own], union.moves[own])


def _sum_of_pairs(values: Floats) -> Floats:
    """Sum over the first two axes, in the order in which pairs of one set stand side by side."""
    return np.asarray(np.ascontiguousarray(np.moveaxis(values, 2, 0)).sum(axis=(1, 2)))


def _common_error(shares: Floats, link: float, evidence: Ints | None) -> Floats:
    """Variance of the mean level of a set over that of one zone: levels have a shared part and one of each zone's own.

    Zones known from one line of a table have no part of their own: its error is theirs, all of it.
    """
    alike = np.eye(shares.shape[1], dtype=np.bool_)[:, :, None]
    if evidence is not None:
        alike = alike | ((evidence.T[:, None] == evidence.T[None]) & (evidence.T[:, None] >= 0))
    linked = np.where(alike, 1.0, link)
    part = np.ascontiguousarray(shares.T)
    return _sum_of_pairs(part[:, None] * linked * part[None])


def _levels(pool: SpotPool, sign: float) -> SpotPool:
    """From mean levels to median ones (-1) or back (1): zones meet at their medians, as their frailties even out."""
    factor = np.exp(sign * pool.frailty_sd**2 / 2.0)
    return SpotPool(
        pool.rate * factor, pool.wait * factor, pool.first_wait * factor, pool.frailty_sd, pool.dispersion
    )


def _first_wait(first_wait: Floats, up: Floats, linked: Floats, load: Floats) -> Floats:
    """First wait that gives the mean wait at launch under the model's chance `load / (1 + load)` of being down."""
    first_down = (1.0 - up)[0]
    rest = ((1.0 - up) + linked[0] * up)[1:].prod(axis=0)
    mean = first_down * rest / (1.0 / first_wait).sum(axis=0)
    return np.asarray(mean * (1.0 + load) / np.maximum(load, 1e-300), dtype=np.float64)


def subsets(count: int, most: int) -> list[tuple[int, ...]]:
    """All sets of two to `most` of `count` zones, in lexical order."""
    from itertools import combinations

    return [own for size in range(2, min(most, count) + 1) for own in combinations(range(count), size)]


def scarce_together(never: Floats | float, late: Floats | float, link: Floats | float) -> Floats:
    """Probability that on-demand does not come and spot alone is too late: on-demand is linked to spot as a zone is.

    Args:
        never: that on-demand does not come, 0..1.
        late: that spot alone is too late, of the same shape.
        link: how far both markets are one, 0 (independent) to 1.
    """
    apart = never * late
    return np.asarray(apart + link * (np.minimum(never, late) - apart), dtype=np.float64)


def comes_given(late: Bools, had: float, link: float, usual: float | None = None) -> Floats:
    """Probability that on-demand comes in each of equally probable futures, shape `(n,)`.

    Args:
        late: whether spot alone is too late, shape `(n,)`.
        had: probability that on-demand comes, over all conditions.
        link: how far both markets are one, 0 to 1.
        usual: how often spot alone is too late over all conditions; None: as in these futures, and their mean is `had`.
    """
    share, never = float(late.mean()) if usual is None else usual, 1.0 - had
    share = min(max(share, _RARE), 1.0 - _RARE)  # what never happens is late as what hardly ever does
    both = float(scarce_together(never, share, link))
    where_late, elsewhere = both / share, (never - both) / (1.0 - share)
    return 1.0 - np.where(late, where_late, elsewhere)
