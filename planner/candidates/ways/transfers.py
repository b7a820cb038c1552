"""What it costs to carry a checkpoint between the regions of a job that runs on one offer after another."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.rows import pick_or
from catalogs.tables.table import distinct

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from catalogs.tariffs import TierCurve
    from planner.market.model import Market


def between_regions_usd_per_gb(market: Market, offer: Ints) -> Floats:
    """Dearest price between the regions of each cell, USD per GB; 0 within one region."""
    place, out = pick_or(market.region_of_offer, offer, -1), np.zeros(len(offer))
    known = market.known_places.usd_per_gb
    for source, target in combinations(range(offer.shape[1]), 2):
        here, there = place[:, source], place[:, target]
        at = np.flatnonzero((here != there) & (here >= 0) & (there >= 0))
        here, there = here[at], there[at]
        usd = np.maximum(known[here, there], known[there, here])
        new = np.isnan(usd)
        if new.any():
            _ask(market, here[new], there[new])
            _ask(market, there[new], here[new])
            usd[new] = np.maximum(known[here[new], there[new]], known[there[new], here[new]])
        out[at] = np.maximum(out[at], usd)
    return out


def _ask(market: Market, here: Ints, there: Ints) -> None:
    """Note prices between pairs of regions, the dearest one to the internet where one is not known."""
    known, places = (
        market.known_places.usd_per_gb,
        market.offer_set.offers.distinct_keys("provider", "region")[1],
    )
    one = distinct(here * len(known) + there)[1]
    # by identity, as many pairs share a curve; each is kept, so that no other is given its id
    prices: dict[int, tuple[float, TierCurve]] = {}
    for source, target in zip(here[one].tolist(), there[one].tolist(), strict=True):
        curve = market.tariffs.transfer_curve(*places[source], *places[target])
        curve = market.tariffs.dearest_internet_curve() if curve is None else curve
        if id(curve) not in prices:
            prices[id(curve)] = usd_per_gb(curve), curve
        known[source, target] = prices[id(curve)][0]


def usd_per_gb(curve: TierCurve) -> float:
    """Dearest tier of a curve per GB of 1e9 bytes."""
    return float(max(curve.usd_per_gb) * curve.quantity(Decimal(1)))


def moved_curve(market: Market, offers: list[int]) -> tuple[TierCurve, bool]:
    """The dearest curve between two regions of `offers`, and whether it is known."""
    codes = frozenset(market.region_of_offer[[row for row in offers if row >= 0]].tolist())
    curves = market.known_places.curves
    if codes not in curves:
        curves[codes] = _moved_curve(market, offers)
    return curves[codes]


def _moved_curve(market: Market, offers: list[int]) -> tuple[TierCurve, bool]:
    region = market.region_of_offer
    places: dict[int, int] = {}
    for row in offers:
        if row >= 0:
            places.setdefault(int(region[row]), row)
    found = [_curve_from(market, *pair) for pair in permutations(places.values(), 2)]
    known = [curve for curve in found if curve is not None]
    if len(known) < len(found):
        known.append(market.tariffs.dearest_internet_curve())
    return max(known, key=usd_per_gb), len(known) == len(found)


def _curve_from(market: Market, source: int, target: int) -> TierCurve | None:
    """What moving data costs from the region of one offer to that of another, None unknown."""
    text = market.offer_set.offers
    ends = (str(text[name][row]) for row in (source, target) for name in ("provider", "region"))
    return market.tariffs.transfer_curve(*ends)
