"""Workers that stop early: paid for their fixed hours and for the part of the time that they work.

    b_o <= x_o          b_o: work of offer o in workers used in full, continuous, cost v_o = cost_o - fixed_o

x_o, whole, then costs fixed_o (image, warm-up, staging); limits on machines (quota, capacity, memory) hold for x_o,
limits on work (requirement, shares) for b_o. Where workers are used in full b_o is x_o and there is no row.
Only a minimum of memory asks for idle workers; they need their region open:

    sum_{o in r} x_o <= (sum_{o in r} u_o) y_r
"""

from __future__ import annotations

import numpy as np

from planner.fleet.model.prepared import FleetModel

NAME = "part_time"


def add(model: FleetModel) -> None:
    """Add a row per offer, and per switched region where idle workers may be of use."""
    fleet, offers, builder = model.offers.source, model.offers, model.builder
    if not fleet.part_time:
        return
    rows = builder.add_rows(NAME, len(offers.keep), upper=0.0, tags=tuple(offers.keys))
    numbers = np.arange(rows.start, rows.stop)
    builder.add_entries(numbers, model.busy_columns, 1.0)
    builder.add_entries(numbers, model.columns, -1.0)
    if model.y is None or not fleet.min_total_memory_gib:
        return
    region = offers.of("region")
    most = np.bincount(region, weights=offers.upper, minlength=fleet.n_regions)[model.opened]
    idle = builder.add_rows("region_idle", len(model.opened), upper=0.0, tags=tuple(model.opened.tolist()))
    row_of = np.full(fleet.n_regions, -1)
    row_of[model.opened] = np.arange(idle.start, idle.stop)
    inside = row_of[region] >= 0
    builder.add_entries(row_of[region][inside], model.columns[inside], 1.0)
    builder.add_entries(np.arange(idle.start, idle.stop), np.arange(model.y.start, model.y.stop), -most)
