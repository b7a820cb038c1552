"""Account quotas: sum_{o in g} quota_units_o x_o <= quota_limit_g per quota group g of known limit."""

from __future__ import annotations

import numpy as np

from planner.formulation.fleet_model import FleetModel

NAME = "quota"


def add(model: FleetModel) -> None:
    """Add a row per quota group that can bind (the bounds of its offers do not imply it)."""
    fleet = model.offers.source
    group = model.offers.of("quota_group")
    units = np.asarray(model.offers.of("quota_units"), dtype=np.float64)
    inside = group >= 0
    size = len(fleet.quota_limit)
    most = np.bincount(group[inside], weights=(units * model.offers.upper)[inside], minlength=size)
    binding = np.flatnonzero(most > np.where(np.isnan(fleet.quota_limit), np.inf, fleet.quota_limit))
    rows = model.builder.add_rows(
        NAME, len(binding), upper=fleet.quota_limit[binding], tags=tuple(binding.tolist())
    )
    row_of = np.full(size + 1, -1)
    row_of[binding] = np.arange(rows.start, rows.stop)
    row = row_of[group]
    inside = row >= 0
    model.builder.add_entries(row[inside], model.columns[inside], units[inside])
