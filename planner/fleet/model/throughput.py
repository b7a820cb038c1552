"""Enough work: the fleet delivers what is required.

    sum_o w_o b_o >= T,   T >= 1

b_o is the work of offer o in workers used in full (x_o itself unless workers may stop early, see `part_time`);
w_o is what one of them delivers over the requirement, so the row is free of the workload's unit. Shares refer to
T: since T may rise to what the fleet delivers, a share of T is a share of the fleet's own work. (An
inequality, because rounding the workers would break an equality by a hair.)
"""

from __future__ import annotations

from planner.fleet.model.prepared import FleetModel, Total

NAME = "throughput"


def add(model: FleetModel) -> None:
    """Add the column T and its row."""
    top = max(model.offers.most_work, 1.0)
    model.total = model.builder.add_columns("total", [Total()], lower=1.0, upper=top)
    row = model.builder.add_rows(NAME, 1, lower=0.0)
    model.builder.add_entries(row.start, model.total.start, -1.0)
    model.builder.add_entries(row.start, model.busy_columns, model.offers.work)
