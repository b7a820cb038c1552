"""Workers that stop early: paid for their fixed hours and for the part of the time that they work.

    b_o <= x_o          b_o: work of offer o in workers used in full, continuous, cost v_o = cost_o - fixed_o

x_o, whole, then costs fixed_o (image, warm-up, staging); limits on machines (quota, capacity, memory) hold for x_o,
limits on work (requirement, shares) for b_o. Where workers are used in full b_o is x_o and there is no row.
Where limits on shares leave an offer the work of m_o workers, not whole, the last worker does only the rest of it. For
the offers in `links`, with r = m_o - floor(m_o), this follows for whole x (times y_r: in an open region):

    b_o <= r x_o + (1 - r) floor(m_o) y_r

Only a minimum of memory asks for idle workers; they need their region open:

    sum_{o in r} x_o <= (sum_{o in r} u_o) y_r
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Bools, Floats
from planner.fleet.model.prepared import FleetModel, Prepared
from planner.fleet.model.regions import most_busy

NAME = "part_time"
WHOLE = 1e-3  # so near to a whole number of workers there is nothing to round


def add(model: FleetModel) -> None:
    """Add a row per offer, and per switched region where idle workers may be of use."""
    fleet, offers, builder = model.offers.source, model.offers, model.builder
    if not fleet.part_time:
        return
    rows = builder.add_rows(NAME, len(offers.keep), upper=0.0, tags=tuple(offers.keys))
    numbers = np.arange(rows.start, rows.stop)
    builder.add_entries(numbers, model.busy_columns, 1.0)
    builder.add_entries(numbers, model.columns, -1.0)
    _add_rounded(model)
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


def _add_rounded(model: FleetModel) -> None:
    offers, builder = model.offers, model.builder
    rest, whole, able = last_workers(offers)
    links = model.links[able[model.links]]
    switch = model.switch_of(offers.of("region")[links])
    most = ((1 - rest) * whole)[links]  # exact: what `whole` has of the 53 binary digits, `rest` has not
    upper = np.where(switch < 0, most, 0.0)
    rows = builder.add_rows(
        "part_time_whole", len(links), upper=upper, tags=tuple(offers.keys[at] for at in links)
    )
    numbers = np.arange(rows.start, rows.stop)
    builder.add_entries(numbers, model.busy_columns[links], 1.0)
    builder.add_entries(numbers, model.columns[links], -rest[links])
    switched = switch >= 0
    builder.add_entries(numbers[switched], switch[switched], -most[switched])


def last_workers(offers: Prepared) -> tuple[Floats, Floats, Bools]:
    """What limits on shares leave each offer kept, in workers used in full.

    Returns:
        the part of the last worker; the whole workers before it; whether the two are apart; shapes `(n_kept,)`.
    """
    most = most_busy(offers)
    whole = np.floor(most)
    rest = most - whole
    return rest, whole, (rest > WHOLE) & (rest < 1 - WHOLE) & (whole < offers.upper)
