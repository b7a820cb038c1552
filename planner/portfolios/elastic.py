"""When not everything fits: the least weighted set of limits that must give way, and by how much.

    minimise   sum_k late_k x_k + w_quota sum_g s_g + w_capacity sum_c s_c + w_budget s_b
    subject to sum_k x_k = 1                                            for every job
               sum_k units_kg x_k - s_g <= limit_g                      for every quota, pool and the budget, s_g >= 0
               sum_k max(0, units_kg - limit_g) x_k - s_g <= 0          where a candidate alone is too large

over all candidates, also those that end late or are alone too large for a limit. The weights are the user's ($ per
quota unit, per node, per hour late, per $ over the budget). It sees what only whole numbers make impossible, which an
irreducible infeasible subset of the relaxation does not. The last row follows from the one above it for whole x (of
several candidates too large for one limit, the limit is taken off once there and every time here); it more than halves
the gap of the relaxation. Since costs do not matter here (but for the budget), the exact reductions leave little.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from catalogs.tables.table import distinct
from planner.portfolios.model.blocks import PortfolioModel
from planner.portfolios.model.families import start_model
from planner.portfolios.reduce import Reduced, reduce_portfolio
from planner.portfolios.shared_limits import PortfolioInput
from solvers.problem.milp import Milp


@dataclass(frozen=True)
class ElasticWeights:
    """What a unit of each kind of limit costs when it gives way, USD."""

    usd_per_quota_unit: float = 10.0
    usd_per_owned_node: float = 1_000.0
    usd_per_usd_over_budget: float = 1.0

    def by_block(self) -> dict[str, float]:
        """Weight per family of rows."""
        return {
            "quota": self.usd_per_quota_unit,
            "capacity": self.usd_per_owned_node,
            "budget": self.usd_per_usd_over_budget,
        }


@dataclass(frozen=True)
class Gives:
    """Key of a slack column: the limit that gives way (None: the budget)."""

    limit: Hashable

    def __str__(self) -> str:
        return "budget" if self.limit is None else str(self.limit)


def reduce_elastic(question: PortfolioInput) -> Reduced:
    """Candidates that the softened model needs; `question.objective` holds what lateness counts."""
    if question.budget is None:  # then costs are of no matter at all
        question = replace(question, cost=np.zeros_like(question.cost))
    return reduce_portfolio(question, within_limits=False)


def build_elastic(reduced: Reduced, weights: ElasticWeights) -> Milp:
    """Build the softened model; the slack columns are the block `slack`."""
    model = start_model(reduced, "portfolio (softened)")
    slack_of = np.full(len(reduced.live), -1, dtype=np.int64)
    for name, weight in weights.by_block().items():
        rows = model.builder.row_block(name)
        if rows is None or not len(rows):
            continue
        keys = [Gives(tag) for tag in rows.tags] if name != "budget" else [Gives(None)]
        slack = model.builder.add_columns(f"slack_{name}", keys, cost=weight)
        columns = np.arange(slack.start, slack.stop)
        model.builder.add_entries(np.arange(rows.start, rows.stop), columns, -1.0)
        if name != "budget":
            slack_of[np.searchsorted(reduced.live, np.asarray(rows.tags, dtype=np.int64))] = columns
    _add_oversize(model, slack_of)
    return model.builder.build()


def _add_oversize(model: PortfolioModel, slack_of: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    reduced = model.reduced
    excess = reduced.entry_units - reduced.source.limit[reduced.live[reduced.entry_row]]
    too_large = np.flatnonzero(excess > 0)
    present, row = distinct(reduced.entry_row[too_large])[::2]
    tags = reduced.live[present].tolist()
    rows = model.builder.add_rows("oversize", len(present), upper=0.0, tags=tags)
    columns = model.x.start + reduced.entry_at[too_large]
    model.builder.add_entries(rows.start + row, columns, excess[too_large].astype(np.float64))
    model.builder.add_entries(np.arange(rows.start, rows.stop), slack_of[present], -1.0)
