"""What workers use of limited things: quotas, and whatever else a constraint counts.

    sum_o per_worker_o x_o + sum_o per_busy_o b_o <= limit          (times y_r where all that use it are in region r)

b_o: the work in workers used in full (see `part_time`). The switch tightens the relaxation.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import distinct_values
from planner.fleet.model.prepared import FleetModel

NAME = "uses"


def add(model: FleetModel) -> None:
    """Add a row per limit that can bind."""
    offers, builder = model.offers, model.builder
    region, keep = offers.of("region"), offers.keep
    wanted = []
    for number, use in enumerate(offers.source.uses):
        at = np.flatnonzero(use.in_full[keep] > 0)
        most = float(use.in_full[keep] @ offers.upper)
        places = distinct_values(region[at])
        switch = int(model.switch_of(places)[0]) if len(places) == 1 else -1
        if most > use.limit or (switch >= 0 and len(at) > 1):
            wanted.append((number, at, min(most, use.limit), switch))
    upper = np.array([bound if switch < 0 else 0.0 for *_, bound, switch in wanted])
    rows = builder.add_rows(NAME, len(wanted), upper=upper, tags=tuple(number for number, *_ in wanted))
    for row, (number, at, bound, switch) in enumerate(wanted, start=rows.start):
        use = offers.source.uses[number]
        builder.add_entries(row, model.columns[at], use.per_worker[keep][at])
        if use.per_busy is not None:
            builder.add_entries(row, model.busy_columns[at], use.per_busy[keep][at])
        if switch >= 0:
            builder.add_entries(row, switch, -bound)
