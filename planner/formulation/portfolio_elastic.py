"""When not everything fits: the least weighted set of limits that must give way, and by how much.

    minimise   sum_k late_k x_k + w_quota sum_g s_g + w_capacity sum_c s_c + w_budget s_b
    subject to sum_k x_k = 1 for every job;   each limit plus its slack s >= 0

over all candidates, also those that end late or are alone too large for a limit. The weights are the user's ($ per
quota unit, per node, per hour late, per $ over the budget). It sees what only whole numbers make impossible, which an
irreducible infeasible subset of the relaxation does not. Since costs do not matter here (but for the budget), the
exact reductions leave few candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.formulation.portfolio import build_portfolio
from planner.formulation.portfolio_input import MICRO, PortfolioInput
from planner.formulation.portfolio_reduce import Reduced, reduce_portfolio
from solvers.elastic import soften
from solvers.problem import Milp


@dataclass(frozen=True)
class ElasticWeights:
    """What a unit of each kind of limit costs when it gives way, USD."""

    usd_per_quota_unit: float = 10.0
    usd_per_owned_node: float = 1_000.0
    usd_per_usd_over_budget: float = 1.0


def reduce_elastic(question: PortfolioInput) -> Reduced:
    """Candidates that the softened model needs; `question.objective` holds what lateness counts."""
    if question.budget is None:  # then costs are of no matter at all
        question = replace(question, cost=np.zeros_like(question.cost))
    return reduce_portfolio(question, within_limits=False)


def build_elastic(reduced: Reduced, weights: ElasticWeights) -> Milp:
    """Build the softened model."""
    model = build_portfolio(reduced)
    present = {block.name for block in model.row_blocks if len(block)}
    by_block = {
        "quota": weights.usd_per_quota_unit,
        "capacity": weights.usd_per_owned_node,
        "budget": weights.usd_per_usd_over_budget,
    }
    softened = soften(model, {name: weight for name, weight in by_block.items() if name in present})
    cost = softened.c.copy()
    cost[: model.n_columns] = reduced.source.objective[reduced.keep] / MICRO
    return replace(softened, c=cost)
