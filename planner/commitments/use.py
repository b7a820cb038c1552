"""What a set of commitments is used for, hour by hour: the primal side of `commit_recourse`.

The plans' optimal prices tell which use each plan takes: all use worth more than the price, none worth less, and what
is worth exactly the price as far as capacity goes. Where a pool is indifferent between two plans either may be filled
first; both ways are tried and the cheaper one counts. Whatever the prices, the result can be done: its cost is a cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from planner.commitments.model import CommitModel
from planner.commitments.recourse import Recourse, batches, join

Floats = npt.NDArray[np.float64]
CLOSE = 1e-9  # relative: worth exactly the price


@dataclass(frozen=True, eq=False)
class Use:
    """Use of some blocks of hours, n rows, P pools, K plans.

    Attributes:
        blocks: their numbers, rows in this order.
        period: their period.
        scenario: of each row, `(n,)`.
        weight: hours that each row stands for in its scenario, `(n,)`.
        time: expected hours that it stands for, `(n,)`.
        reserved: units covered by new reservations, `(n, P)`.
        planned: units covered by plans, `(n, P)`.
        spent: plan dollars used per hour, owned plans included, `(n, K)`.
        owned: plan dollars per hour that are owned, `(n, K)`.
        spot: units on spot, `(n, P)`.
        on_demand: units on demand, `(n, P)`.
        cost_usd: what spot and on-demand cost in each hour, `(n,)`.
    """

    blocks: tuple[int, ...]
    period: int
    scenario: npt.NDArray[np.int64]
    weight: Floats
    time: Floats
    reserved: Floats
    planned: Floats
    spent: Floats
    owned: Floats
    spot: Floats
    on_demand: Floats
    cost_usd: Floats


def use_of(model: CommitModel, x: Floats, recourse: Recourse | None = None) -> list[Use]:
    """Return the use of `x` in all hours, many blocks at a time."""
    prices = (recourse or Recourse(model)).multipliers(x)
    return [
        _use(model, numbers, x, [prices[number] for number in numbers]) for numbers in batches(model.hours)
    ]


def _use(model: CommitModel, numbers: list[int], x: Floats, prices: list[Floats]) -> Use:
    blocks = [model.hours[number] for number in numbers]
    hours, price = join(blocks, model.n_plans), np.concatenate(prices)
    scenario = np.repeat([block.scenario for block in blocks], [len(block.weight) for block in blocks])
    units, plans = model.coverage(x, hours.period)
    left = np.maximum(hours.demand - units, 0.0)
    spot_usd = np.zeros((1, left.shape[1]))
    by_spot = np.zeros_like(left)
    if hours.spot_cap is not None and hours.spot_usd is not None:
        spot_usd = np.minimum(hours.spot_usd, model.on_demand_usd)
        by_spot = np.where(spot_usd < model.on_demand_usd, np.minimum(hours.spot_cap, left), 0.0)
    owned = np.zeros((len(left), model.n_plans)) if hours.owned_plan_usd is None else hours.owned_plan_usd
    capacity = owned + plans
    best: _Filling | None = None
    for order in permutations(range(model.n_plans)) if model.n_plans <= 2 else [tuple(range(model.n_plans))]:
        found = _Filling(model, left - by_spot, by_spot, spot_usd, capacity)
        found.fill(price, order)
        best = found if best is None else best.cheaper(found)
    assert best is not None
    return Use(
        tuple(numbers),
        hours.period,
        scenario,
        hours.weight,
        model.probability[scenario] * hours.weight,
        np.minimum(hours.demand, units),
        left - best.on_demand - best.spot,
        capacity - best.room,
        owned,
        best.spot,
        best.on_demand,
        best.cost(),
    )


class _Filling:
    """Use being covered by plans; `on_demand` and `spot` are what is not covered yet."""

    def __init__(
        self, model: CommitModel, on_demand: Floats, spot: Floats, spot_usd: Floats, capacity: Floats
    ) -> None:
        self.rate = model.plan_rate_usd
        self.price_of = (
            np.broadcast_to(model.on_demand_usd, on_demand.shape),
            np.broadcast_to(spot_usd, spot.shape),
        )
        self.on_demand, self.spot = on_demand.copy(), spot.copy()
        self.room = capacity.copy()

    def cost(self) -> Floats:
        """What is left costs, shape `(n,)`."""
        return np.asarray(
            (self.on_demand * self.price_of[0]).sum(axis=1) + (self.spot * self.price_of[1]).sum(axis=1)
        )

    def cheaper(self, other: _Filling) -> _Filling:
        """Take over the rows in which `other` costs less."""
        better = other.cost() < self.cost()
        for name in ("on_demand", "spot", "room"):
            getattr(self, name)[better] = getattr(other, name)[better]
        return self

    def fill(self, price: Floats, order: tuple[int, ...]) -> None:
        """Fill the plans, in `order` where a pool is indifferent."""
        offer = [_times(price[:, plan], self.rate[plan]) for plan in range(len(self.rate))]
        if not offer:
            return
        least = np.min(offer, axis=0)
        for settled, strict in ((True, True), (False, True), (True, False), (False, False)):
            for plan in order:
                mine = offer[plan] <= least * (1 + CLOSE)
                others = [offer[other] for other in order if other != plan]
                alone = np.all([other > least * (1 + CLOSE) for other in others], axis=0) if others else mine
                self._take(plan, mine & (alone == settled), least, strict=strict)
        for plan in order:
            self._take(plan, np.isfinite(offer[plan]), np.zeros_like(least), strict=False)

    def _order(self, plan: int) -> list[int]:
        """Pools that a plan covers, those first that it serves for least beside the other plans."""
        others = [rate for number, rate in enumerate(self.rate) if number != plan]
        pools = np.flatnonzero(np.isfinite(self.rate[plan]))
        relative = self.rate[plan][pools] / (np.min(others, axis=0)[pools] if others else 1.0)
        return [int(pool) for pool in pools[np.argsort(relative, kind="stable")]]

    def _take(self, plan: int, allowed: npt.NDArray[np.bool_], least: Floats, *, strict: bool) -> None:
        for rest, usd in zip((self.on_demand, self.spot), self.price_of, strict=True):
            for pool in self._order(plan):
                at = least[:, pool]
                worth = usd[:, pool] > at * (1 + CLOSE) if strict else usd[:, pool] >= at * (1 - CLOSE)
                want = np.where(worth & allowed[:, pool], rest[:, pool], 0.0)
                taken = np.minimum(want, self.room[:, plan] / self.rate[plan, pool])
                rest[:, pool] -= taken
                self.room[:, plan] = np.maximum(self.room[:, plan] - taken * self.rate[plan, pool], 0.0)


def _times(price: Floats, rate: Floats) -> Floats:
    """Price per hour times rate per pool, inf where the plan does not cover the pool, `(n, P)`."""
    finite = np.where(np.isfinite(rate), rate, 0.0)
    return np.where(np.isfinite(rate), price[:, None] * finite, np.inf)
