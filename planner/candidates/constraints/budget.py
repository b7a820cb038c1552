"""The budget, held against cash obligations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.base import Constraint, round_up
from planner.plan.relaxation import Change
from planner.render.numbers import usd
from planner.render.precision import dollars_stated

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.candidates.constraints.base import Case
    from planner.candidates.model import Candidates


class Budget(Constraint):
    """Most US dollars to pay; rows of fleets and portfolios are their models' own, which open regions too."""

    id = "budget"
    words = "cash obligations above constraints.budget_usd"
    short = "above the workload's budget"
    paths = ("constraints.budget_usd",)
    unit = "USD"
    is_measured = True

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Candidates that owe more."""
        budget = case.limits.budget_usd
        return None if budget is None else np.asarray(candidates.cash_usd > float(budget), dtype=np.bool_)

    def distance(self, case: Case, candidates: Candidates, at: Ints) -> tuple[Ints, Floats] | None:
        """Dollars needed."""
        return at, candidates.cash_usd[at]

    def change(self, case: Case, candidates: Candidates, at: int) -> Change:
        """Dollars given and needed."""
        budget = case.limits.budget_usd
        assert budget is not None
        enough = round_up(float(candidates.cash_usd[at]), 0.01)
        return Change(self.id, dollars_stated(budget), usd(enough), float(budget), enough)
