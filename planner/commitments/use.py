"""What a set of commitments is used for, hour by hour: the primal side of `recourse`.

The plans' optimal prices tell which use each plan takes: all use worth more than its cheapest plan asks, none worth
less, and what is worth exactly that as far as capacity goes. Where two plans ask the same for a pool, either may do:

* both prices are above 0: a dollar of one plan then serves such pools as well as a dollar of the other (one ratio of
  rates), but both plans must be filled. Each first keeps room for the marginal use that it alone can take;
* both prices are 0: everything can be covered, if each pool goes to the plan that serves it for relatively least. Pools
  are therefore filled in order of their ratio of rates, spot and on-demand use of a pool together.

So the cost is that of the dual (complementary slackness). Whatever the prices, the use can be done: its cost is a cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.commitments.blocks import join
from planner.commitments.model import CommitModel
from planner.commitments.recourse import Recourse

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
    scenario: Ints
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
    return [_use(model, numbers, x, price) for numbers, price in (recourse or Recourse(model)).batches(x)]


def _use(model: CommitModel, numbers: list[int], x: Floats, price: Floats) -> Use:
    blocks = [model.hours[number] for number in numbers]
    hours = join(blocks, model.n_plans)
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
    filling = _Filling(model, left - by_spot, by_spot, spot_usd, capacity)
    filling.fill(price)
    return Use(
        tuple(numbers),
        hours.period,
        scenario,
        hours.weight,
        model.probability[scenario] * hours.weight,
        np.minimum(hours.demand, units),
        left - filling.on_demand - filling.spot,
        capacity - filling.room,
        owned,
        filling.spot,
        filling.on_demand,
        filling.cost(),
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
        self.order = [self._order(plan) for plan in range(len(self.rate))]

    def cost(self) -> Floats:
        """What is left costs, shape `(n,)`."""
        return np.asarray(
            (self.on_demand * self.price_of[0]).sum(axis=1) + (self.spot * self.price_of[1]).sum(axis=1)
        )

    def fill(self, price: Floats) -> None:
        """Give every use to the plan that asks least for it; where two ask alike, see the module's text."""
        offers = [_times(price[:, plan], rate) for plan, rate in enumerate(self.rate)]
        if not offers:
            return
        least = np.min(offers, axis=0)
        cheapest = [offer <= least * (1 + CLOSE) for offer in offers]
        shared = np.sum(cheapest, axis=0) > 1
        settled = [mine & ~shared for mine in cheapest]
        tied = [mine & shared for mine in cheapest]
        for plan, pools in enumerate(settled):
            self._take(plan, pools, least, strict=True)
        kept = [self._marginal(plan, pools, least) for plan, pools in enumerate(settled)]
        for keep in (kept, None):
            for plan, pools in enumerate(tied):
                self._take(plan, pools, least, strict=True, keep=None if keep is None else keep[plan])
        for group in (settled, tied):
            for plan, pools in enumerate(group):
                self._take(plan, pools, least, strict=False)
        for plan, offer in enumerate(offers):  # what rounding left
            self._take(plan, np.isfinite(offer), np.zeros_like(least), strict=False)

    def _marginal(self, plan: int, pools: Bools, least: Floats) -> Floats:
        """Plan dollars that use worth exactly the price could fill, shape `(n,)`."""
        rate = np.where(np.isfinite(self.rate[plan]), self.rate[plan], 0.0)
        priced = pools & (least > 0)
        dollars = np.zeros(len(least))
        for rest, usd in zip((self.on_demand, self.spot), self.price_of, strict=True):
            exact = priced & (usd <= least * (1 + CLOSE)) & (usd >= least * (1 - CLOSE))
            dollars += np.where(exact, rest, 0.0) @ rate
        return dollars

    def _order(self, plan: int) -> list[int]:
        """Pools that a plan covers, those first that it serves for least beside the other plans."""
        others = [rate for number, rate in enumerate(self.rate) if number != plan]
        pools = np.flatnonzero(np.isfinite(self.rate[plan]))
        relative = self.rate[plan][pools] / (np.min(others, axis=0)[pools] if others else 1.0)
        return [int(pool) for pool in pools[np.argsort(relative, kind="stable")]]

    def _take(
        self,
        plan: int,
        allowed: Bools,
        least: Floats,
        *,
        strict: bool,
        keep: Floats | None = None,
    ) -> None:
        """Fill `plan` with use of the pools `allowed`, but for `keep` dollars per hour, shape `(n,)`."""
        some = np.asarray(allowed.any(axis=0))
        spare = np.zeros(len(least)) if keep is None else keep
        for pool in self.order[plan]:
            if not some[pool]:
                continue
            at, rate = least[:, pool], self.rate[plan, pool]
            for rest, usd in zip((self.on_demand, self.spot), self.price_of, strict=True):
                if not rest[:, pool].any():
                    continue
                enough = at * (1 + CLOSE) if strict else at * (1 - CLOSE)
                worth = usd[:, pool] > enough if strict else usd[:, pool] >= enough
                want = np.where(worth & allowed[:, pool], rest[:, pool], 0.0)
                taken = np.minimum(want, np.maximum(self.room[:, plan] - spare, 0.0) / rate)
                rest[:, pool] -= taken
                self.room[:, plan] = np.maximum(self.room[:, plan] - taken * rate, 0.0)


def _times(price: Floats, rate: Floats) -> Floats:
    """Price per hour times rate per pool, inf where the plan does not cover the pool, `(n, P)`."""
    finite = np.where(np.isfinite(rate), rate, 0.0)
    return np.where(np.isfinite(rate), price[:, None] * finite, np.inf)
