"""Fall-backs of spot: on-demand of the same type, in its region or cheaper elsewhere.

Spot that costs as much as on-demand or more is removed where on-demand would serve.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.rows import least, pick_or, some
from planner.candidates.constraints.registry import BIT
from planner.candidates.model import SINGLE

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.model import Candidates
    from planner.market.model import Market


class Partners:
    """The fall-backs of the admitted spot offers, which do not depend on the deadline; computed once."""

    def __init__(self, market: Market, offer_bits: Ints) -> None:
        """Take the offers and their filter bits, shape `(n_offers,)`."""
        self._market, self._offer_bits = market, offer_bits

    @cached_property
    def own(self) -> Ints:
        """On-demand in the same region if there is one, else the provider's cheapest; -1 without one."""
        return on_demand_partners(self._market, self._offer_bits)

    @cached_property
    def elsewhere(self) -> Ints:
        """On-demand in any region that is cheaper than `own`; -1 without one."""
        return on_demand_partners(self._market, self._offer_bits, anywhere=True)

    @cached_property
    def undiscounted(self) -> Bools:
        """Spot offers that cost no less than on-demand of their region."""
        return without_discount(self._market, self.own)


def on_demand_partners(market: Market, offer_bits: Ints, *, anywhere: bool = False) -> Ints:
    """On-demand offer that each spot offer falls back on, -1 without one, shape `(n_offers,)`.

    The cheapest admitted one of the same type in the same region; without one there, of any region of the provider.
    `anywhere` sets the own region aside: -1 where that is no cheaper.
    """
    offer_set, out = market.offer_set, np.full(len(market.is_spot), -1)
    rows = np.flatnonzero(offer_set.offers.equals("purchase_option", "on_demand") & (offer_bits == 0))
    if not len(rows):
        return out
    # dearest first, so that the cheapest is written last; equal prices by id
    rows = rows[np.lexsort((market.id_rank[rows], offer_set.usd_per_hour[rows]))][::-1]
    spot = np.flatnonzero(market.is_spot)
    kind, place = offer_set.type_of_offer, market.region_of_offer
    cheapest = np.full(offer_set.types.n_rows, -1)
    cheapest[kind[rows]] = rows
    out[spot] = cheapest[kind[spot]]
    size = int(place.max()) + 1
    here = np.full(offer_set.types.n_rows * size, -1)
    here[kind[rows] * size + place[rows]] = rows
    own = here[kind[spot] * size + place[spot]]
    if anywhere:
        price = offer_set.usd_per_hour
        out[spot] = np.where((own >= 0) & (price[out[spot]] < price[own]), out[spot], -1)
    else:
        out[spot] = np.where(own >= 0, own, out[spot])
    return out


def without_discount(market: Market, partner: Ints) -> Bools:
    """Spot offers that cost no less than on-demand of their region, shape `(n_offers,)`.

    Args:
        market: the offers.
        partner: on-demand offer per spot offer, -1 without one.
    """
    price, place = market.offer_set.usd_per_hour, market.region_of_offer
    least = market.offer_set.least_usd_per_hour  # a price that falls over the run may end below on-demand
    spot = np.flatnonzero((partner >= 0) & market.is_spot)
    own = partner[spot]
    undiscounted = np.zeros(len(partner), dtype=np.bool_)
    undiscounted[spot] = (least[spot] >= price[own]) & (place[spot] == place[own])
    return undiscounted


def mark_no_discount(candidates: Candidates, partners: Partners) -> None:
    """Set the filter bit of spot candidates that on-demand of their region serves as cheaply.

    Only where the same size on on-demand meets every limit: then removing the spot candidate never raises the optimum.
    Where it does not (excluded, no quota, too long to get) spot competes like any other offer.

    Args:
        candidates: candidates without those that run in turn; the bits of those of one offer change in place.
        partners: what spot offers fall back on.
    """
    if not partners.undiscounted.any():
        return
    kept = np.flatnonzero(candidates.bits == 0)
    kept = kept[candidates.kind[kept] == SINGLE]
    at = kept[partners.undiscounted[candidates.offer[kept]]]
    if not len(at):
        return
    size = candidates.shapes.n_rows
    known = np.sort(candidates.offer[kept] * size + candidates.shape[kept])
    wanted = partners.own[candidates.offer[at]] * size + candidates.shape[at]
    found = known[np.minimum(np.searchsorted(known, wanted), len(known) - 1)] == wanted
    candidates.bits[at[found]] |= BIT["no_discount"]


def cheapest_partner(market: Market, zones: Ints, shares: Floats, partner: Ints) -> Ints:
    """On-demand offer that sets of spot offers fall back on: the cheapest of their members', -1 without one.

    Of equal prices the one where most of the spot time is: the least often must the checkpoint change its region.

    Args:
        market: offers with their prices.
        zones: spot offers of each set, -1 where it has fewer, shape `(n, k)`.
        shares: of the spot time that is had in each, of the same shape.
        partner: on-demand offer per spot offer, -1 without one.

    Returns:
        Offers, shape `(n,)`.
    """
    fallbacks = pick_or(partner, zones, -1)
    price = pick_or(market.offer_set.usd_per_hour, fallbacks, np.inf)
    equal = price == least(price)[:, None]
    best = fallbacks[:, :1].copy()
    for column in reversed(range(zones.shape[1])):  # the first of the cheapest is written last
        best[equal[:, column], 0] = fallbacks[equal[:, column], column]
    open_ = np.flatnonzero(some(equal & (fallbacks != best)))
    if len(open_):
        zones, shares, fallbacks = zones[open_], shares[open_], fallbacks[open_]
        place = market.region_of_offer
        same = pick_or(place, zones, -1)[:, :, None] == pick_or(place, fallbacks, -1)[:, None, :]
        stays = (shares[:, :, None] * (same & (zones >= 0)[:, :, None])).sum(axis=1)
        most = np.where(equal[open_], stays, -1.0).argmax(axis=1)
        best[open_] = np.take_along_axis(fallbacks, most[:, None], axis=1)
    return np.asarray(best[:, 0])
