"""Account quotas: what offers draw on them is `planner.market.quota`'s to say."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.constraints.base import Constraint, Use
from planner.market.quota import draws_on, machine_of
from planner.plan.relaxation import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.constraints.base import Case
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints, QuotaLimit
    from planner.market.quota import Machine


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

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Each limit that the candidate exceeds, and what it draws."""
        machine, over = _exceeded(case, candidates, at)
        if not over:  # another part's, or what is not known
            return super().change(case, candidates, at)
        before = ", ".join(
            f"{limit.limit:,.12g} {machine.unit_on(limit)} of {limit.quota}" for limit, _ in over
        )
        after = ", ".join(f"{needed:,.12g}" for _, needed in over)
        return Change(self.id, before, after, *((over[0][0].limit, over[0][1]) if len(over) == 1 else ()))

    def loosened(
        self, limits: Constraints, case: Case, candidates: Candidates, at: int
    ) -> Constraints | None:
        """With what the candidate draws on each limit that it exceeds."""
        enough = dict(_exceeded(case, candidates, at)[1])
        if not enough:
            return None
        moved = (
            limit.model_copy(update={"limit": enough[limit]}) if limit in enough else limit
            for limit in limits.quota
        )
        return limits.model_copy(update={"quota": tuple(moved)})

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


def _exceeded(case: Case, candidates: Candidates, at: int) -> tuple[Machine, list[tuple[QuotaLimit, float]]]:
    """A candidate's machine, and the limits that it exceeds with what it draws; none where that is not known."""
    machine = machine_of(case.offer_set, case.tariffs, int(candidates.offer[at]))
    drawn = [(limit, machine.draw_on(limit) * float(candidates.nodes[at])) for limit in case.limits.quota]
    over = [(limit, needed) for limit, needed in drawn if needed > limit.limit]
    return machine, over if all(isfinite(needed) for _, needed in over) else []
