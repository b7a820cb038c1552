"""Owned machines and commitments hold so much: sum_k instances_kc x_k <= capacity_c for every pool c and window."""

from __future__ import annotations

from planner.portfolios.model.blocks import PortfolioModel
from planner.portfolios.shared_limits import CAPACITY

NAME = "capacity"


def add(model: PortfolioModel) -> None:
    """Add a row per pool that can bind."""
    model.limit_rows(NAME, CAPACITY)
