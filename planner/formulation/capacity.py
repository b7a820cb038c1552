"""Capacity: offers that are the same machines share one capacity, and all workers together may be limited.

    sum_{o in g} x_o <= capacity_limit_g      for every capacity group g
    sum_o x_o <= max_total_units

An offer's own capacity is the bound of its column.
"""

from __future__ import annotations

import numpy as np

from planner.formulation.fleet_model import FleetModel

NAME = "capacity"


def add(model: FleetModel) -> None:
    """Add a row per capacity group that can bind, and one for the total."""
    fleet = model.offers.source
    group, upper = model.offers.of("capacity_group"), model.offers.upper
    inside = group >= 0
    size = len(fleet.capacity_limit)
    most = np.bincount(group[inside], weights=upper[inside], minlength=size)
    limit = np.floor(np.where(np.isnan(fleet.capacity_limit), np.inf, fleet.capacity_limit))
    binding = np.flatnonzero(most > limit)
    rows = model.builder.add_rows(NAME, len(binding), upper=limit[binding], tags=tuple(binding.tolist()))
    row_of = np.full(size + 1, -1)
    row_of[binding] = np.arange(rows.start, rows.stop)
    row = row_of[group]
    inside = row >= 0
    model.builder.add_entries(row[inside], model.columns[inside], 1.0)
    if fleet.max_total_units is not None and float(upper.sum()) > fleet.max_total_units:
        row_all = model.builder.add_rows("total_units", 1, upper=float(fleet.max_total_units))
        model.builder.add_entries(row_all.start, model.columns, 1.0)
