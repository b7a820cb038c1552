"""Commitment questions of realistic shape: daily and weekly rhythm, growth, bursts of training, a project cancelled.

Prices are made up but shaped on public lists: reservations at 60-68 % (1 year) and 40-48 % (3 years) of on-demand,
savings plans at 66-74 %, their 3-year rates at 0.72 of the 1-year ones. A 3-year commitment carries a premium for the
two years that the horizon of one year does not show.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.commitments.model import CommitColumn, CommitModel, Hours

YEAR_HOURS = 8760
RATE_3Y = 0.72  # of the 1-year savings-plan rate
STRANDED_3Y = 1.12  # yearly cost of a 3-year term, with what its last two years may be wasted


def make_commit(
    seed: int,
    *,
    pools: int = 8,
    scenarios: int = 50,
    hours: int = YEAR_HOURS,
    risk_weight: float = 0.3,
    whole: bool = True,
    two_rates: bool = False,
) -> CommitModel:
    """Return a question with `hours` sampled hours per scenario of one year.

    Args:
        seed: of everything random.
        pools: kinds of machines.
        scenarios: demand years.
        hours: rows per scenario; fewer than a year's are drawn without repetition and weighted up.
        risk_weight: share of CVaR 90 % in the objective.
        whole: reservations in whole instances.
        two_rates: 3-year savings-plan rates that are no multiple of the 1-year ones.
    """
    draw = np.random.default_rng(seed)
    on_demand = draw.uniform(0.8, 9, pools).round(4)
    reserved = [
        (on_demand * draw.uniform(low, high, pools)).round(4) for low, high in ((0.60, 0.68), (0.40, 0.48))
    ]
    plan_1y = (on_demand * draw.uniform(0.66, 0.74, pools)).round(4)
    plan_3y = (plan_1y * draw.uniform(0.64, 0.80, pools)).round(4)
    blocks = [_year(draw, number, pools, hours, on_demand) for number in range(scenarios)]
    peak = np.max([block.demand.max(axis=0) for block in blocks], axis=0)
    dollars = float(np.max([(block.demand @ plan_1y).max() for block in blocks]))
    columns = []
    for pool in range(pools):
        for term, usd, extra in zip(
            (1, 3), (reserved[0][pool], reserved[1][pool]), (1.0, STRANDED_3Y), strict=True
        ):
            key = (f"reserved_{term}y", pool)
            columns.append(
                CommitColumn(key, usd * YEAR_HOURS * extra, float(peak[pool]), pool=pool, whole=whole)
            )
    columns.append(CommitColumn(("savings_plan_1y",), YEAR_HOURS, dollars, plan=0))
    year = YEAR_HOURS * STRANDED_3Y
    if two_rates:
        columns.append(CommitColumn(("savings_plan_3y",), year, dollars, plan=1))
    else:
        columns.append(CommitColumn(("savings_plan_3y",), year, dollars, plan=0, capacity=1 / RATE_3Y))
    return CommitModel(
        on_demand_usd=on_demand,
        plan_rate_usd=np.stack([plan_1y, plan_3y] if two_rates else [plan_1y]),
        columns=tuple(columns),
        hours=tuple(blocks),
        probability=np.full(scenarios, 1 / scenarios),
        risk_weight=risk_weight,
        pools=tuple(f"pool{number}" for number in range(pools)),
    )


def _year(draw: np.random.Generator, number: int, pools: int, hours: int, on_demand: Floats) -> Hours:
    """One year of demand, of which `hours` rows are kept."""
    hour = np.arange(YEAR_HOURS)
    rhythm = 1 + 0.25 * np.sin(2 * np.pi * (hour % 24 - 8) / 24)
    rhythm = rhythm * np.where(hour // 24 % 7 >= 5, 0.75, 1.0)
    growth = np.exp(draw.normal(0.25, 0.45) * hour / YEAR_HOURS)
    demand = draw.gamma(3, 8, pools) * (rhythm * growth)[:, None]
    for pool in range(pools):
        for _ in range(draw.poisson(10)):
            begin = draw.integers(YEAR_HOURS)
            demand[begin : begin + int(draw.exponential(120)), pool] += draw.gamma(2, 10)
    if draw.random() < 0.25:
        demand[draw.integers(YEAR_HOURS // 4, YEAR_HOURS) :] *= draw.uniform(0.2, 0.6)
    demand = np.rint(demand)
    if hours < YEAR_HOURS:
        demand = demand[np.sort(draw.choice(YEAR_HOURS, hours, replace=False))]
    weight = np.full(len(demand), YEAR_HOURS / len(demand))
    share = np.clip(draw.beta(2, 2, pools) + 0.25 * draw.standard_normal(demand.shape), 0, 1)
    share *= draw.random(demand.shape) < 0.93
    usd = on_demand * np.clip(0.35 + 0.08 * draw.standard_normal(demand.shape), 0.15, 0.8)
    return Hours(number, 0, weight, demand, np.floor(0.5 * demand * share), usd.round(4))
