"""A MILP twin that has no time for its proof is no solver at fault."""

from __future__ import annotations

import math
from typing import Any

import pytest

from planner.errors import PlannerError, TimeLimitError
from planner.job import model
from planner.job.model import SingleResult
from solvers.problem.solution import Status
from tests.planner.spine_catalogs import A10G, Offer, make_catalog, plan_on, work

CATALOG = make_catalog([Offer(A10G, "us-east-1", "1.0")])


@pytest.mark.parametrize("solver", ["milp", "both"])
@pytest.mark.parametrize(
    ("status", "objective", "error", "said"),
    [
        (Status.NO_SOLUTION, math.nan, TimeLimitError, "did not end within"),
        (Status.FEASIBLE, 1e9, TimeLimitError, "did not end within"),
        (Status.FEASIBLE, 1e-3, PlannerError, "a solver fault"),
        (Status.OPTIMAL, 1e9, PlannerError, "a solver fault"),
        (Status.INFEASIBLE, math.nan, PlannerError, "a solver fault"),
    ],
)
def test_only_what_was_proven_otherwise_is_a_fault(
    solver: str, status: Status, objective: float, error: type[PlannerError], said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def solved(job: Any, _options: Any) -> SingleResult:
        key = None if math.isnan(objective) else job.keys[0]
        return SingleResult(key, objective, -math.inf, math.inf, status, "scipy", 0.0)

    monkeypatch.setattr(model, "solve_single", solved)
    with pytest.raises(PlannerError, match=said) as raised:
        plan_on(CATALOG, work(), solver=solver)
    assert type(raised.value) is error and (raised.value.exit_code == 6) is (error is TimeLimitError)
