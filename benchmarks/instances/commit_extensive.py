"""The extensive form of a commitment question: every hour written out, the oracle of the decomposition."""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Ints
from planner.commitments.model import CommitModel, Hours
from solvers.problem.milp import Block, Milp, MilpBuilder


def build_extensive(model: CommitModel) -> Milp:
    """Write every hour of `planner.commitments.model` out as columns and rows."""
    builder = MilpBuilder("commitments, extensive form")
    tail = model.risk_weight / (1 - model.risk_level) * model.probability
    blocks = [
        builder.add_columns(
            f"buy{number}",
            [("x", column.key)],
            cost=column.cost_usd,
            upper=column.upper,
            integer=column.whole,
        )
        for number, column in enumerate(model.columns)
    ]
    buy = np.array([block.start for block in blocks], dtype=np.int64)
    excess = risk_rows = None
    if model.risk_weight:
        scenarios = range(len(model.probability))
        level = builder.add_columns("eta", ["eta"], cost=model.risk_weight)
        excess = builder.add_columns("z", [("z", s) for s in scenarios], cost=tail)
        risk_rows = builder.add_rows("tail", len(model.probability), lower=0.0)
        at = np.arange(risk_rows.start, risk_rows.stop)
        builder.add_entries(at, np.arange(excess.start, excess.stop), 1.0)
        builder.add_entries(at, level.start, 1.0)
    if np.isfinite(model.upfront_limit_usd):
        row = builder.add_rows("upfront", 1, upper=model.upfront_limit_usd)
        builder.add_entries(row.start, buy, [column.upfront_usd for column in model.columns])
    for number, cap in enumerate(model.caps):
        row = builder.add_rows(f"cap{number}", 1, upper=cap.most)
        builder.add_entries(row.start, buy[list(cap.columns)], 1.0)
    for number, hours in enumerate(model.hours):
        _add_hours(builder, model, number, hours, buy, risk_rows)
    return builder.build()


def _add_hours(
    builder: MilpBuilder,
    model: CommitModel,
    number: int,
    hours: Hours,
    buy: Ints,
    risk: Block | None,
) -> None:
    n, pools = hours.demand.shape
    mean = (1 - model.risk_weight) * model.probability[hours.scenario] * hours.weight[:, None]
    demand = builder.add_rows(f"demand{number}", n * pools, lower=hours.demand.ravel())
    rows = np.arange(demand.start, demand.stop).reshape(n, pools)
    prices = {"od": (np.broadcast_to(model.on_demand_usd, (n, pools)), np.full((n, pools), np.inf))}
    if hours.spot_cap is not None and hours.spot_usd is not None:
        prices["spot"] = (np.broadcast_to(hours.spot_usd, (n, pools)), hours.spot_cap)
    for name, (usd, cap) in prices.items():
        keys = [(name, number, row, pool) for row in range(n) for pool in range(pools)]
        block = builder.add_columns(f"{name}{number}", keys, cost=(mean * usd).ravel(), upper=cap.ravel())
        at = np.arange(block.start, block.stop).reshape(n, pools)
        builder.add_entries(rows, at, 1.0)
        if risk is not None:
            builder.add_entries(risk.start + hours.scenario, at, -hours.weight[:, None] * usd)
    for column, at_column in zip(model.columns, buy, strict=True):
        if column.pool is not None and column.is_active(hours.period):
            builder.add_entries(rows[:, column.pool], at_column, 1.0)
    for plan in range(model.n_plans):
        _add_plan(builder, model, number, hours, buy, rows, plan)


def _add_plan(
    builder: MilpBuilder,
    model: CommitModel,
    number: int,
    hours: Hours,
    buy: Ints,
    rows: Ints,
    plan: int,
) -> None:
    n = len(hours.weight)
    covered = np.flatnonzero(np.isfinite(model.plan_rate_usd[plan]))
    keys = [("use", number, plan, row, int(pool)) for row in range(n) for pool in covered]
    block = builder.add_columns(f"use{number}.{plan}", keys)
    use = np.arange(block.start, block.stop).reshape(n, len(covered))
    owned = hours.owned_plan_usd[:, plan] if hours.owned_plan_usd is not None else 0.0
    limit = builder.add_rows(f"plan{number}.{plan}", n, upper=owned)
    at = np.arange(limit.start, limit.stop)
    builder.add_entries(rows[:, covered], use, 1.0)
    builder.add_entries(at[:, None], use, model.plan_rate_usd[plan, covered][None, :])
    for column, at_column in zip(model.columns, buy, strict=True):
        if column.plan == plan and column.is_active(hours.period):
            builder.add_entries(at, at_column, -column.capacity)
