"""Diversification: no single offer and no single provider carries more than its share.

    sum_{o in pool p} w_o b_o <= max_share_per_offer T         p: one offer, or duplicates sharing one
    capacity sum_{o of provider q} w_o b_o <= max_share_per_provider T

b_o: the work in workers used in full. A pool whose bounds keep it below the share of the bare requirement
(T >= 1) needs no row.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import distinct_values
from planner.fleet.model.prepared import SAFETY, FleetModel

NAME = "diversification"


def add(model: FleetModel) -> None:
    """Add the rows that can bind."""
    fleet, offers = model.offers.source, model.offers
    share = fleet.max_share_per_offer
    if share is not None and share < 1:
        pool = fleet.pool()[offers.keep]
        most = np.bincount(pool, weights=offers.work * offers.upper)
        binding = np.flatnonzero(most > share * (1 + SAFETY))
        model.share_rows("offer_share", pool, share, tags=tuple(binding.tolist()), groups=binding)
    share = fleet.max_share_per_provider
    if share is not None and share < 1:
        provider = offers.of("provider")
        present = distinct_values(provider[offers.work > 0])
        model.share_rows("provider_share", provider, share, tags=tuple(present.tolist()), groups=present)
