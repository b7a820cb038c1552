"""Budget: the objective itself is limited.

    sum_o (fixed_o x_o + v_o b_o) + sum_r region_cost_r y_r <= budget_usd

b_o, v_o: see `part_time`; fixed_o is the whole cost where workers are used in full.
"""

from __future__ import annotations

import math

import numpy as np

from planner.fleet.model.prepared import FleetModel

NAME = "budget"


def add(model: FleetModel) -> None:
    """Add the row when there is a budget."""
    fleet = model.offers.source
    if fleet.budget_usd is None or math.isnan(fleet.budget_usd):
        return
    row = model.builder.add_rows(NAME, 1, upper=fleet.budget_usd)
    model.builder.add_entries(row.start, model.columns, model.offers.usd("worker_usd"))
    if fleet.part_time:
        model.builder.add_entries(row.start, model.busy_columns, model.offers.usd("busy_usd"))
    if model.y is not None:
        switches = np.arange(model.y.start, model.y.stop)
        opening = model.offers.without_negligible(fleet.region_cost_usd[model.opened])
        model.builder.add_entries(row.start, switches, opening)
