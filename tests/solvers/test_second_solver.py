"""Every kind of model is solved by a second solver too: the same status, and the same cost within the two gaps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.instances.fleet import fleet_instance
from benchmarks.instances.single import single_instance
from planner.fleet.greedy import greedy_mix
from planner.fleet.model.build import build_fleet
from planner.fleet.model.prepared import prepare
from planner.job.model import build_single
from solvers.execution.solve import solve
from solvers.problem.milp import Milp, MilpBuilder
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from tests.draws import share_of
from tests.solvers import cases
from tests.solvers.second_solver import cbc_program, solve_by_cbc

pytestmark = pytest.mark.skipif(
    cbc_program() is None, reason="no CBC program: install the test extra (PuLP has one for common machines)"
)
GAP = 1e-6


def agree(problem: Milp, folder: Path, *, gap: float = GAP) -> Status:
    """Assert that both solvers say the same of `problem`; returns the status."""
    ours = solve(problem, SolveOptions(gap=gap, time_limit_s=60.0))
    theirs = solve_by_cbc(problem, folder, gap=gap)
    assert ours.status.value == theirs.status, problem.name
    if theirs.objective is not None:
        # both may be off by the gap, and CBC prints eight digits
        assert ours.objective == pytest.approx(theirs.objective, rel=2 * gap + 1e-7, abs=1e-6)
    return ours.status


def random_model(seed: int) -> Milp:
    """Whole and continuous columns, rows of every kind; often infeasible."""
    random = np.random.default_rng(seed)
    n, m = int(random.integers(3, 12)), int(random.integers(2, 6))
    builder = MilpBuilder(f"random {seed}")
    x = builder.add_columns(
        "x", range(n), cost=random.integers(1, 50, n), upper=random.integers(1, 6, n), integer=True
    )
    t = builder.add_columns("t", ["t", "u"], cost=[7.5, 0.25], upper=[10.0, 40.0])
    values = random.integers(-4, 12, (m, n + 2)) * (random.random((m, n + 2)) < 0.6)
    kind = random.integers(0, 3, m)
    side = random.integers(5, 40, m).astype(float)
    low = np.where(kind == 0, side, np.where(kind == 1, -np.inf, side - 6))
    high = np.where(kind == 0, np.inf, side)
    rows = builder.add_rows("r", m, lower=low, upper=high)
    at, column = np.nonzero(values)
    builder.add_entries(rows.start + at, column, values[at, column].astype(float))
    assert t.stop == n + 2 and x.start == 0
    return builder.build()


def test_known_models(tmp_path: Path) -> None:
    assert agree(cases.knapsack(), tmp_path) is Status.OPTIMAL
    assert agree(cases.cover(), tmp_path) is Status.OPTIMAL
    assert agree(cases.mixed(), tmp_path) is Status.OPTIMAL
    assert agree(cases.infeasible_only_whole(), tmp_path) is Status.INFEASIBLE


def test_random_models(tmp_path: Path) -> None:
    seen = [agree(random_model(seed), tmp_path) for seed in range(share_of(60))]
    assert {Status.OPTIMAL, Status.INFEASIBLE} <= set(seen), "the generator should make both kinds"


@pytest.mark.parametrize("hours", [False, True])
def test_fleets(tmp_path: Path, hours: bool) -> None:
    for seed in (0, 1) if hours else (2, 3):
        fleet = fleet_instance(120, seed, hours=hours)
        offers = prepare(fleet)
        assert greedy_mix(fleet, offers) is None or len(offers.keep)
        agree(build_fleet(fleet, prepared=offers), tmp_path, gap=1e-4)


def test_single_jobs(tmp_path: Path) -> None:
    for seed in range(4):
        assert agree(build_single(single_instance(800, seed)), tmp_path) is Status.OPTIMAL
