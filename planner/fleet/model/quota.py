"""Account quotas, for every quota group g with a known limit.

    sum_{o in g} quota_units_o x_o <= quota_limit_g          g spans regions, or its region needs no switch
    sum_{o in g} quota_units_o x_o <= quota_limit_g y_r      g lies in region r with a switch

The second form says the same (no worker in a closed region) and makes the relaxation much tighter at no
extra row.
"""

from __future__ import annotations

import numpy as np

from planner.fleet.model.prepared import FleetModel

NAME = "quota"


def add(model: FleetModel) -> None:
    """Add a row per quota group that can bind."""
    units = np.asarray(model.offers.of("quota_units"), dtype=np.float64)
    limit = model.offers.source.quota_limit
    model.group_rows(NAME, model.offers.of("quota_group"), units, np.where(np.isnan(limit), np.inf, limit))
