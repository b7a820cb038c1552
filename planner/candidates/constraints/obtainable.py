"""How large a cluster can be had by asking; the firm ways to get more are bought beforehand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.base import Constraint
from planner.candidates.model import IN_TURN, MIXED, Mixes
from planner.market.obtainable import most_obtainable
from planner.plan.relaxation import Change

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.constraints.base import Case
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints


class Obtainable(Constraint):
    """More accelerators of spot or on-demand than asking brings."""

    id = "obtainable"
    words = "more accelerators at once than assumed available (constraints.obtainable); blocks, reservations are firm"
    short = "more than is assumed available"
    paths = ("constraints.obtainable",)
    unit = "accelerators"
    is_measured = True

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Clusters with a purchase that is larger; offers of a fleet hold no more workers."""
        most, per_node = _of_offers(case)
        over = per_node[candidates.offer] * candidates.nodes > most[candidates.offer]
        for kind, table in ((MIXED, candidates.mixes), (IN_TURN, candidates.turns)):
            mine = np.flatnonzero(candidates.kind == kind)
            if table is not None and len(mine):
                offer, whole = table.offer[candidates.detail[mine]], candidates.nodes[mine][:, None]
                nodes = table.nodes[candidates.detail[mine]] if isinstance(table, Mixes) else whole
                over[mine] = ((per_node[offer] * nodes > most[offer]) & (offer >= 0)).any(axis=1)
        return np.asarray(over, dtype=np.bool_)

    def distance(self, case: Case, candidates: Candidates, at: Ints) -> tuple[Ints, Floats] | None:
        """Accelerators needed at once."""
        _, per_node = _of_offers(case)
        return at, per_node[candidates.offer[at]] * candidates.nodes[at]

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Accelerators that asking brings, and needed."""
        most, per_node = _of_offers(case)
        offer = int(candidates.offer[at])
        kind = case.offer_set.types["accelerator"][case.offer_set.type_of_offer[offer]]
        bought = case.offer_set.offers["purchase_option"][offer]
        limit, needed = float(most[offer]), float(per_node[offer] * candidates.nodes[at])
        return Change(self.id, f"{limit:g} x {kind} {bought}", f"{needed:g}", limit, needed)

    def loosened(
        self, limits: Constraints, case: Case, candidates: Candidates, at: int
    ) -> Constraints | None:
        """As many accelerators of the candidate's kind and way to buy, where it is."""
        from planner.inputs.schema import ObtainableLimit  # costs time, and few ask

        _, per_node = _of_offers(case)
        offers, offer = case.offer_set.offers, int(candidates.offer[at])
        own = ObtainableLimit(
            accelerator=case.offer_set.types["accelerator"][case.offer_set.type_of_offer[offer]],
            purchase_option=offers["purchase_option"][offer],
            accelerators=math.ceil(per_node[offer] * candidates.nodes[at]),
            provider=offers["provider"][offer],
            region=offers["region"][offer] or "*",
        )
        return limits.model_copy(update={"obtainable": (*limits.obtainable, own)})


def _of_offers(case: Case) -> tuple[Floats, Floats]:
    """Most accelerators that can be had, and accelerators per instance, of each offer."""
    offer_set = case.offer_set
    most = most_obtainable(offer_set, case.limits.obtainable)
    return most, np.asarray(offer_set.types["accelerator_count"][offer_set.type_of_offer], dtype=np.float64)
