"""Account quotas: sum_k units_kg x_k <= limit_g for every (provider, region, family, purchase option, window) g.

A candidate draws on the quota of every window that its run touches.
"""

from __future__ import annotations

from planner.portfolios.model.blocks import PortfolioModel
from planner.portfolios.shared_limits import QUOTA

NAME = "quota"


def add(model: PortfolioModel) -> None:
    """Add a row per quota that can bind."""
    model.limit_rows(NAME, QUOTA)
