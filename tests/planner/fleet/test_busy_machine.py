"""Equal questions have equal answers on a busy machine: stages are bounded by counts, the clock is for the limit."""

from __future__ import annotations

import math
from itertools import count
from typing import Any

import pytest

from benchmarks.instances.fleet import fleet_instance
from planner.fleet.search import FleetResult
from planner.fleet.solve import solve_fleet
from solvers.problem.milp import Milp
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Solution
from solvers.search.search import Search

LIMIT_S = 100.0
HALF = 0.5  # of the time left: what a stage has at least, so that only the time limit itself ends it by the clock


def answer(monkeypatch: pytest.MonkeyPatch, step_s: float) -> FleetResult:
    """The fleet by a clock that goes on by `step_s` whenever it is read, whatever the machine does."""
    ticks, asked = count(), list[float]()

    class Watched(Search[Any]):
        def solve(self, problem: Milp, limit_s: float = math.inf, **changes: object) -> Solution | None:
            asked.append(min(limit_s, self.left_s()) / self.left_s())
            return super().solve(problem, limit_s, **changes)

    def watched(options: SolveOptions) -> Watched:
        return Watched(options, clock=lambda: next(ticks) * step_s)

    monkeypatch.setattr("planner.fleet.solve.Search", watched)
    fleet = fleet_instance(400, 112, hours=True)
    result = solve_fleet(fleet, SolveOptions(gap=1e-4, time_limit_s=LIMIT_S))
    assert next(ticks) * step_s < LIMIT_S
    assert len(asked) > 1
    assert min(asked) >= HALF
    return result


def test_a_busy_machine_gives_the_same_fleet_and_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    idle, busy = (answer(monkeypatch, step_s) for step_s in (0.0, 0.4))
    assert (busy.counts, busy.busy) == (idle.counts, idle.busy)
    assert (busy.objective_usd, busy.bound_usd) == (idle.objective_usd, idle.bound_usd)
    assert [stage for stage, *_ in busy.stages] == [stage for stage, *_ in idle.stages]
