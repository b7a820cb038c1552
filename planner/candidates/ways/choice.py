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
MAX_STEADY = 4  # where spot must do alone, so many more: those of the rest that are up most of the time


def worth_choosing(candidates: Candidates, group: IntArray, *, alone: bool) -> IntArray:
    """Positions of the zones that sets are made of: the cheapest, and where spot must do alone the steadiest too.

    What falls back on on-demand gains nothing by a dearer zone that is up more of the time; what does not may be in
    time by it alone.

    Args:
        candidates: candidates.
        group: spot candidates of one type and size, cheapest first; a zone may be listed more than once.
        alone: whether there is no on-demand to fall back on.
    """
    zones = _first_of_pool(candidates.context.market, candidates.offer[group])
    cheapest, rest = zones[:MAX_CHOICE], zones[MAX_CHOICE:]
    if not alone or not len(rest):
        return cheapest
    pool = candidates.context.gang_risk(candidates.offer[group[rest]], candidates.nodes[group[rest]]).pool
    down = pool.rate * pool.wait  # hours down for each hour up
    steadiest = np.argsort(down, kind="stable")[:MAX_STEADY]
    return np.concatenate([cheapest, rest[np.sort(steadiest)]])


def _first_of_pool(market: Market, rows: IntArray) -> IntArray:
    """Positions of the first offer of each zone, in order; one zone may be listed more than once."""
    _, first = np.unique(market.pool_of_offer[rows], return_index=True)
    return np.sort(first)


def sets_of(
    market: Market, offer: IntArray, group: IntArray, cheap: BoolArray, *, one_region: bool
) -> IntArray:
    """Sets of the candidates `group` that begin with one that is `cheap`, padded with -1.

    An offer of a whole region is no zone beside one of its zones.
    """
    own = _choices(len(group))
    own = own[cheap[own[:, 0]]]
    region = np.append(market.region_of_offer[offer[group]], -1)
    whole = np.append(market.offer_set.offers["zone"][offer[group]] == "", False)
    fits = np.ones(len(own), dtype=np.bool_)
    for i in range(MAX_ZONES):
        for j in range(i):
            same = (region[own[:, i]] == region[own[:, j]]) & (own[:, i] >= 0)
            fits &= ~(same & (whole[own[:, i]] | whole[own[:, j]]))
            fits &= same | (own[:, i] < 0) | (not one_region)
    return np.append(group, -1)[own[fits]]


@lru_cache(maxsize=16)
def _choices(count: int) -> IntArray:
    """All sets of two to `MAX_ZONES` of `count` zones, padded with -1, shape `(n_sets, MAX_ZONES)`."""
    sets = [[*own, *[-1] * (MAX_ZONES - len(own))] for own in subsets(count, MAX_ZONES)]
    return np.asarray(sets, dtype=np.int64).reshape(-1, MAX_ZONES)
