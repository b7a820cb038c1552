"""Regions: opening one costs money, their number and the share of each may be limited.

    sum_{o in r} w_o b_o <= U_r y_r           y_r binary: region r is opened (b_o: see `part_time`)
    sum_{o in r} w_o b_o <= max_share_per_region T
    sum_r y_r <= max_regions
    x_o <= u_o y_r,   b_o <= m_o y_r          for the offers in `links`

U_r is the most work that region r can deliver within the cost of a known fleet (never a blind big-M). The last rows
follow for whole y and have the tighter relaxation; written for every offer they cost more time than they save, so they
are added for the few offers that break them in the relaxation (`planner.fleet.tighten`). m_o is the work that the
limits on shares leave an offer, in workers used in full: where workers are large it is well below u_o, a whole number.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats, distinct_values
from planner.fleet.model.prepared import FleetModel, Prepared, Switch
from solvers.search.tighten import BOUND_MARGIN

NAME = "regions"


def add(model: FleetModel) -> None:
    """Add switches where opening costs or is limited, and share rows where the share is."""
    fleet = model.offers.source
    region = model.offers.of("region")
    present = distinct_values(region)
    if fleet.max_regions is not None and fleet.max_regions < len(present):
        opened = present
    else:
        opened = present[fleet.region_cost_usd[present] > 0]
    if len(opened):
        _add_switches(model, opened)
    share = fleet.max_share_per_region
    if share is not None and share < 1:
        able = present[model.offers.region_work[present] > 0]
        model.share_rows("region_share", region, share, tags=tuple(able.tolist()), groups=able)


def _add_switches(model: FleetModel, opened: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    offers, builder = model.offers, model.builder
    fleet, region = offers.source, offers.of("region")
    keys = [Switch(int(code)) for code in opened]
    model.opened = opened
    opening = offers.without_negligible(fleet.region_cost_usd[opened])
    model.y = builder.add_columns("y", keys, cost=opening, upper=1.0, integer=True)
    rows = builder.add_rows("region_open", len(opened), upper=0.0, tags=tuple(opened.tolist()))
    row_of = np.full(fleet.n_regions, -1)
    row_of[opened] = np.arange(rows.start, rows.stop)
    row = row_of[region]
    inside = row >= 0
    # Workers without throughput (memory only) must open their region too: give them a small amount.
    amount = np.where(offers.work > 0, offers.work, 1e-6)
    most = np.bincount(region, weights=amount * offers.upper, minlength=fleet.n_regions)
    idle = np.bincount(region, weights=(offers.work <= 0) * amount * offers.upper, minlength=fleet.n_regions)
    limit = np.minimum(most, offers.region_work + idle)[opened]
    builder.add_entries(row[inside], model.busy_columns[inside], amount[inside])
    builder.add_entries(np.arange(rows.start, rows.stop), np.arange(model.y.start, model.y.stop), -limit)
    switch = model.switch_of(region[model.links])
    links = model.links[switch >= 0]
    rows = builder.add_rows("region_link", len(links), upper=0.0, tags=tuple(offers.keys[at] for at in links))
    builder.add_entries(np.arange(rows.start, rows.stop), model.columns[links], 1.0)
    builder.add_entries(np.arange(rows.start, rows.stop), switch[switch >= 0], -offers.upper[links])
    if fleet.part_time:
        share = most_busy(offers)
        tight = links[share[links] < offers.upper[links]]
        rows = builder.add_rows(
            "region_busy", len(tight), upper=0.0, tags=tuple(offers.keys[at] for at in tight)
        )
        builder.add_entries(np.arange(rows.start, rows.stop), model.busy_columns[tight], 1.0)
        builder.add_entries(np.arange(rows.start, rows.stop), model.switch_of(region[tight]), -share[tight])
    if fleet.max_regions is not None and fleet.max_regions < len(opened):
        count = builder.add_rows("max_regions", 1, upper=float(fleet.max_regions))
        builder.add_entries(count.start, np.arange(model.y.start, model.y.stop), 1.0)


def most_busy(offers: Prepared) -> Floats:
    """The most work of each offer kept that the limits on shares allow, in workers used in full, shape `(n_kept,)`."""
    fleet = offers.source
    share = np.full(len(offers.keep), offers.most_work)
    limits = (fleet.max_share_per_offer, fleet.max_share_per_region, fleet.max_share_per_provider)
    for limit in limits:
        if limit is not None:
            share = np.minimum(share, limit * offers.most_work)
    if fleet.max_spot_share is not None:
        share = np.where(
            offers.of("is_spot"), np.minimum(share, fleet.max_spot_share * offers.most_work), share
        )
    able = offers.work > 0
    most = offers.upper.copy()
    most[able] = np.minimum(most[able], share[able] / offers.work[able] * (1 + BOUND_MARGIN))
    return most
