"""Many jobs, shared limits: a multiple-choice problem with knapsacks.

    minimise   sum_k objective_k x_k
    subject to choice, quota, capacity, budget                   (one file each)
               x_k binary, one per candidate k

Egress from each job's data is part of its candidates' cost (a region is known when the candidate is), so data gravity
needs no variable; deadlines and earliest starts decide which candidates there are.
"""

from __future__ import annotations

from planner.portfolios.model import budget, capacity, choice, quota
from planner.portfolios.model.blocks import PortfolioModel, in_usd
from planner.portfolios.reduce import Reduced, reduce_portfolio
from planner.portfolios.shared_limits import PortfolioInput
from solvers.problem.milp import Milp, MilpBuilder

PORTFOLIO_FAMILIES = (choice, quota, capacity, budget)


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
    for family in PORTFOLIO_FAMILIES:
        family.add(model)
    return model
