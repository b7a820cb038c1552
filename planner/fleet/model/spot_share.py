"""Interruptible share: sum_{o spot} w_o b_o <= max_spot_share T, T the fleet's work."""

from __future__ import annotations

import numpy as np

from planner.fleet.model.prepared import FleetModel

NAME = "spot_share"


def add(model: FleetModel) -> None:
    """Add the row when the share is limited and some offer is spot."""
    share = model.offers.source.max_spot_share
    spot = model.offers.of("is_spot").astype(np.int64)
    if share is None or share >= 1 or not spot.any():
        return
    model.share_rows(NAME, spot, share, tags=("spot",), groups=np.array([1]))
