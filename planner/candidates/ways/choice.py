"""Which zones of a type a run on spot may move between: the zones that are worth it, and all sets of a few of them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct
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


def sets_of(
    candidates: Candidates, at: IntArray, group: IntArray, cheap: BoolArray, *, one_region: bool
) -> IntArray:
    """Sets of zones of one type and size, padded with -1, shape `(n_sets, MAX_ZONES)`, by group.

    Of the cheapest zones and the steadiest of the others, and of those of one region that has further ones: zones of
    one region share its on-demand and move no data, so together they may cost less than cheaper ones apart.

    Args:
        candidates: all of them.
        at: spot candidates by group, cheapest first; a zone may be listed more than once.
        group: number of their type and size, ascending.
        cheap: which of them a set may begin with.
        one_region: only sets within one region.
    """
    market = candidates.context.market
    zones = _first_of_pool(market, candidates.offer[at], group)
    at, group, cheap = at[zones], group[zones], cheap[zones]
    region = market.region_of_offer[candidates.offer[at]]
    places = int(region.max(initial=0)) + 1
    place = group * places + region
    known = _worth_choosing(candidates, at, group)
    sets, of_group = _sets(group, np.flatnonzero(known), cheap)
    there = np.flatnonzero(np.isin(place, place[~known]))
    there = there[np.argsort(place[there], kind="stable")]
    more, of_place = _sets(place, there[_rank(place[there]) < MAX_CHOICE], cheap)
    further = ~np.append(known, True)[more].all(axis=1)
    sets = np.concatenate([sets, more[further]])
    order = np.argsort(np.concatenate([of_group, of_place[further] // places]), kind="stable")
    found = np.append(at, -1)[sets[order]]
    return found[_apart(candidates, found, one_region=one_region)]


def _worth_choosing(candidates: Candidates, at: IntArray, group: IntArray) -> BoolArray:
    """Whether zones are among the cheapest of their group, or those of the others that are up most of the time.

    A dearer zone that is up more of the time saves what runs on demand meanwhile, and without a fall-back the deadline.
    """
    worth = _rank(group) < MAX_CHOICE
    rest = np.flatnonzero(~worth)
    if len(rest):
        pool = candidates.context.gang_risk(candidates.offer[at[rest]], candidates.nodes[at[rest]]).pool
        down = pool.rate * pool.wait  # hours down for each hour up
        rest = rest[np.lexsort((down, group[rest]))]
        worth[rest[_rank(group[rest]) < MAX_STEADY]] = True
    return worth


def _first_of_pool(market: Market, rows: IntArray, group: IntArray) -> IntArray:
    """Positions of the first offer of each zone of a group, in order; one zone may be listed more than once."""
    pool = market.pool_of_offer[rows]
    return np.sort(distinct(group * (int(pool.max(initial=0)) + 1) + pool)[1])


def _rank(group: IntArray) -> IntArray:
    """How many of the same group stand before each; those of one group stand together."""
    first = np.flatnonzero(np.append(True, group[1:] != group[:-1])[: len(group)])
    return np.arange(len(group)) - np.repeat(first, np.diff(np.append(first, len(group))))


def _sets(group: IntArray, at: IntArray, cheap: BoolArray) -> tuple[IntArray, IntArray]:
    """Sets of zones `at`, which stand by group, that begin with a zone that is `cheap`, and the group of each."""
    first = np.flatnonzero(_rank(group[at]) == 0)
    size = np.diff(np.append(first, len(at)))
    sets, groups = [np.zeros((0, MAX_ZONES), dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for count in np.flatnonzero(np.bincount(size)).tolist():
        own, picked = first[size == count], _choices(count)
        begins = cheap[at[own[:, None] + picked[:, 0]]]
        block, which = np.nonzero(begins)
        members = np.append(at, -1)[np.where(picked[which] >= 0, own[block][:, None] + picked[which], -1)]
        sets.append(members)
        groups.append(group[at[own[block]]])
    of = np.concatenate(groups)
    order = np.argsort(of, kind="stable")
    return np.concatenate(sets)[order], of[order]


def _apart(candidates: Candidates, sets: IntArray, *, one_region: bool) -> BoolArray:
    """Whether sets are of separate zones: an offer of a whole region is no zone beside one of its zones."""
    market, has = candidates.context.market, sets >= 0
    rows = candidates.offer[sets]
    region = np.where(has, market.region_of_offer[rows], -1)
    whole = has & market.offer_set.offers.equals("zone", "")[rows]
    fits = np.ones(len(sets), dtype=np.bool_)
    if not one_region and not whole.any():
        return fits
    for i in range(MAX_ZONES):
        for j in range(i):
            same = (region[:, i] == region[:, j]) & has[:, i]
            fits &= ~(same & (whole[:, i] | whole[:, j]))
            fits &= same | ~has[:, i] | (not one_region)
    return fits


@lru_cache(maxsize=16)
def _choices(count: int) -> IntArray:
    """All sets of two to `MAX_ZONES` of `count` zones, padded with -1, shape `(n_sets, MAX_ZONES)`."""
    sets = [[*own, *[-1] * (MAX_ZONES - len(own))] for own in subsets(count, MAX_ZONES)]
    return np.asarray(sets, dtype=np.int64).reshape(-1, MAX_ZONES)
