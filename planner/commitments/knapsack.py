"""Plan dollars of many hours spent on the uses that save most per dollar: one fractional knapsack per hour.

Shapes: n hours, P pools of a part, p pools that the dollars may be spent on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from catalogs.tables.table import Floats, Ints
from planner.records import record

Order = npt.NDArray[np.unsignedinteger[Any]]


@record(frozen=True, eq=False)
class Knapsack:
    """What does not change between fillings.

    Attributes:
        pools: numbers of the pools within their part, shape `(p,)`.
        weights: the same with plan dollars per unit-hour each, 0 where the plan does not cover the pool.
        rate: plan dollars per unit-hour, infinite where not covered, shape `(p,)`.
        on_demand: USD per unit-hour on demand, of all pools of the part, shape `(P,)`.
        spot: USD per unit-hour on spot, shape `(n, P)`, or `(1, P)` where it is the same in every hour; None: no spot.
        order: of the uses, on demand and then on spot, by saving per plan dollar: `(n, uses)`, or `(1, uses)` where all
            hours have one order.
        one_order: that of all hours, None where each has its own.
        saved: per plan dollar by the first use not wholly covered, shape `(uses + 1,)`; empty where orders differ.
    """

    pools: Ints
    weights: list[tuple[int, float]]
    rate: Floats
    on_demand: Floats
    spot: Floats | None
    order: Order
    one_order: list[int] | None
    saved: Floats

    def fill(self, left: Floats, by_spot: Floats | None, capacity: Floats) -> Floats:
        """Fill one knapsack per hour; return what one more plan dollar would save, shape `(n,)`.

        Args:
            left: units beyond spot, `(P, n)`: each use is filled for all hours at once.
            by_spot: units that spot would take, `(P, n)`.
            capacity: plan dollars per hour, `(n,)`.
        """
        n = left.shape[1]
        if not self.weights:
            return np.zeros(n)
        need = [left[pool] * each for pool, each in self.weights]
        if by_spot is not None:
            need += [by_spot[pool] * each for pool, each in self.weights]
        if self.one_order is None:
            return self._fill_each(np.stack(need, axis=1), capacity)
        used, reached = np.zeros(n), np.zeros(n, dtype=np.intp)
        for item in self.one_order:
            used += need[item]
            reached += used <= capacity
        return np.asarray(self.saved[reached], dtype=np.float64)

    def _fill_each(self, need: Floats, capacity: Floats) -> Floats:
        """The same where every hour has its own order; `need` in plan dollars, `(n, uses)`."""
        n, count, every = len(need), len(self.pools), np.arange(len(need))
        used = np.cumsum(need[every[:, None], self.order], axis=1)
        over = used > capacity[:, None]
        item = self.order[every, np.argmax(over, axis=1)].astype(np.int64)
        pool = item % count
        worth = self.on_demand[self.pools[pool]]
        if self.spot is not None:
            at = every if len(self.spot) == n else np.zeros(n, dtype=np.int64)
            worth = np.where(item < count, worth, self.spot[at, self.pools[pool]])
        return np.asarray(np.where(over[:, -1], worth / self.rate[pool], 0.0))


def knapsack_of(pools: Ints, rate: Floats, on_demand: Floats, spot: Floats | None) -> Knapsack:
    """Sort the uses of `pools`; arguments as the attributes of `Knapsack`."""
    weight = np.where(np.isfinite(rate), rate, 0.0)
    weights = list(zip(pools.tolist(), weight.tolist(), strict=True))
    worth = np.broadcast_to(on_demand[pools] / rate, (1, len(rate)))
    if spot is not None:
        worth = np.concatenate(
            [np.broadcast_to(worth, (len(spot), len(rate))), spot[:, pools] / rate], axis=1
        )
    # a small type: one entry per hour and use
    small = np.uint8 if worth.shape[1] <= 256 else np.uint32
    order: Order = np.argsort(-worth, axis=1, kind="stable").astype(small)
    one_order, saved = None, np.zeros(0)
    if len(order) == 1:
        one_order = order[0].tolist()
        saved = np.append(worth[0][order[0]], 0.0)  # nothing where all are covered
    return Knapsack(pools, weights, rate, on_demand, spot, order, one_order, saved)
