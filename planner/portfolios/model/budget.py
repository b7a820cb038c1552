"""One budget for all jobs: sum_k cost_k x_k <= budget, in dollars."""

from __future__ import annotations

import numpy as np

from planner.portfolios.model.blocks import PortfolioModel, in_usd
from planner.portfolios.shared_limits import MICRO

NAME = "budget"


def add(model: PortfolioModel) -> None:
    """Add the row when there is a budget that can bind."""
    source, kept = model.reduced.source, model.reduced.keep
    if source.budget is None:
        return
    most = np.zeros(source.n_jobs, dtype=np.int64)
    np.maximum.at(most, model.reduced.job, source.cost[kept])
    if int(most.sum()) <= source.budget:
        return
    row = model.builder.add_rows(NAME, 1, upper=source.budget / MICRO)
    model.builder.add_entries(row.start, range(model.x.start, model.x.stop), in_usd(source.cost[kept]))
