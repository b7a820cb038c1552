"""Which zones of a type a run on spot may move between: the zones that are worth it, and all sets of a few of them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.rows import whole
from catalogs.tables.table import changes, distinct
from planner.spot.zones import subsets

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.market.model import Market


MAX_ZONES = 3  # of one set: the gain of a fourth is small, the number of sets is not
MAX_CHOICE = 8  # zones of one type that sets are made of, cheapest first
MAX_STEADY = 4  # so many more: those of the rest that are up most of the time


def sets_of(market: Market, rows: Ints, group: Ints, cheap: Bools, down: Floats, *, one_region: bool) -> Ints:
    """Sets of zones of one type and size, by group: positions in `rows`, padded with -1, shape `(n_sets, MAX_ZONES)`.

    Of the cheapest zones and the steadiest of the others, and of those of one region that has further ones: zones of
    one region share its on-demand and move no data, so together they may cost less than cheaper ones apart.

    Args:
        market: the offers.
        rows: spot offers by group, cheapest first; a zone may be listed more than once.
        group: number of their type and size, ascending.
        cheap: which of them a set may begin with.
        down: hours down for each hour up.
        one_region: only sets within one region.
    """
    zones = _first_of_pool(market, rows, group)
    group, cheap, region = group[zones], cheap[zones], market.region_of_offer[rows[zones]]
    places = int(region.max(initial=0)) + 1
    place = group * places + region
    known = _worth_choosing(group, down[zones])
    sets, of_group = _sets(group, np.flatnonzero(known), cheap)
    further = np.zeros((int(group.max(initial=-1)) + 1) * places, dtype=np.bool_)
    further[place[~known]] = True
    there = np.flatnonzero(further[place])
    there = there[np.argsort(place[there], kind="stable")]
    more, of_place = _sets(place, there[_rank(place[there]) < MAX_CHOICE], cheap)
    new = ~whole(np.append(known, True)[more])
    sets = np.concatenate([sets, more[new]])
    order = np.argsort(np.concatenate([of_group, of_place[new] // places]), kind="stable")
    members = np.append(zones, -1)[sets[order]]
    return members[_apart(market, np.append(rows, -1)[members], one_region=one_region)]


def _worth_choosing(group: Ints, down: Floats) -> Bools:
    """Whether zones are among the cheapest of their group, or those of the others that are up most of the time.

    A dearer zone that is up more of the time saves what runs on demand meanwhile, and without a fall-back the deadline.
    """
    worth = _rank(group) < MAX_CHOICE
    rest = np.flatnonzero(~worth)
    rest = rest[np.lexsort((down[rest], group[rest]))]
    worth[rest[_rank(group[rest]) < MAX_STEADY]] = True
    return worth


def _first_of_pool(market: Market, rows: Ints, group: Ints) -> Ints:
    """Positions of the first offer of each zone of a group, in order; one zone may be listed more than once."""
    pool = market.pool_of_offer[rows]
    return np.sort(distinct(group * (int(pool.max(initial=0)) + 1) + pool)[1])


def _rank(group: Ints) -> Ints:
    """How many of the same group come before each; those of one group are together."""
    first = changes(group)
    return np.arange(len(group)) - np.repeat(first, np.diff(np.append(first, len(group))))


def _sets(group: Ints, at: Ints, cheap: Bools) -> tuple[Ints, Ints]:
    """Sets of zones `at`, sorted by group, that begin with a zone that is `cheap`, and the group of each."""
    first = np.flatnonzero(_rank(group[at]) == 0)
    size = np.diff(np.append(first, len(at)))
    sets, groups = [np.zeros((0, MAX_ZONES), dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for count in np.flatnonzero(np.bincount(size)).tolist():
        starts, picked = first[size == count], _choices(count)
        block, which = np.nonzero(cheap[at[starts[:, None] + picked[:, 0]]])
        start = starts[block]
        sets.append(np.append(at, -1)[np.where(picked[which] >= 0, start[:, None] + picked[which], -1)])
        groups.append(group[at[start]])
    of_set = np.concatenate(groups)
    order = np.argsort(of_set, kind="stable")
    return np.concatenate(sets)[order], of_set[order]


def _apart(market: Market, rows: Ints, *, one_region: bool) -> Bools:
    """Whether sets of offers are of separate zones: one of a whole region is not a zone beside one of its zones."""
    has, region = rows >= 0, market.region_of_offer[rows]
    whole = has & market.offer_set.offers.equals("zone", "")[rows]
    fits = np.ones(len(rows), dtype=np.bool_)
    if not one_region and not whole.any():
        return fits
    for i in range(MAX_ZONES):
        for j in range(i):
            same = (region[:, i] == region[:, j]) & has[:, i]  # sets are padded behind
            fits &= ~(same & (whole[:, i] | whole[:, j]))
            fits &= same | ~has[:, i] | (not one_region)
    return fits


@lru_cache(maxsize=16)
def _choices(count: int) -> Ints:
    """All sets of two to `MAX_ZONES` of `count` zones, padded with -1, shape `(n_sets, MAX_ZONES)`."""
    sets = [[*own, *[-1] * (MAX_ZONES - len(own))] for own in subsets(count, MAX_ZONES)]
    return np.asarray(sets, dtype=np.int64).reshape(-1, MAX_ZONES)
