"""Capacity: offers that are the same machines share one capacity, and all workers together may be limited.

    sum_{o in g} x_o <= capacity_limit_g          every capacity group g (times y_r where g lies in a
    switched region) sum_o x_o <= max_total_units

An offer's own capacity is the bound of its column.
"""

from __future__ import annotations

import numpy as np

from planner.fleet.model.prepared import FleetModel

NAME = "capacity"


def add(model: FleetModel) -> None:
    """Add a row per capacity group that can bind, and one for the total."""
    fleet, upper = model.offers.source, model.offers.upper
    limit = np.floor(np.where(np.isnan(fleet.capacity_limit), np.inf, fleet.capacity_limit))
    model.group_rows(NAME, model.offers.of("capacity_group"), np.ones(len(upper)), limit)
    if fleet.max_total_units is not None and float(upper.sum()) > fleet.max_total_units:
        row = model.builder.add_rows("total_units", 1, upper=float(fleet.max_total_units))
        model.builder.add_entries(row.start, model.columns, 1.0)
