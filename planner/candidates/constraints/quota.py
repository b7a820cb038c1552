"""Account quotas: what offers draw on them is `planner.market.quota`'s to say."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.constraints.base import Constraint, Use
from planner.market.quota import draws_on, machine_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.constraints.base import Case
    from planner.candidates.model import Candidates


class Quota(Constraint):
    """Most that the account may use at once, region by region."""

    id = "quota"
    words = "above a declared quota"
    short = "above the workload's quota"
    paths = ("constraints.quota",)
    unit = "vCPU, GPU or instances"
    of_each_part = True

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Clusters of one offer that draw more."""
        if not case.limits.quota:
            return None
        over = np.zeros(len(candidates.offer), dtype=np.bool_)
        for limit, units in draws_on(case.limits.quota, case.offer_set, case.tariffs):
            over |= units[candidates.offer] * candidates.nodes > limit
        return over

    def change(self, case: Case, candidates: Candidates, at: int) -> tuple[str, str]:
        """Each limit that the candidate exceeds, and what it draws."""
        machine = machine_of(case.offer_set, case.tariffs, int(candidates.offer[at]))
        drawn = [(limit, machine.draw_on(limit) * float(candidates.nodes[at])) for limit in case.limits.quota]
        over = [(limit, needed) for limit, needed in drawn if needed > limit.limit]
        if not over or not all(
            isfinite(needed) for _, needed in over
        ):  # another part's, or what is not known
            return super().change(case, candidates, at)
        before = ", ".join(f"{limit.limit:,g} {machine.unit_on(limit)} of {limit.quota}" for limit, _ in over)
        return before, ", ".join(f"{needed:,g}" for _, needed in over)

    def fleet_uses(self, case: Case, rows: Ints, nodes: Ints, hours: Floats, setup: Floats) -> Iterator[Use]:
        """One row per declared limit and region."""
        offers = case.offer_set.offers
        regions = offers.coded("region")
        codes = regions.codes[rows]
        drawn = draws_on(case.limits.quota, case.offer_set, case.tariffs)
        for declared, (limit, units) in zip(case.limits.quota, drawn, strict=True):
            per_worker = units[rows] * nodes
            for code in distinct_values(codes[per_worker > 0]).tolist():
                name = f"{declared.provider}/{regions.values[code]}/{declared.quota}"
                yield Use(self.id, name, np.where(codes == code, per_worker, 0.0), limit)
