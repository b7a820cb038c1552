"""Enough work: the fleet delivers what is required.

    sum_o w_o x_o >= T,   T >= 1

w_o is a worker's throughput over the requirement, so the row is free of the workload's unit. Shares refer to
T: since T may rise to what the fleet delivers, a share of T is a share of the fleet's own throughput. (An
inequality, because rounding the workers would break an equality by a hair.)
"""

from __future__ import annotations

from planner.formulation.fleet_model import FleetModel, Total

NAME = "throughput"


def add(model: FleetModel) -> None:
    """Add the column T and its row."""
    top = max(model.offers.most_work, 1.0)
    model.total = model.builder.add_columns("total", [Total()], lower=1.0, upper=top)
    row = model.builder.add_rows(NAME, 1, lower=0.0)
    model.builder.add_entries(row.start, model.total.start, -1.0)
    model.builder.add_entries(row.start, model.columns, model.offers.work)
