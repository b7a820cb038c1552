"""How large a cluster may be: nodes and accelerators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.base import Constraint

if TYPE_CHECKING:
    from planner.candidates.constraints.base import Bools, Case, Floats, Ints
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints
    from planner.market.offers import OfferSet


class MaxNodes(Constraint):
    """Most instances and accelerators."""

    id = "max_nodes"
    words = "more nodes or accelerators than constraints allow"
    short = "above max_nodes"
    paths = ("constraints.max_nodes", "constraints.max_accelerators")
    unit = "nodes"
    is_measured = True
    reasons = ("too_many_accelerators",)

    def cells(self, offer_set: OfferSet, limits: Constraints, rows: Ints, nodes: Ints) -> Bools | None:
        """Clusters that are larger."""
        too_many = nodes > limits.max_nodes
        if limits.max_accelerators is not None:
            devices = nodes * offer_set.types["accelerator_count"][offer_set.type_of_offer[rows]]
            too_many = too_many | (devices > limits.max_accelerators)
        return np.asarray(too_many, dtype=np.bool_)

    def distance(self, case: Case, candidates: Candidates, at: Ints) -> tuple[Ints, Floats] | None:
        """Instances needed."""
        return at, candidates.nodes[at].astype(np.float64)

    def change(self, case: Case, candidates: Candidates, at: int) -> tuple[str, str]:
        """Instances allowed and needed."""
        return str(case.limits.max_nodes), str(int(candidates.nodes[at]))
