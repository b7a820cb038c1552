"""Spot at or above the on-demand price is not a discount: candidates are removed where on-demand serves as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.registry import BIT
from planner.candidates.model import SINGLE

if TYPE_CHECKING:
    from planner.candidates.model import Candidates
    from planner.candidates.ways.partners import Partners


def mark_no_discount(candidates: Candidates, partners: Partners) -> None:
    """Set the filter bit of spot candidates that on-demand of their region serves as cheaply.

    Only where the same size on on-demand meets every limit: then removing the spot candidate never raises the optimum.
    Where it does not (excluded, no quota, too long to get) spot competes like any other offer.

    Args:
        candidates: candidates without those that run in turn; the bits of those of one offer change in place.
        partners: what spot offers fall back on.
    """
    if not partners.dear.any():
        return
    kept = np.flatnonzero(candidates.bits == 0)
    kept = kept[candidates.kind[kept] == SINGLE]
    at = kept[partners.dear[candidates.offer[kept]]]
    if not len(at):
        return
    size = candidates.shapes.n_rows
    known = np.sort(candidates.offer[kept] * size + candidates.shape[kept])
    wanted = partners.own[candidates.offer[at]] * size + candidates.shape[at]
    found = known[np.minimum(np.searchsorted(known, wanted), len(known) - 1)] == wanted
    candidates.bits[at[found]] |= BIT["no_discount"]
