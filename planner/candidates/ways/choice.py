"""Which zones of a type a run on spot may move between: the zones that are worth it, and all sets of a few of them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from planner.spot.zones import subsets

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.model import Candidates
    from planner.market.model import Market

    BoolArray = npt.NDArray[np.bool_]
    IntArray = npt.NDArray[np.int64]

MAX_ZONES = 3  # of one set: the gain of a fourth is small, the number of sets is not
MAX_CHOICE = 8  # zones of one type that sets are made of, cheapest first
MAX_STEADY = 4  # so many more: those of the rest that are up most of the time


def sets_of(candidates: Candidates, group: IntArray, cheap: BoolArray, *, one_region: bool) -> list[IntArray]:
    """Sets of zones of one type and size, padded with -1, arrays of shape `(n_sets, MAX_ZONES)`.

    Of the cheapest zones and the steadiest of the others, and of those of one region that has further ones: zones of
    one region share its on-demand and move no data, so together they may cost less than cheaper ones apart.

    Args:
        candidates: all of them.
        group: spot candidates of one type and size, cheapest first; a zone may be listed more than once.
        cheap: which of them a set may begin with.
        one_region: only sets within one region.
    """
    zones = _first_of_pool(candidates.context.market, candidates.offer[group])
    group, cheap = group[zones], cheap[zones]
    known = np.zeros(len(group), dtype=np.bool_)
    some = _worth_choosing(candidates, group)
    sets = [_sets(candidates, group[some], cheap[some], known[some], one_region=one_region)]
    known[some] = True
    region = candidates.context.market.region_of_offer[candidates.offer[group]]
    for place in np.unique(region[~known]):
        there = np.flatnonzero(region == place)[:MAX_CHOICE]
        if len(there) > 1:
            sets.append(_sets(candidates, group[there], cheap[there], known[there], one_region=True))
    return sets


def _worth_choosing(candidates: Candidates, group: IntArray) -> IntArray:
    """Positions of the cheapest zones, and of those of the others that are up most of the time.

    A dearer zone that is up more of the time saves what runs on demand meanwhile, and without a fall-back the deadline.
    """
    rest = group[MAX_CHOICE:]
    if not len(rest):
        return np.arange(len(group))
    pool = candidates.context.gang_risk(candidates.offer[rest], candidates.nodes[rest]).pool
    down = pool.rate * pool.wait  # hours down for each hour up
    steadiest = np.argsort(down, kind="stable")[:MAX_STEADY]
    return np.concatenate([np.arange(MAX_CHOICE), MAX_CHOICE + np.sort(steadiest)])


def _first_of_pool(market: Market, rows: IntArray) -> IntArray:
    """Positions of the first offer of each zone, in order; one zone may be listed more than once."""
    _, first = np.unique(market.pool_of_offer[rows], return_index=True)
    return np.sort(first)


def _sets(
    candidates: Candidates, group: IntArray, cheap: BoolArray, known: BoolArray, *, one_region: bool
) -> IntArray:
    """Sets of `group` that begin with a zone that is `cheap` and are not of zones that are `known` alone.

    An offer of a whole region is no zone beside one of its zones.
    """
    picked, rows, market = _choices(len(group)), candidates.offer[group], candidates.context.market
    picked = picked[cheap[picked[:, 0]] & ~np.append(known, True)[picked].all(axis=1)]
    region = np.append(market.region_of_offer[rows], -1)
    whole = np.append(market.offer_set.offers["zone"][rows] == "", False)
    fits = np.ones(len(picked), dtype=np.bool_)
    for i in range(MAX_ZONES):
        for j in range(i):
            same = (region[picked[:, i]] == region[picked[:, j]]) & (picked[:, i] >= 0)
            fits &= ~(same & (whole[picked[:, i]] | whole[picked[:, j]]))
            fits &= same | (picked[:, i] < 0) | (not one_region)
    return np.asarray(np.append(group, -1)[picked[fits]])


@lru_cache(maxsize=16)
def _choices(count: int) -> IntArray:
    """All sets of two to `MAX_ZONES` of `count` zones, padded with -1, shape `(n_sets, MAX_ZONES)`."""
    sets = [[*own, *[-1] * (MAX_ZONES - len(own))] for own in subsets(count, MAX_ZONES)]
    return np.asarray(sets, dtype=np.int64).reshape(-1, MAX_ZONES)
