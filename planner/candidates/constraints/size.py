"""How large a cluster may be: nodes and accelerators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.base import Constraint
from planner.plan.relaxation import Change

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.constraints.base import Case
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints
    from planner.market.offers import OfferSet


class MaxNodes(Constraint):
    """Maximum number of instances."""

    id = "max_nodes"
    words = "more nodes than constraints allow"
    short = "above max_nodes"
    paths = ("constraints.max_nodes",)
    unit = "nodes"
    is_measured = True

    def cells(self, offer_set: OfferSet, limits: Constraints, rows: Ints, nodes: Ints) -> Bools | None:
        """Clusters of more instances."""
        return np.asarray(nodes > limits.max_nodes, dtype=np.bool_)

    def distance(self, case: Case, candidates: Candidates, at: Ints) -> tuple[Ints, Floats] | None:
        """Instances needed."""
        return at, candidates.nodes[at].astype(np.float64)

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Instances allowed and needed."""
        limit, nodes = case.limits.max_nodes, int(candidates.nodes[at])
        return Change(self.id, str(limit), str(nodes), limit, nodes)


class MaxAccelerators(Constraint):
    """Maximum number of accelerators."""

    id = "max_accelerators"
    words = "more accelerators than constraints allow"
    short = "above max_accelerators"
    paths = ("constraints.max_accelerators",)
    unit = "accelerators"
    is_measured = True
    reasons = ("too_many_accelerators",)

    def cells(self, offer_set: OfferSet, limits: Constraints, rows: Ints, nodes: Ints) -> Bools | None:
        """Clusters of more accelerators."""
        if limits.max_accelerators is None:
            return None
        return np.asarray(_accelerators(offer_set, rows, nodes) > limits.max_accelerators, dtype=np.bool_)

    def distance(self, case: Case, candidates: Candidates, at: Ints) -> tuple[Ints, Floats] | None:
        """Accelerators needed."""
        return at, _accelerators(case.offer_set, candidates.offer[at], candidates.nodes[at])

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Accelerators allowed and needed."""
        limit = case.limits.max_accelerators
        needed = float(_accelerators(case.offer_set, candidates.offer[[at]], candidates.nodes[[at]])[0])
        return Change(self.id, str(limit), f"{needed:g}", limit, needed)


def _accelerators(offer_set: OfferSet, rows: Ints, nodes: Ints) -> Floats:
    """Accelerators of clusters of some offers."""
    each = offer_set.types["accelerator_count"][offer_set.type_of_offer[rows]]
    return np.asarray(nodes * each, dtype=np.float64)
