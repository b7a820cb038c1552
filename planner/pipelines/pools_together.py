"""Which purchases two pools can make together: what they share of declared quotas and of machines that can be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.pipelines.pool_pairs import within

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.pipelines.pools_side import Side
    from planner.pipelines.pools_ways import Offers, Size


_BOTH = (0, 1)


class Together:
    """Quotas that both pools keep together, and machines that both find; what runs in turn is not in use together."""

    def __init__(self, sides: tuple[Side, Side], quotas: Floats) -> None:
        """Take the pools, and the limit of each declared quota."""
        self._quotas, self._held = quotas, np.append(sides[0].most_nodes, np.inf)
        # a last row for no offer
        self._units = [np.vstack([side.units, np.zeros((1, side.units.shape[1]))]) for side in sides]
        self._is_limited = len(quotas) > 0 or bool(np.isfinite(self._held).any())

    def of_each(self, rows: tuple[Ints, Ints], sizes: tuple[Size, Size]) -> Bools | None:
        """Whether each way of one pool can be bought beside each of the other, shape `(n, m)`; None: all can be.

        Args:
            rows: what the ways of both pools buy, -1 beside it, shapes `(n, k)` and `(m, k)`.
            sizes: of both pools.
        """
        if not self._is_limited:
            return None
        uses = [(self._units[n][rows[n]] * sizes[n][1]).max(axis=1) for n in _BOTH]
        out = within(self._quotas, uses[0][:, None] + uses[1])
        nodes = sizes[0][1] + sizes[1][1]
        for offer in np.intersect1d(*rows).tolist():
            if offer >= 0 and self._held[offer] < nodes:
                first, second = ((own == offer).any(axis=1) for own in rows)
                out &= ~(first[:, None] & second)
        return out

    def can_be_had(self, ways: tuple[Offers, Offers], sizes: tuple[Size, Size]) -> bool:
        """The same of one pair of ways."""
        found = self.of_each((np.asarray([ways[0]]), np.asarray([ways[1]])), sizes)
        return found is None or bool(found[0, 0])
