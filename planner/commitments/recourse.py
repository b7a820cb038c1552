"""The second stage of the commitment model, solved exactly without a solver.

With prices `lambda_k >= 0` on the plans' capacity, the dual of one hour (see `commit`) separates by pool:

    D(lambda) = sum_p [a_p min(od_p, m_p) + b_p min(spot_p, m_p)] - sum_k lambda_k Y_k,     m_p = min_k lambda_k rate_kp

where reservations (sunk) are used first, `b_p = min(cap_p, rest)` is what spot can take and `a_p` the rest of it. Any
`lambda >= 0` therefore gives an affine function of reservations and plan capacity that nowhere exceeds the cost: a cut.
The best `lambda` is found by greedy fill:

* no plan: nothing to choose;
* one plan: a fractional knapsack. Plan dollars go to the use that saves most per plan dollar; `lambda` is what the
  first use not wholly covered would save;
* two plans over the same pools (1 and 3 years, say, at rates that are not a multiple of each other): along a ray
  `lambda_2 = r lambda_1` the problem is one knapsack, and between two rays at which a pool is indifferent
  (`r_p = rate_1p / rate_2p`) it is two separate ones. D is concave, so its optimum is on one of the P rays or at one of
  the P + 1 separate optima: 2 P + 1 knapsacks decide it.

At the best `lambda` D is the cost itself (strong duality), so one pass gives both value and cut.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.commitments.blocks import few, join
from planner.commitments.knapsack import Knapsack, knapsack_of
from planner.commitments.model import CommitModel, Hours
from solvers.problem.errors import ModelError
from solvers.search.decompose import Evaluation, OutOfTimeError

MAX_PLANS = 2  # that cover a common pool


@dataclass
class _Known:
    """What the first evaluations told: seconds of one, and that of buying nothing."""

    pace_s: float = 0.0
    nothing: Evaluation | None = None


class Recourse:
    """The oracle of `solve_benders` for a `CommitModel`."""

    def __init__(self, model: CommitModel, deadline: float = math.inf) -> None:
        """Prepare `model`; after `deadline` (of `time.perf_counter`) evaluations give up.

        The first does not: of buying nothing it then tells the cost alone, without what would prove a bound.
        """
        self.model = model
        self._deadline, self._spare, self._begun = deadline, 0, False
        self._known = _Known()
        parts = components(model.plan_rate_usd)
        self._chunks = [_Chunk(model, batches, parts) for batches in few(model.hours)]

    def evaluate(self, x: Floats) -> Evaluation:
        """Return the cost of each scenario at `x` and its cut.

        Raises:
            OutOfTimeError: the deadline passed.
        """
        if self._known.nothing is not None and not x.any():
            self._begun = True
            return self._known.nothing
        model = self.model
        scenarios, count = len(model.probability), len(model.columns)
        value, height, slope = np.zeros(scenarios), np.zeros(scenarios), np.zeros((scenarios, count))
        began = time.perf_counter()
        for done, chunk in enumerate(self._chunks):
            now = time.perf_counter()
            if self._begun and now > self._deadline - self._spare * self._known.pace_s:
                raise OutOfTimeError
            ends = now + (now - began) * (len(self._chunks) / max(done, 1) - 1.0)  # at the pace so far
            if ends > self._deadline and not (
                x.any() or chunk.owns_plans
            ):  # costs are at least 0: no cut is one
                value[chunk.scenarios] += chunk.by_scenario(chunk.cost_of_nothing())
                continue
            cost, by_pool, by_plan = chunk.solve(*chunk.coverage(x))
            value[chunk.scenarios] += chunk.by_scenario(cost)
            height[chunk.scenarios] += chunk.by_scenario(cost)
            slope[chunk.scenarios] += chunk.by_scenario(chunk.by_column(by_pool, by_plan))
        self._begun, self._known.pace_s = True, time.perf_counter() - began
        found = Evaluation(value, height - slope @ x, slope)
        if not x.any():
            self._known.nothing = found
        return found

    @property
    def pace_s(self) -> float:
        """Seconds that the last evaluation took; 0 before any."""
        return self._known.pace_s

    def until(self, deadline: float, spare: int = 0) -> Recourse:
        """The same with another deadline, so much earlier that `spare` more evaluations end before it."""
        other = copy.copy(self)
        other._deadline, other._spare, other._begun = deadline, spare, False
        return other

    def batches(self, x: Floats) -> Iterator[tuple[list[int], Floats]]:
        """Yield numbers of blocks of one period, with the plans' optimal prices at `x` in all their hours, `(n, K)`."""
        for chunk in self._chunks:
            prices = chunk.multipliers(*chunk.coverage(x))
            yield from zip(chunk.batches, np.split(prices, chunk.batch_starts[1:]), strict=True)


def components(rates: Floats) -> list[tuple[Ints, Ints]]:
    """Group pools and plans that touch each other: (pools, plans) of each group; a pool without plan is its own.

    Args:
        rates: shape `(K, P)`, inf where a plan does not cover a pool.

    Raises:
        ModelError: more than two plans meet in one group.
    """
    covers = np.isfinite(rates)
    label = np.arange(rates.shape[1])
    for _ in range(len(rates)):
        for row in covers:
            if row.any():
                label[np.isin(label, label[row])] = label[row].min()
    groups = []
    free = ~covers.any(axis=0)
    if free.any():
        groups.append((np.flatnonzero(free), np.zeros(0, dtype=np.int64)))
    for name in np.unique(label[~free]):
        pools = np.flatnonzero(label == name)
        plans = np.flatnonzero(covers[:, pools].any(axis=1))
        if len(plans) > MAX_PLANS:
            raise ModelError(
                f"{len(plans)} savings plans of different rates cover common pools; at most {MAX_PLANS} can"
            )
        groups.append((pools, plans))
    return groups


class _Chunk:
    """Batches of blocks of hours, joined, with what does not change between evaluations."""

    def __init__(self, model: CommitModel, batches: list[list[int]], parts: list[tuple[Ints, Ints]]) -> None:
        blocks = [model.hours[number] for numbers in batches for number in numbers]
        self.batches = batches
        periods, self._period = np.unique([block.period for block in blocks], return_inverse=True)
        flags = [[column.is_active(period) for column in model.columns] for period in periods.tolist()]
        active = np.asarray(flags, dtype=np.bool_).reshape(len(periods), len(model.columns))
        self._gives = active * np.array([1.0 if c.plan is None else c.capacity for c in model.columns])
        pools = len(model.on_demand_usd)
        serves = [c.pool if c.plan is None else pools + c.plan for c in model.columns]
        self._serves = np.array(serves, dtype=np.int64)  # pool, or plan behind the pools
        self._serving = np.equal.outer(self._serves, np.arange(pools + model.n_plans)).astype(np.float64)
        of = np.array([block.scenario for block in blocks])
        self._order = np.argsort(of, kind="stable")
        self.scenarios, self._firsts = np.unique(of[self._order], return_index=True)
        sizes = [len(block.weight) for block in blocks]
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        self.batch_starts = self.starts[np.cumsum([0, *map(len, batches[:-1])])]
        self.shape = (len(model.on_demand_usd), model.n_plans)
        joined = join(blocks, model.n_plans)
        self.parts = [_Part(model, joined, pools, plans, self.starts) for pools, plans in parts]
        self.rows, self._row_period = sum(sizes), np.repeat(self._period, sizes)

    def coverage(self, x: Floats) -> tuple[Floats, Floats]:
        """Reserved instances and plan rate per hour that `x` gives: `(P,)` and `(K,)`, or of every hour `(n, ...)`."""
        given, pools = self._gives * x @ self._serving, self.shape[0]
        given = given[0] if len(given) == 1 else given[self._row_period]
        return given[..., :pools], given[..., pools:]

    def solve(self, reserved: Floats, plans: Floats) -> tuple[Floats, Floats, Floats]:
        """Return per block B its cost `(B,)`, and its slopes by reserved unit `(B, P)` and plan dollar `(B, K)`."""
        count = len(self.starts)
        cost, by_pool, by_plan = (
            np.zeros(count),
            np.zeros((count, self.shape[0])),
            np.zeros((count, self.shape[1])),
        )
        for part in self.parts:
            found = part.solve(reserved[..., part.pools], plans[..., part.plans])
            cost += found[0]
            by_pool[:, part.pools] = found[1]
            by_plan[:, part.plans] = found[2]
        return cost, by_pool, by_plan

    @property
    def owns_plans(self) -> bool:
        """Whether plan dollars are owned in some hour."""
        return any(part.owned is not None for part in self.parts)

    def cost_of_nothing(self) -> Floats:
        """Cost per block without any commitment, `(B,)`."""
        cost = np.zeros(len(self.starts))
        for part in self.parts:
            cost += part.unplanned(*part.rest(np.zeros(len(part.pools))))[0]
        return cost

    def by_column(self, by_pool: Floats, by_plan: Floats) -> Floats:
        """Slopes by unit of each column, shape `(B, F)`: 0 where it is not active."""
        serving: Floats = np.concatenate([by_pool, by_plan], axis=1)[:, self._serves]
        return np.asarray(serving * self._gives[self._period], dtype=np.float64)

    def by_scenario(self, each: Floats) -> Floats:
        """Sums of blocks by scenario, in the order of `scenarios`."""
        return np.asarray(np.add.reduceat(each[self._order], self._firsts, axis=0), dtype=np.float64)

    def multipliers(self, reserved: Floats, plans: Floats) -> Floats:
        """Return the plans' prices, shape `(n, K)`."""
        out = np.zeros((self.rows, self.shape[1]))
        for part in self.parts:
            capacity = part.capacity(plans[..., part.plans])
            out[:, part.plans] = part.best_prices(*part.rest(reserved[..., part.pools]), capacity)
        return out


class _Part:
    """The pools of a chunk that share plans. Shapes: n hours, P pools and K plans of the part, B blocks."""

    def __init__(self, model: CommitModel, hours: Hours, pools: Ints, plans: Ints, starts: Ints) -> None:
        self.pools, self.plans, self.starts = pools, plans, starts
        self.weight = hours.weight
        self.demand = np.ascontiguousarray(hours.demand[:, pools], dtype=np.float64)
        self.on_demand = model.on_demand_usd[pools]
        self.rate = model.plan_rate_usd[np.ix_(plans, pools)]
        self.owned = None if hours.owned_plan_usd is None else hours.owned_plan_usd[:, plans]
        self.spot = self.cap = None
        if hours.spot_cap is not None and hours.spot_usd is not None:
            self.spot = np.minimum(hours.spot_usd[:, pools], self.on_demand)
            # spot that costs no less than on-demand is on-demand
            self.cap = np.where(self.spot < self.on_demand, hours.spot_cap[:, pools], 0.0)
        self._finite = np.where(np.isinf(self.rate), 0.0, self.rate)
        self._beyond = [np.where(none, np.inf, 0.0) if none.any() else None for none in np.isinf(self.rate)]

    def _sum(self, each: Floats) -> Floats:
        """Sum rows, weighted by the hours they stand for, by block: shape `(B,)` or `(B, columns)`."""
        weighted = each * (self.weight if each.ndim == 1 else self.weight[:, None])
        return np.asarray(np.add.reduceat(weighted, self.starts, axis=0))

    def rest(self, reserved: Floats) -> tuple[Floats, Floats | None]:
        """Return what reservations leave: for on-demand, and for spot, each `(n, P)`."""
        left = self.demand - reserved
        np.maximum(left, 0.0, out=left)
        if self.cap is None:
            return left, None
        by_spot = np.minimum(self.cap, left)
        left -= by_spot
        return left, by_spot

    def solve(self, reserved: Floats, plans: Floats) -> tuple[Floats, Floats, Floats]:
        """Return cost and slopes of the part by block; `plans` is new plan capacity, shape `(K,)` or `(n, K)`."""
        left, by_spot = self.rest(reserved)
        if not len(self.plans):
            return self.unplanned(left, by_spot)
        capacity = self.capacity(plans)
        price = self.best_prices(left, by_spot, capacity)
        ceiling = self._ceiling(price)
        unit = np.minimum(ceiling, self.on_demand)
        each = np.einsum("np,np->n", left, unit)
        pi = np.where(left > 0, unit, 0.0)
        if by_spot is not None and self.spot is not None:
            spot_unit = np.minimum(ceiling, self.spot)
            each += np.einsum("np,np->n", by_spot, spot_unit)
            pi = np.where((left <= 0) & (by_spot > 0), spot_unit, pi)
        each -= np.einsum("nk,nk->n", price, capacity)
        return self._sum(each), -self._sum(pi), -self._sum(price)

    def unplanned(self, left: Floats, by_spot: Floats | None) -> tuple[Floats, Floats, Floats]:
        """As `solve`, where no plan covers anything."""
        pi = np.where(left > 0, self.on_demand, 0.0)
        each = left @ self.on_demand
        if by_spot is not None and self.spot is not None:
            each += np.einsum("np,np->n", by_spot, np.broadcast_to(self.spot, by_spot.shape))
            pi = np.where((left <= 0) & (by_spot > 0), self.spot, pi)
        return self._sum(each), -self._sum(pi), np.zeros((len(self.starts), 0))

    def best_prices(self, left: Floats, by_spot: Floats | None, capacity: Floats) -> Floats:
        """Return the plans' optimal prices per hour, shape `(n, K)`, as is `capacity`."""
        if not len(self.plans):
            return np.zeros((len(left), 0))
        if len(self.plans) == 1:
            return self._alone.fill(*_by_pool(left, by_spot), capacity[:, 0])[:, None]
        return self._two_plans(left, by_spot, capacity)

    def capacity(self, plans: Floats) -> Floats:
        """Return plan dollars per hour, new and owned, shape `(n, K)`; `plans` as of `solve`."""
        capacity = plans if plans.ndim == 2 else np.broadcast_to(plans, (len(self.weight), len(plans)))
        return capacity if self.owned is None else capacity + self.owned

    def _ceiling(self, price: Floats) -> Floats:
        """Cheapest price at which a plan would take an instance-hour of each pool, shape `(n, P)`."""
        ceiling = self._times(price, 0)
        for plan in range(1, len(self.plans)):
            np.minimum(ceiling, self._times(price, plan), out=ceiling)
        return ceiling

    def _times(self, price: Floats, plan: int) -> Floats:
        """A plan's price times its rates; a pool that it does not cover is beyond any price, even 0."""
        product: Floats = price[:, plan, None] * self._finite[plan]
        beyond = self._beyond[plan]
        if beyond is not None:
            product += beyond
        return product

    def _value(self, left: Floats, by_spot: Floats | None, price: Floats, capacity: Floats) -> Floats:
        """D(price) of each hour, shape `(n,)`."""
        ceiling = self._ceiling(price)
        value = np.einsum("np,np->n", left, np.minimum(ceiling, self.on_demand))
        if by_spot is not None and self.spot is not None:
            value += np.einsum("np,np->n", by_spot, np.minimum(ceiling, self.spot))
        return np.asarray(value - np.einsum("nk,nk->n", price, capacity))

    def _knapsack(self, rate: Floats, pools: Ints) -> Knapsack:
        return knapsack_of(pools, rate[pools], self.on_demand, self.spot)

    def _two_plans(self, left: Floats, by_spot: Floats | None, capacity: Floats) -> Floats:
        best = np.empty(capacity.shape)
        best[:] = self._highest
        if not capacity.any():
            return best
        best_value = self._value(left, by_spot, best, capacity)
        for price in self._candidates(left, by_spot, capacity):
            value = self._value(left, by_spot, price, capacity)
            better = value > best_value
            np.copyto(best, price, where=better[:, None])
            np.copyto(best_value, value, where=better)
        return best

    def _candidates(self, left: Floats, by_spot: Floats | None, capacity: Floats) -> Iterator[Floats]:
        """Yield the prices among which an optimal pair is: on the rays, and separate optima between them.

        All come in the same array: copy what is to be kept.
        """
        units, room = _by_pool(left, by_spot), np.ascontiguousarray(capacity.T)
        full, pair = room <= 0, np.empty(capacity.shape)
        for ratio, knapsack in self._rays:
            pair[:, 0] = knapsack.fill(*units, room[0] + ratio * room[1])
            np.multiply(pair[:, 0], ratio, out=pair[:, 1])
            yield pair
        for separate in self._separate:
            for plan, knapsack in enumerate(separate):
                pair[:, plan] = knapsack.fill(*units, room[plan])
                np.copyto(pair[:, plan], self._highest[plan], where=full[plan])
            yield pair

    @cached_property
    def _highest(self) -> Floats:
        """Price of each plan beyond which it is not missed where it has no capacity, shape `(K,)`."""
        return np.asarray((self.on_demand / self.rate).max(axis=1), dtype=np.float64)

    @cached_property
    def _alone(self) -> Knapsack:
        """All pools under the first plan."""
        return self._knapsack(self.rate[0], np.arange(len(self.pools)))

    @cached_property
    def _rays(self) -> list[tuple[float, Knapsack]]:
        """Each ratio of the prices of two plans at which a pool is indifferent, and all pools at its cheaper plan."""
        every, (first, second) = np.arange(len(self.pools)), self.rate
        return [
            (ratio, self._knapsack(np.minimum(first, ratio * second), every))
            for ratio in self._ratios.tolist()
        ]

    @cached_property
    def _separate(self) -> list[tuple[Knapsack, Knapsack]]:
        """Pools of each of two plans, between two ratios at which a pool is indifferent."""
        relative, (first, second) = self._relative, self.rate
        return [
            (
                self._knapsack(first, np.flatnonzero(relative <= edge)),
                self._knapsack(second, np.flatnonzero(relative > edge)),
            )
            for edge in (0.0, *self._ratios)
        ]

    @cached_property
    def _relative(self) -> Floats:
        """Rate of the first plan over the second's, per pool: 0 where only the first covers it, infinite without it."""
        first, second = self.rate
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(first), first / second, np.inf)

    @cached_property
    def _ratios(self) -> Floats:
        """Rays on which a pool is indifferent between two plans."""
        relative = self._relative
        return np.unique(relative[(relative > 0) & np.isfinite(relative)])


def _by_pool(left: Floats, by_spot: Floats | None) -> tuple[Floats, Floats | None]:
    """Units with the hours of a pool side by side, `(P, n)`."""
    return np.ascontiguousarray(left.T), None if by_spot is None else np.ascontiguousarray(by_spot.T)
