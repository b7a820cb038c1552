"""How far the expected prices of what a pool buys may fall below those of a run of known length.

A pair of pools runs for other hours than the job whose cost bounds it, and spot prices are expected by the length of a
run (`planner.market.price_path`). So a bound counts at the least price of any length that the pair's run may have.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from planner.market.price_path import RUN_HOURS

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.market.offers import OfferSet
    from planner.pipelines.pools_asked import Ways


_ROUNDING = 1.0 - 1e-6
_HOURS = np.asarray(RUN_HOURS)


class RunPrices:
    """Expected prices of offers by the length of a run, over those of the start; straight between `RUN_HOURS`."""

    def __init__(self, offer_set: OfferSet) -> None:
        """Take what can be bought."""
        self._book, self._count = offer_set.book, offer_set.offers.n_rows

    @cached_property
    def _table(self) -> Floats:
        """At each of `RUN_HOURS`, and 1 for an offer that is not there, shape `(n_lengths, n_offers + 1)`."""
        rows = np.arange(self._count)
        growth = [self._book.growth(rows, np.full(self._count, hours)) for hours in RUN_HOURS]
        return np.column_stack([growth, np.ones(len(RUN_HOURS))])

    def _at(self, rows: Ints, hours: float) -> Floats:
        """Of one length, shape as `rows`."""
        at = min(max(int(np.searchsorted(_HOURS, hours, side="right")) - 1, 0), len(_HOURS) - 2)
        part = min(max((hours - RUN_HOURS[at]) / (RUN_HOURS[at + 1] - RUN_HOURS[at]), 0.0), 1.0)
        low, high = self._table[at].take(rows), self._table[at + 1].take(rows)
        return np.asarray(low + (high - low) * part, dtype=np.float64)

    def _between(self, rows: Ints, ends_hours: tuple[float, float]) -> list[Floats]:
        """Of all lengths between two at which a price may be the least or the greatest, each of shape as `rows`."""
        low, high = ends_hours[0], max(ends_hours)
        inner = [self._table[n].take(rows) for n, hours in enumerate(RUN_HOURS) if low < hours < high]
        return [self._at(rows, low), *inner, self._at(rows, high)]

    def least_share(self, rows: Ints, ends_hours: tuple[float, float]) -> float:
        """Least over greatest price of any of some offers in runs between two lengths, in hours."""
        if self._book.path is None or not len(rows):
            return _ROUNDING
        prices = self._between(rows, ends_hours)
        return float((np.minimum.reduce(prices) / np.maximum.reduce(prices)).min()) * _ROUNDING

    def shares(self, ways: Ways, ends_hours: tuple[float, float]) -> Floats:
        """What ways cost at least in runs of other lengths, over what they cost in their own, shape `(n,)`, at most 1.

        Args:
            ways: of one pool, with the expected hours of each.
            ends_hours: the shortest and the longest run.
        """
        out = np.full(len(ways.usd), _ROUNDING)
        if self._book.path is None or not len(out):
            return out
        least, columns = np.minimum.reduce(self._between(ways.rows, ends_hours)), ways.rows.shape[1]
        has = ways.rows.ravel() >= 0
        own = np.ones(len(has))
        own[has] = self._book.growth(ways.rows.ravel()[has], np.repeat(ways.hours, columns)[has])
        ratio = (least / own.reshape(least.shape)).min(axis=1)
        return np.asarray(np.minimum(ratio, 1.0) * _ROUNDING, dtype=np.float64)
