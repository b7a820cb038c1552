"""How far the expected prices of what a pool buys may fall below those of a run of known length.

A pair of pools runs for other hours than the job whose cost bounds it, and spot prices are expected by the length of a
run (`planner.market.price_path`). So a bound counts at the least price of any length that the pair's run may have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.market.price_path import RUN_HOURS

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.market.offers import OfferSet
    from planner.pipelines.pools_asked import Ways

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

_ROUNDING = 1.0 - 1e-6


def prices_between(offer_set: OfferSet, rows: IntArray, ends_hours: tuple[float, float]) -> FloatArray:
    """Prices that offers expect in runs of some lengths, over that of the start, shape `(n_lengths, n)`.

    They are straight between `RUN_HOURS`: the least and the greatest are at one of these or at an end.
    """
    low, high = ends_hours[0], max(ends_hours)
    lengths = np.unique(np.clip((*RUN_HOURS, low, high), low, high))
    growth = offer_set.book.growth(np.tile(rows, len(lengths)), np.repeat(lengths, len(rows)))
    return np.asarray(growth.reshape(len(lengths), -1), dtype=np.float64)


def least_share(offer_set: OfferSet, rows: IntArray, ends_hours: tuple[float, float]) -> float:
    """Least over greatest price that any of some offers can expect in runs of some lengths."""
    if offer_set.book.path is None or not len(rows):
        return _ROUNDING
    prices = prices_between(offer_set, rows, ends_hours)
    return float((prices.min(axis=0) / prices.max(axis=0)).min()) * _ROUNDING


def price_shares(offer_set: OfferSet, ways: Ways, ends_hours: tuple[float, float]) -> FloatArray:
    """What ways cost at least in runs of other lengths, over what they cost in their own, shape `(n,)`, at most 1.

    Args:
        offer_set: what can be bought.
        ways: of one pool, with the expected hours of each.
        ends_hours: the shortest and the longest run.
    """
    if offer_set.book.path is None or not len(ways.usd):
        return np.full(len(ways.usd), _ROUNDING)
    row, column = np.nonzero(ways.rows >= 0)
    offers, own = np.unique(ways.rows[row, column], return_inverse=True)
    least = prices_between(offer_set, offers, ends_hours).min(axis=0)[own]
    out = np.ones(len(ways.usd))
    np.minimum.at(out, row, least / offer_set.book.growth(offers[own], ways.hours[row]))
    return out * _ROUNDING
