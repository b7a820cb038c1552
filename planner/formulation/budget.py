"""Budget: sum_o cost_o x_o + sum_r region_cost_r y_r <= budget_usd."""

from __future__ import annotations

import math

import numpy as np

from planner.formulation.fleet_model import FleetModel

NAME = "budget"


def add(model: FleetModel) -> None:
    """Add the row when there is a budget."""
    fleet = model.offers.source
    if fleet.budget_usd is None or math.isnan(fleet.budget_usd):
        return
    row = model.builder.add_rows(NAME, 1, upper=fleet.budget_usd)
    model.builder.add_entries(row.start, model.columns, model.offers.of("cost_usd"))
    if model.y is not None:
        switches = np.arange(model.y.start, model.y.stop)
        model.builder.add_entries(row.start, switches, fleet.region_cost_usd[model.opened])
