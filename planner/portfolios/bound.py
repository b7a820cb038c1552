"""An exact lower bound on every plan of a portfolio, in whole micro-dollars.

The rows "one candidate per job" are relaxed with prices mu_j (of any sign), limits with prices lambda_g >= 0 per unit
and the budget with a price beta >= 0 per micro-dollar; each candidate keeps one limit, its *home*, whose knapsack is
solved exactly:

    L = sum_j mu_j - sum_g lambda_g limit_g - ceil(beta budget) - sum_j max(0, gain of its best homeless candidate)
        - sum_g knapsack_g,       gain_k = mu_j - objective_k - sum_g lambda_g units_kg - floor(beta cost_k)

knapsack_g is the largest gain of candidates at home in g, at most one per job, within limit_g. L bounds every plan
from below *whatever the prices are* (Lagrangian relaxation: Geoffrion 1974), so where they come from needs no trust:
they are a linear program's duals, rounded. Keeping the knapsacks whole is what lifts L above the linear program
(measured: docs/optimisation/portfolio.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.portfolios.reduce import Reduced
from planner.portfolios.shared_limits import MICRO
from solvers.problem.milp import Milp

BETA_SCALE = 1 << 20  # beta is a whole number over this


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of the relaxed rows.

    Attributes:
        mu: micro-dollars per job, shape `(n_jobs,)`.
        lam: micro-dollars per unit of each live limit, at least 0, shape `(n_live,)`.
        beta: micro-dollars per micro-dollar of the budget, over `BETA_SCALE`.
    """

    mu: Ints
    lam: Ints
    beta: int = 0


@dataclass(frozen=True, eq=False)
class Homes:
    """The limit each kept candidate keeps (-1: none) and its draw there, both of shape `(n_kept,)`."""

    row: Ints
    units: Ints


def choose_homes(reduced: Reduced, lam: Ints) -> tuple[Homes, Ints]:
    """Give every candidate the limit where its draw is worth most as its home.

    Returns:
        The homes, and the prices that remain: 0 for limits that are the home of all who draw on them.
    """
    count = len(reduced.keep)
    row, units = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.int64)
    worth = lam[reduced.entry_row] * reduced.entry_units
    order = np.lexsort((worth, reduced.entry_at))
    at = reduced.entry_at[order]
    row[at], units[at] = reduced.entry_row[order], reduced.entry_units[order]  # the last one written wins
    shared = np.zeros(len(reduced.live), dtype=np.bool_)
    shared[reduced.entry_row[row[reduced.entry_at] != reduced.entry_row]] = True
    return Homes(row, units), np.where(shared, lam, 0)


def exact_bound(reduced: Reduced, prices: Prices, homes: Homes) -> int:
    """Return L in micro-dollars; no plan has a lower objective."""
    source = reduced.source
    gain = prices.mu[reduced.job] - source.objective[reduced.keep]
    np.subtract.at(gain, reduced.entry_at, prices.lam[reduced.entry_row] * reduced.entry_units)
    total: int = int(prices.mu.sum()) - sum(
        price * limit
        for price, limit in zip(prices.lam.tolist(), source.limit[reduced.live].tolist(), strict=True)
    )
    if prices.beta and source.budget is not None:
        gain -= beta_share(prices.beta, source.cost[reduced.keep])
        total -= -(-prices.beta * source.budget // BETA_SCALE)
    useful = gain > 0
    free = useful & (homes.row < 0)
    best = np.zeros(source.n_jobs, dtype=np.int64)
    np.maximum.at(best, reduced.job[free], gain[free])
    total -= int(best.sum())
    at = np.flatnonzero(useful & (homes.row >= 0))
    at = at[np.lexsort((homes.units[at], reduced.job[at], homes.row[at]))]
    starts = np.flatnonzero(np.r_[True, np.diff(homes.row[at]) != 0]) if len(at) else np.zeros(0, np.int64)
    for members in np.split(at, starts[1:]) if len(at) else []:
        limit = int(source.limit[reduced.live[homes.row[members[0]]]])
        total -= knapsack(reduced.job[members], gain[members], homes.units[members], limit)
    return total


def beta_share(beta: int, cost: Ints) -> Ints:
    """floor(beta cost / BETA_SCALE) without leaving 64 bits, shape of `cost`."""
    whole, rest = np.divmod(cost, BETA_SCALE)
    return np.asarray(whole * beta + rest * beta // BETA_SCALE, dtype=np.int64)


def knapsack(job: Ints, gain: Ints, units: Ints, limit: int) -> int:
    """Largest gain of at most one member per job within `limit`, by dynamic programming over units.

    Args:
        job: job of each member, grouped, units ascending inside a job, shape `(n,)`.
        gain: above 0, shape `(n,)`.
        units: above 0 and at most `limit`, shape `(n,)`.
        limit: units there are.
    """
    starts = np.flatnonzero(np.r_[True, np.diff(job) != 0])
    ends = np.r_[starts[1:], len(job)]
    if int(np.maximum.reduceat(units, starts).sum()) <= limit:
        best: list[int] = np.maximum.reduceat(gain, starts).tolist()
        return sum(best)
    step = int(np.gcd.reduce(units))
    size = limit // step
    reach = 0  # nothing above this many steps can be filled yet
    weights, gains = (units // step).tolist(), gain.tolist()
    table = np.zeros(size + 1, dtype=np.int64)
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        former = table.copy()
        reach = min(size, reach + weights[end - 1])
        most = 0
        for member in range(start, end):
            if gains[member] <= most:
                continue  # a lighter one of the same job gains as much
            most = gains[member]
            weight = weights[member]
            np.maximum(table[weight:], former[: size + 1 - weight] + most, out=table[weight:])
    return int(table[-1])


def prices_from_duals(reduced: Reduced, model: Milp, duals: Floats) -> tuple[Prices, Homes]:
    """The duals of the relaxation in whole micro-dollars, and the homes that they choose."""
    jobs = reduced.source.n_jobs
    mu = np.rint(duals[:jobs] * MICRO).astype(np.int64)
    lam = np.zeros(len(reduced.live), dtype=np.int64)
    for name in ("quota", "capacity"):
        block = model.row_block(name)
        if block is not None and len(block):
            rows = np.searchsorted(reduced.live, np.asarray(block.tags, dtype=np.int64))
            lam[rows] = np.rint(np.maximum(-duals[block.indices], 0.0) * MICRO).astype(np.int64)
    block = model.row_block("budget")
    beta = 0 if block is None else round(max(-float(duals[block.start]), 0.0) * BETA_SCALE)
    homes, remaining = choose_homes(reduced, lam)
    return Prices(mu, remaining, beta), homes


def reduced_costs(model: Milp, duals: Floats) -> Floats:
    """C - A' y of every column; `duals` may go on with rows that the model does not have."""
    priced = np.bincount(
        model.column_of_entry(), weights=model.data * duals[model.indices], minlength=model.n_columns
    )
    return np.asarray(model.c - priced, dtype=np.float64)
