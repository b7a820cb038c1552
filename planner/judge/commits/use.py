"""What an hour costs beyond commitments, and what of them is used: by prices of plan dollars, many hours at a time.

Reservations serve first; they are paid. What is left of a pool is spot up to its share (where spot is cheaper), else
on-demand: items worth v USD a unit. With prices a, b >= 0 of a dollar of the two plans that may meet in a pool, and
m_p the lesser of a r1_p and b r2_p, no use of the hour costs less than

    D(a, b) = sum_i amount_i min(v_i, m_p(i)) - a room_1 - b room_2

and the best prices reach the cost (linear duality). D is concave and bends where a r1 or b r2 meet a value, or each
other, so the best `a` is one of a short list, found by bisection of slopes; the best `b` for an `a` is where the items
worth more fill the room. With those prices the use follows: a plan takes what is worth more than its price, then what
is worth just that, and where both ask the same the first plan fills before the second.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.records import record

_SAME = 1e-9  # relative: two prices that are one
_ROUNDED = 1e-12  # relative: rounding in floating point


@record(frozen=True, eq=False)
class Market:
    """USD per unit-hour on demand and on spot (infinite without), `(pools,)`; rates of plans, `(K, pools)`."""

    on_demand: Floats
    spot: Floats
    rate: Floats


@record(frozen=True, eq=False)
class Hours:
    """Units wanted beyond what is owned and most of them on spot, `(n, pools)`; dollars of plans, `(n, K)`."""

    wanted: Floats
    spot_most: Floats
    room: Floats


@record(frozen=True, eq=False)
class Use:
    """Cost of each hour, `(n,)`; units on reservations and on plans, `(n, pools)`; plan dollars spent, `(n, K)`."""

    cost: Floats
    reserved: Floats
    planned: Floats
    spent: Floats


def use_of(market: Market, hours: Hours, reserved: Floats) -> Use:
    """The least cost of hours with so many units reserved, `(pools,)`, and what is used for it.

    Raises:
        ValueError: more than two plans of different rates meet in a pool.
    """
    left = np.maximum(hours.wanted - reserved, 0.0)
    by_spot = np.where(market.spot < market.on_demand, np.minimum(hours.spot_most, left), 0.0)
    amounts = np.concatenate([left - by_spot, by_spot], axis=1)
    spot = np.where(np.isfinite(market.spot), market.spot, 0.0)
    values = np.concatenate([market.on_demand, np.minimum(spot, market.on_demand)])
    served, spent = np.zeros_like(amounts), np.zeros_like(hours.room)
    cost = amounts @ values
    for pools, plans in groups(market.rate):
        items = np.concatenate([pools, pools + len(market.on_demand)])
        rate = np.tile(market.rate[np.ix_(plans, pools)], 2)
        part = _Part(values[items], rate, amounts[:, items], hours.room[:, plans])
        prices = part.prices()
        served[:, items], spent[:, plans] = part.fill(prices)
        cost += part.worth(prices) - amounts[:, items] @ values[items]
    planned = served[:, : left.shape[1]] + served[:, left.shape[1] :]
    return Use(cost, np.minimum(hours.wanted, reserved), planned, spent)


def groups(rate: Floats) -> list[tuple[Ints, Ints]]:
    """Pools and plans that meet, directly or by way of others.

    Raises:
        ValueError: more than two plans meet.
    """
    covers, pairs = np.isfinite(rate), []
    free = set(np.flatnonzero(covers.any(axis=1)).tolist())
    while free:
        plans = {free.pop()}
        while more := {k for k in free if (covers[k] & covers[list(plans)].any(axis=0)).any()}:
            plans |= more
            free -= more
        if len(plans) > 2:
            raise ValueError(f"{len(plans)} savings plans of different rates meet in a pool")
        order = np.array(sorted(plans))
        pairs.append((np.flatnonzero(covers[order].any(axis=0)), order))
    return pairs


class _Part:
    """Items that one or two plans cover: values `(I,)`, rates `(K, I)`, amounts `(n, I)`, room `(n, K)`."""

    def __init__(self, values: Floats, rate: Floats, amounts: Floats, room: Floats) -> None:
        self.values, self.rate, self.amounts, self.room = values, rate, amounts, room

    def worth(self, prices: Floats) -> Floats:
        """D at prices `(n, K)`: no use costs less."""
        return self._bounded(self._asked(prices).min(axis=1), prices)

    def _bounded(self, least: Floats, prices: Floats) -> Floats:
        value = (self.amounts * np.minimum(self.values, least)).sum(axis=1)
        return np.asarray(value - (prices * self.room).sum(axis=1))

    def _asked(self, prices: Floats) -> Floats:
        """What each plan asks for a unit of each item, `(n, K, I)`; infinite where it does not serve it."""
        serves = np.isfinite(self.rate)
        return np.where(serves, prices[:, :, None] * np.where(serves, self.rate, 0.0), np.inf)

    def prices(self) -> Floats:
        """Prices at which D is the cost, `(n, K)`."""
        if len(self.rate) == 1:
            return self._last(np.full(self.amounts.shape, np.inf), 0)[:, None]
        first, second = self.rate
        with np.errstate(invalid="ignore"):
            meets = np.where(np.isfinite(first) & np.isfinite(second), second / first, np.nan)
            alone = self.values / second
        listed = np.concatenate([[0.0], self.values / first, np.outer(alone, meets).ravel()])
        steps = np.unique(listed[np.isfinite(listed)])
        steps = steps[np.diff(steps, prepend=-1.0) > _ROUNDED * steps]  # one step, reached by two formulas
        low = np.zeros(len(self.amounts), dtype=np.int64)
        high = np.full(len(self.amounts), len(steps) - 1)
        while (low < high).any():
            middle = (low + high) // 2
            rising = self._best(steps[np.minimum(middle + 1, len(steps) - 1)]) > self._best(steps[middle])
            low, high = np.where(rising & (low < high), middle + 1, low), np.where(rising, high, middle)
        a = steps[low]
        return np.stack([a, self._last(self._first(a), 1)], axis=1)

    def _first(self, a: Floats) -> Floats:
        """What the first plan asks for each item at its price, `(n, I)`."""
        serves = np.isfinite(self.rate[0])
        return np.where(serves, a[:, None] * np.where(serves, self.rate[0], 0.0), np.inf)

    def _best(self, a: Floats) -> Floats:
        first_price = self._first(a)
        b = self._last(first_price, 1)
        serves = np.isfinite(self.rate[1])
        other = np.where(serves, b[:, None] * np.where(serves, self.rate[1], 0.0), np.inf)
        return self._bounded(np.minimum(first_price, other), np.stack([a, b], axis=1))

    def _last(self, other_price: Floats, plan: int) -> Floats:
        """The best price of one plan where the other asks so much, `(n,)`: that of the item that its room ends in."""
        rate = self.rate[plan]
        serves = np.isfinite(rate)
        worth = np.minimum(self.values, other_price)[:, serves] / rate[serves]
        order = np.argsort(-worth, axis=1, kind="stable")
        dollars = np.take_along_axis((self.amounts[:, serves] * rate[serves]), order, axis=1).cumsum(axis=1)
        full = dollars > self.room[:, [plan]] * (1 + _ROUNDED) + _ROUNDED
        at = np.argmax(full, axis=1)
        price = np.take_along_axis(np.take_along_axis(worth, order, axis=1), at[:, None], axis=1)[:, 0]
        return np.where(full.any(axis=1), price, 0.0)

    def fill(self, prices: Floats) -> tuple[Floats, Floats]:
        """Units that plans serve of each item, `(n, I)`, and their dollars, `(n, K)`."""
        prices_asked = self._asked(prices)
        least = prices_asked.min(axis=1)
        cheapest = prices_asked <= least[:, None] * (1 + _SAME)
        both = cheapest.sum(axis=1) > 1
        above = self.values > least * (1 + _SAME)
        exact = ~above & (self.values >= least * (1 - _SAME))
        served, room = np.zeros_like(self.amounts), self.room.copy()
        plans = range(len(self.rate))

        def take(plan: int, items: Bools, keep: Floats) -> None:
            for item in self._order(plan):
                rate = self.rate[plan, item]
                most = np.maximum(room[:, plan] - keep, 0.0) / rate
                units = np.where(
                    items[:, item], np.minimum(self.amounts[:, item] - served[:, item], most), 0.0
                )
                served[:, item] += units
                room[:, plan] -= units * rate

        nothing = np.zeros(len(served))
        for plan in plans:
            take(plan, above & cheapest[:, plan] & ~both, nothing)
        rates = np.where(np.isfinite(self.rate), self.rate, 0.0)
        # room for use worth just the price that no other plan can take
        kept = [
            np.where(exact & cheapest[:, k] & ~both & (least > 0), self.amounts, 0.0) @ rates[k]
            for k in plans
        ]
        for keep in (kept, [nothing] * len(kept)):
            for plan in plans:
                take(plan, above & cheapest[:, plan] & both, keep[plan])
        for shared in (~both, both):
            for plan in plans:
                take(plan, (above | exact) & cheapest[:, plan] & shared, nothing)
        return served, self.room - room

    def _order(self, plan: int) -> Sequence[int]:
        """Items that a plan serves, first those that it serves for least beside the other plan."""
        rate = self.rate[plan]
        other = self.rate[1 - plan] if len(self.rate) == 2 else np.ones_like(rate)
        with np.errstate(invalid="ignore"):
            relative = rate / other
        items = np.flatnonzero(np.isfinite(rate))
        return [int(item) for item in items[np.argsort(relative[items], kind="stable")]]
