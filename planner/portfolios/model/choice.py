"""Every job gets exactly one of its candidates, hence one region and one start: sum_{k of j} x_k = 1 for every job j.

Leaving a job out is a candidate too, where it may be left out.
"""

from __future__ import annotations

from planner.portfolios.model.blocks import PortfolioModel

NAME = "choice"


def add(model: PortfolioModel) -> None:
    """Add a row per job."""
    rows = model.builder.add_rows(NAME, model.reduced.source.n_jobs, lower=1.0, upper=1.0)
    model.builder.add_entries(rows.start + model.reduced.job, range(model.x.start, model.x.stop), 1.0)
