"""A solver that is wrong about infeasibility is told on; the user never reads "infeasible" for its mistake."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

import planner.fleet.rounds
from planner.fleet.question import FleetInput
from planner.fleet.search import FleetResult
from planner.fleet.solve import solve_fleet
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status, Termination
from tests.cli.test_optimize import DAY, example
from tests.conftest import CliResult


def test_a_wrong_claim_of_infeasibility_is_a_solver_fault(
    run_cli: Callable[..., CliResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lies(fleet: FleetInput, options: SolveOptions, *, exact: bool = True, prove: bool = True) -> FleetResult:
        solved = solve_fleet(fleet, options, exact=exact, prove=prove)
        empty = replace(solved, counts={}, busy={}, objective_usd=math.nan, gap=math.nan)
        return replace(empty, status=Status.INFEASIBLE, termination=Termination.INFEASIBLE)

    monkeypatch.setattr(planner.fleet.rounds, "solve_fleet", lies)
    done = run_cli("optimize", example("embed-images-fleet"), *DAY)
    assert done.code == 1
    assert "solver fault" in done.stderr and "--backend" in done.stderr
    assert "infeasible" not in done.stdout.lower()
