"""The solver layer itself: building a large model, proving and re-checking its bound, keeping the limit on a trap."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.instances.choice import choice_model, naive_single
from benchmarks.solver_families.base import Clock, Figure, in_child, known
from planner.plan.certificates import write_certificate
from solvers.execution.solve import relax, solve
from solvers.problem.options import SolveOptions
from solvers.problem.presolve import whole_limits
from solvers.search.bounds import build_dual_certificate, in_millionths

NAME = "layer"
GOALS = (
    "a model of 170,000 x 334,000 built in <= 0.25 CPU s",
    "its certificate re-checked by `planner verify` in <= 1 CPU s, no solver imported",
    "100,000 offers as a naive MILP: plan and bound within 10 s + 10 %",
)
BUILD_S, VERIFY_S, LIMIT_S = 0.25, 1.0, 10.0


def measure_build(n_jobs: int, per_job: int, seed: int) -> Figure:
    """Time the builder, the making of random numbers included."""
    with Clock() as clock:
        problem = choice_model(n_jobs, per_job, seed)
    size = f"{problem.n_columns:,} x {len(problem.data):,}"
    note = "" if clock.cpu_s <= BUILD_S else f"MISSED: {BUILD_S} CPU s"
    return Figure(NAME, f"build {size}", seed, "built", clock.cpu_s, clock.wall_s, note=note)


def measure_verify(n_jobs: int, per_job: int, seed: int) -> Figure:
    """Solve roughly, certify, and time `planner verify` as a process."""
    problem = choice_model(n_jobs, per_job, seed)
    relaxation = relax(replace(problem, ub=whole_limits(problem)[0]), 60.0)
    solution = solve(problem, SolveOptions(gap=0.02, time_limit_s=60.0))
    point = problem.vector(solution.x) if solution.has_point else None
    duals = np.zeros(problem.n_rows) if relaxation.duals is None else relaxation.duals * 1e6
    certificate = build_dual_certificate(in_millionths(problem), duals, point, unit="micro_usd")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        write_certificate(path, certificate)
        with Clock() as clock:
            done = subprocess.run([sys.executable, "-m", "planner", "verify", str(path)], check=False)
    held = done.returncode == 0
    bound = certificate["bound"]
    return Figure(
        NAME,
        f"verify {problem.n_columns:,}",
        seed,
        "holds" if held else "error",
        clock.cpu_s,
        clock.wall_s,
        known(solution.objective),
        None if bound is None else bound * 1e-6,
        known(solution.gap),
        certificate["gap_ratio"],
        note="" if held and clock.cpu_s <= VERIFY_S else f"MISSED: holds in {VERIFY_S} CPU s",
    )


def measure_trap(n_offers: int, seed: int, limit_s: float) -> Figure:
    """Solve the naive model; bare HiGHS was seen to take 188 s of 10 and return nothing."""
    problem = naive_single(n_offers, seed)
    with Clock() as clock:
        solution = solve(problem, SolveOptions(gap=1e-4, time_limit_s=limit_s))
    return Figure(
        NAME,
        f"naive {n_offers:,} offers",
        seed,
        solution.status.value,
        clock.cpu_s,
        clock.wall_s,
        known(solution.objective),
        known(solution.bound),
        known(solution.gap),
        limit_s=limit_s,
        note="" if solution.has_point else "MISSED: no plan",
    )


def run(seed: int, *, quick: bool = False) -> list[Figure]:
    """Measure building, verifying and the trap."""
    jobs, per_job = (50, 40) if quick else (1_000, 170)
    return [
        in_child(measure_build, jobs, per_job, seed),
        in_child(measure_verify, jobs, per_job, seed),
        in_child(measure_trap, 500 if quick else 100_000, seed, LIMIT_S),
    ]
