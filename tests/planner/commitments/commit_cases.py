"""Small commitment questions of every shape: plans of one and two rates, spot, risk, limits, owned plans."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from catalogs.tables.table import Floats
from planner.commitments.model import CommitColumn, CommitModel, Hours


@lru_cache(maxsize=8)
def random_model(
    seed: int, *, pools: int | None = None, plans: int | None = None, whole: bool = True, coarse: bool = False,
    later: bool = False,
) -> CommitModel:  # fmt: skip
    """Return a random question small enough for its extensive form; `coarse` prices and rates are ties by design.

    With `later` some columns begin in later periods, as what replaces an owned commitment does.
    """
    draw = np.random.default_rng(seed)
    n_pools = pools or int(draw.integers(1, 4))
    n_plans = int(draw.integers(0, 3)) if plans is None else plans
    scenarios, periods = int(draw.integers(1, 4)), int(draw.integers(1, 3)) + later

    def money(usd: Floats) -> Floats:
        return np.ceil(usd) if coarse else usd.round(3)

    on_demand = money(draw.uniform(0.5, 5, n_pools))
    rate = money(on_demand * draw.uniform(0.5, 0.95, (n_plans, n_pools)))
    rate[draw.random(rate.shape) < 0.2] = np.inf
    hours, total = [], 10.0
    for scenario in range(scenarios):
        for period in range(periods):
            n = int(draw.integers(1, 5))
            spot = draw.random() < 0.6
            hours.append(
                Hours(
                    scenario,
                    period,
                    np.full(n, total / periods / n),
                    draw.integers(0, 6, (n, n_pools)).astype(float),
                    draw.integers(0, 3, (n, n_pools)).astype(float) if spot else None,
                    money(on_demand * draw.uniform(0.2, 1.1, (n if draw.random() < 0.5 else 1, n_pools)))
                    if spot
                    else None,
                    draw.integers(0, 3, (n, n_plans)).astype(float)
                    if n_plans and draw.random() < 0.3
                    else None,
                )
            )
    columns = [
        CommitColumn(
            ("reserved", pool, number),
            round(float(total * on_demand[pool] * draw.uniform(0.3, 0.9)), 3),
            float(draw.integers(2, 7)),
            pool=pool,
            upfront_usd=float(draw.integers(0, 3)),
            periods=() if draw.random() < 0.7 else (0,),
            whole=whole,
        )
        for pool in range(n_pools)
        for number in range(int(draw.integers(0, 3)))
    ]
    columns += [
        CommitColumn(
            ("plan", plan), total * round(draw.uniform(0.7, 1.1), 3), 12.0, plan=plan, upfront_usd=1.0
        )
        for plan in range(n_plans)
    ]
    if later:
        columns = [one for each in columns for one in (each, *_later(draw, each, periods))]
    columns = columns or [CommitColumn("only", float(total * on_demand[0] * 0.5), 3.0, pool=0, whole=whole)]
    weight = draw.random(scenarios) + 0.1
    return CommitModel(
        on_demand_usd=on_demand,
        plan_rate_usd=rate,
        columns=tuple(columns),
        hours=tuple(hours),
        probability=weight / weight.sum(),
        risk_weight=float(draw.choice([0.0, 0.4, 1.0])),
        risk_level=float(draw.choice([0.0, 0.5, 0.9])),
        upfront_limit_usd=float(draw.integers(1, 12)) if draw.random() < 0.3 else np.inf,
    )


def at_once(model: CommitModel, points: Floats) -> tuple[CommitModel, Floats]:
    """One question that asks `model` at each of n points, rows of `points`, and where to ask it, `(n F,)`.

    Each point has scenarios, periods and columns of its own, in their order behind those of the point before.
    """
    periods = 1 + max(block.period for block in model.hours)
    hours, columns = [], []
    for number in range(len(points)):
        scenario, period = number * len(model.probability), number * periods
        hours += [
            Hours(
                block.scenario + scenario, block.period + period, block.weight, block.demand, block.spot_cap,
                block.spot_usd, block.owned_plan_usd,
            )
            for block in model.hours
        ]  # fmt: skip
        columns += [
            CommitColumn(
                (number, one.key), one.cost_usd, one.upper, one.pool, one.plan, one.capacity, one.upfront_usd,
                tuple(at + period for at in one.periods or range(periods)), one.whole,
            )
            for one in model.columns
        ]  # fmt: skip
    probability = np.tile(model.probability / len(points), len(points))
    return replace(model, columns=tuple(columns), hours=tuple(hours), probability=probability), points.ravel()


def _later(draw: np.random.Generator, column: CommitColumn, periods: int) -> list[CommitColumn]:
    """The same from some later periods on, at a cost by their number."""
    firsts = [first for first in range(1, periods) if draw.random() < 0.5]
    return [
        replace(
            column, key=(column.key, first), cost_usd=column.cost_usd * (periods - first) / periods,
            upper=min(column.upper, 3.0) if column.whole else column.upper, upfront_usd=0.0,
            periods=tuple(range(first, periods)),
        )
        for first in firsts
    ]  # fmt: skip
