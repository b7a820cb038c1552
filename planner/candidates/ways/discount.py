"""Spot at or above the on-demand price is not a discount: candidates are removed where on-demand serves as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.filters import mark
from planner.candidates.model import SINGLE

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.model import Candidates
    from planner.market.model import Market

    BoolArray = npt.NDArray[np.bool_]
    IntArray = npt.NDArray[np.int64]


def without_discount(market: Market, partner: IntArray) -> BoolArray:
    """Spot offers that cost no less than on-demand of their region, shape `(n_offers,)`.

    Args:
        market: the offers.
        partner: on-demand offer per spot offer, -1 without one.
    """
    price, place = market.offer_set.usd_per_hour, market.region_of_offer
    least = market.offer_set.least_usd_per_hour  # a price that falls over the run may end below on-demand
    spot = np.flatnonzero((partner >= 0) & market.is_spot)
    own = partner[spot]
    dear = np.zeros(len(partner), dtype=np.bool_)
    dear[spot] = (least[spot] >= price[own]) & (place[spot] == place[own])
    return dear


def mark_no_discount(candidates: Candidates, partner: IntArray) -> None:
    """Set the filter bit of spot candidates that on-demand of their region serves as cheaply.

    Only where the same size on on-demand meets every limit: then removing the spot candidate never raises the optimum.
    Where it does not (excluded, no quota, too long to get) spot competes like any other offer.

    Args:
        candidates: candidates without those that run in turn; the bits of those of one offer change in place.
        partner: on-demand offer per spot offer, -1 without one, see `planner.candidates.ways.build.on_demand_partners`.
    """
    dear = without_discount(candidates.context.market, partner)
    at = np.flatnonzero(dear[candidates.offer] & (candidates.bits == 0) & (candidates.kind == SINGLE))
    if not len(at):
        return
    kept = np.flatnonzero((candidates.bits == 0) & (candidates.kind == SINGLE))
    size = candidates.shapes.n_rows
    known = np.sort(candidates.offer[kept] * size + candidates.shape[kept])
    wanted = partner[candidates.offer[at]] * size + candidates.shape[at]
    found = known[np.minimum(np.searchsorted(known, wanted), len(known) - 1)] == wanted
    removed = np.zeros(len(candidates.bits), dtype=np.bool_)
    removed[at[found]] = True
    mark(candidates.bits, "no_discount", removed)
