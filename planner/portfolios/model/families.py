"""Many jobs, shared limits: a multiple-choice problem with knapsacks.

    minimise   sum_k objective_k x_k
    subject to choice, quota, capacity, budget                   (a function each)
               x_k binary, one per candidate k

Egress from each job's data is part of its candidates' cost (a region is known when the candidate is), so data gravity
needs no variable; deadlines and earliest starts decide which candidates there are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from planner.portfolios.model.blocks import PortfolioModel, in_usd
from planner.portfolios.reduce import Reduced, reduce_portfolio
from planner.portfolios.shared_limits import CAPACITY, MICRO, QUOTA, PortfolioInput
from solvers.problem.milp import Milp, MilpBuilder


def build_portfolio(question: PortfolioInput | Reduced) -> Milp:
    """Build the model of a portfolio, over what the exact reductions leave of it.

    Raises:
        ModelError: numbers that no solver may see.
    """
    reduced = question if isinstance(question, Reduced) else reduce_portfolio(question)
    return start_model(reduced).builder.build()


def start_model(reduced: Reduced, name: str = "portfolio") -> PortfolioModel:
    """The columns and all families, ready for more of them."""
    builder = MilpBuilder(name)
    cost = in_usd(reduced.source.objective[reduced.keep])
    block = builder.add_columns("x", reduced.keep.tolist(), cost=cost, upper=1.0, integer=True)
    model = PortfolioModel(builder, reduced, block)
    for family, add in PORTFOLIO_FAMILIES.items():
        add(model, family)
    return model


def _choice(model: PortfolioModel, family: str) -> None:
    """Every job gets exactly one of its candidates: sum_{k of j} x_k = 1 for every job j.

    Hence one region and one start. Leaving a job out is a candidate too, where it may be left out.
    """
    rows = model.builder.add_rows(family, model.reduced.source.n_jobs, lower=1.0, upper=1.0)
    model.builder.add_entries(rows.start + model.reduced.job, range(model.x.start, model.x.stop), 1.0)


def _quota(model: PortfolioModel, family: str) -> None:
    """Account quotas: sum_k units_kg x_k <= limit_g, a row per quota g that can bind.

    g is a (provider, region, family, purchase option, window); a candidate draws on every window that its run touches.
    """
    model.limit_rows(family, QUOTA)


def _capacity(model: PortfolioModel, family: str) -> None:
    """Owned machines and commitments hold so much: sum_k instances_kc x_k <= capacity_c for every pool c and window."""
    model.limit_rows(family, CAPACITY)


def _budget(model: PortfolioModel, family: str) -> None:
    """One budget for all jobs, where one can bind: sum_k cost_k x_k <= budget, in dollars."""
    source, kept = model.reduced.source, model.reduced.keep
    if source.budget is None:
        return
    most = np.zeros(source.n_jobs, dtype=np.int64)
    np.maximum.at(most, model.reduced.job, source.cost[kept])
    if int(most.sum()) <= source.budget:
        return
    row = model.builder.add_rows(family, 1, upper=source.budget / MICRO)
    model.builder.add_entries(row.start, range(model.x.start, model.x.stop), in_usd(source.cost[kept]))


PORTFOLIO_FAMILIES: dict[str, Callable[[PortfolioModel, str], None]] = {
    "choice": _choice,
    "quota": _quota,
    "capacity": _capacity,
    "budget": _budget,
}
