"""The cost lines of the storage that a candidate's nodes read the data from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.market.storage.lines import store_lines as lines_of_store

if TYPE_CHECKING:
    from planner.candidates.model import Candidates
    from planner.plan.model import CostLine


def store_lines(candidates: Candidates, at: int) -> list[CostLine]:
    """Cost lines of candidate `at` in one region: priced in the region of its leading offer."""
    step_s = float(candidates.shapes["step_time_s"][candidates.shape[at]])
    stores, place = candidates.context.market.stores, int(candidates.offer[at])
    return lines_of_store(
        stores,
        place,
        int(candidates.nodes[at]),
        step_s,
        float(candidates.hours[at]),
        int(candidates.store[at]),
    )
