"""Enough work: the fleet delivers what is required.

    sum_o w_o x_o >= 1                       (no share is limited)
    sum_o w_o x_o = T,   T >= 1              (a share is limited: T is the fleet's throughput)

w_o is a worker's throughput over the requirement, so that the row is free of the workload's unit.
"""

from __future__ import annotations

import math

from planner.formulation.fleet_model import FleetModel, Total

NAME = "throughput"


def add(model: FleetModel) -> None:
    """Add the row, and the column T when a share is measured against it."""
    fleet, builder = model.offers.source, model.builder
    if not fleet.limits_shares:
        row = builder.add_rows(NAME, 1, lower=1.0)
    else:
        top = max(model.offers.most_work, 1.0)
        model.total = builder.add_columns(
            "total", [Total()], lower=1.0, upper=top if math.isfinite(top) else math.inf
        )
        row = builder.add_rows(NAME, 1, lower=0.0, upper=0.0)
        builder.add_entries(row.start, model.total.start, -1.0)
    builder.add_entries(row.start, model.columns, model.offers.work)
