"""The exact answer without a solver where pools do not meet: one reservation option per pool and mere expected cost.

Without savings plans, an upfront limit and a weight on risk, a unit more of a reservation is worth what it saves in the
hours that would use it; savings fall with every unit, so units are bought until the next no longer pays. Where neither
spot nor weights complicate it this is the critical quantile of demand (newsvendor: Arrow, Harris and Marschak 1951).
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.commitments.model import CommitModel


def is_separable(model: CommitModel) -> bool:
    """Whether each pool has at most one column in every period, and nothing joins pools."""
    if model.n_plans or model.risk_weight or np.isfinite(model.upfront_limit_usd) or model.caps:
        return False
    periods = {block.period for block in model.hours}
    for pool in range(len(model.on_demand_usd)):
        mine = [column for column in model.columns if column.pool == pool]
        if any(sum(column.is_active(period) for column in mine) > 1 for period in periods):
            return False
    return True


def solve_separable(model: CommitModel) -> Floats:
    """Return the optimal units of each column, shape `(F,)`; a fractional column ends where a unit stops paying.

    Raises:
        ValueError: the model is not separable.
    """
    if not is_separable(model):
        raise ValueError("the pools of this model do not separate")
    out = np.zeros(len(model.columns))
    for number, column in enumerate(model.columns):
        points, saving = _marginal(model, column.pool or 0, column.periods)
        # saving[i] is what a unit between points[i] and points[i + 1] saves; it never rises
        steps = int(np.count_nonzero(saving > column.cost_usd))
        best = points[steps] if steps < len(points) else points[-1]
        best = min(float(best), column.upper)
        if column.whole:
            best = _whole(best, points, saving, column.cost_usd, np.floor(column.upper))
        out[number] = best
    return out


def _marginal(model: CommitModel, pool: int, periods: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the amounts at which what a unit saves changes, and the saving from each on, in USD over the horizon."""
    edges, drops = [], []
    for block in model.hours:
        if periods and block.period not in periods:
            continue
        weight = model.probability[block.scenario] * block.weight
        demand, price = block.demand[:, pool], float(model.on_demand_usd[pool])
        if block.spot_cap is None or block.spot_usd is None:
            edges.append(demand)
            drops.append(weight * price)
            continue
        spot = np.minimum(np.broadcast_to(block.spot_usd, block.demand.shape)[:, pool], price)
        beyond = np.maximum(demand - block.spot_cap[:, pool], 0.0)
        edges += [beyond, demand]
        drops += [weight * (price - spot), weight * spot]
    if not edges:
        return np.zeros(1), np.zeros(0)
    points, where = np.unique(np.concatenate([np.zeros(1), *edges]), return_inverse=True)
    drop = np.bincount(where, weights=np.concatenate([np.zeros(1), *drops]), minlength=len(points))
    saving = drop.sum() - np.cumsum(drop)
    return points, saving[:-1]


def _whole(best: float, points: Floats, saving: Floats, cost: float, upper: float) -> float:
    """Return the better of the whole numbers around a fractional optimum."""
    low = float(np.floor(best))
    if low == best or low + 1 > upper:
        return low
    return low + 1 if _area(points, saving, low, low + 1) > cost else low


def _area(points: Floats, saving: Floats, low: float, high: float) -> float:
    """What the unit between `low` and `high` saves."""
    left = np.clip(points[:-1], low, high)
    right = np.clip(points[1:], low, high)
    return float(((right - left) * saving).sum())
