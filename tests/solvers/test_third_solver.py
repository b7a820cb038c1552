"""CP-SAT, which computes in whole numbers, gives the same optimum to the last digit.

It needs ortools, which cannot live in this environment (see `cpsat_program`): the variable PLANNER_CPSAT_PYTHON names
an interpreter that has it; `.ci/run` makes one.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.instances.single import single_instance
from planner.fleet.model.build import build_fleet
from planner.fleet.model.prepared import Total
from planner.job.model import build_single
from solvers.execution.solve import solve
from solvers.problem.milp import Milp
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from tests.planner.fleet.fleet_cases import random_fleet
from tests.solvers import cases

OWN = sys.executable if importlib.util.find_spec("ortools") else None
PYTHON = os.environ.get("PLANNER_CPSAT_PYTHON") or OWN
pytestmark = pytest.mark.skipif(
    PYTHON is None,
    reason="PLANNER_CPSAT_PYTHON names no interpreter with ortools (pip install ortools in a venv)",
)
LARGEST = (
    10**6
)  # denominators up to this are taken to be what was meant (prices in cents, shares in thousandths)


def whole(values: list[float]) -> tuple[list[int], int]:
    """Whole numbers and the factor that made them so; the floats must be short fractions."""
    meant = [Fraction(value).limit_denominator(LARGEST) for value in values]
    assert all(float(exact) == value for exact, value in zip(meant, values, strict=True))
    factor = math.lcm(*(exact.denominator for exact in meant))
    assert factor <= 10**12, "not a short fraction"
    return [int(exact * factor) for exact in meant], factor


def exactly(problem: Milp) -> tuple[dict[str, Any], int]:
    """The model in whole numbers, and the factor of its objective."""
    assert problem.integrality.all()
    cost, factor = whole(problem.c.tolist())
    rows: list[Any] = []
    columns, sides = problem.column_of_entry(), np.stack([problem.row_lo, problem.row_hi])
    for row in range(problem.n_rows):
        at = np.flatnonzero(problem.indices == row)
        finite = [float(side) for side in sides[:, row] if np.isfinite(side)]
        numbers, _ = whole([*problem.data[at].tolist(), *finite])
        ends = iter(numbers[len(at) :])
        low, high = (next(ends) if np.isfinite(side) else None for side in sides[:, row])
        rows.append([low, high, list(zip(columns[at].tolist(), numbers[: len(at)], strict=True))])
    bounds = list(zip(problem.lb.astype(int).tolist(), problem.ub.astype(int).tolist(), strict=True))
    return {"cost": cost, "rows": rows, "bounds": bounds}, factor


def cpsat(models: list[dict[str, Any]]) -> list[tuple[str, int | None]]:
    program = Path(__file__).with_name("cpsat_program.py")
    done = subprocess.run(
        [str(PYTHON), str(program)], input=json.dumps(models), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [(word, objective) for word, objective in json.loads(done.stdout)]


def agree(problems: list[Milp]) -> set[Status]:
    scaled = [exactly(problem) for problem in problems]
    seen = set()
    for problem, (_, factor), (word, objective) in zip(
        problems, scaled, cpsat([model for model, _ in scaled]), strict=True
    ):
        ours = solve(problem, SolveOptions(gap=0.0))
        assert ours.status.value == word, problem.name
        if objective is not None:
            assert ours.objective == pytest.approx(objective / factor, rel=1e-12)
        seen.add(ours.status)
    return seen


def test_known_models() -> None:
    problems = [
        cases.knapsack(),
        cases.infeasible_only_whole(),
        *(cases.cover(seed=seed) for seed in range(5)),
    ]
    assert agree(problems) == {Status.OPTIMAL, Status.INFEASIBLE}


def test_single_jobs() -> None:
    assert agree([build_single(single_instance(300, seed)) for seed in range(10)]) == {Status.OPTIMAL}


def test_fleets() -> None:
    """Those without limited shares and switched regions: their models hold no number that is not a short fraction."""
    problems = []
    for seed in range(9000, 9120):
        fleet = random_fleet(seed)
        if fleet.limits_shares:
            continue
        fleet = replace(fleet, region_cost_usd=np.zeros(3), max_regions=None)
        problem = build_fleet(fleet)
        if problem.n_columns > 1:
            problems.append(_without_total(problem))
    assert len(problems) >= 10
    assert agree(problems) == {Status.OPTIMAL, Status.INFEASIBLE}


def _without_total(problem: Milp) -> Milp:
    """The total at its lower end, 1: the only continuous column of a fleet used in full."""
    at = problem.column_keys.index(Total())
    upper, kinds = problem.ub.copy(), problem.integrality.copy()
    upper[at], kinds[at] = 1.0, True
    return replace(problem, ub=upper, integrality=kinds)
