"""The single job as a MILP (`--solver milp`, the test oracle), against plain enumeration of the same candidates."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.instances.single import single_instance
from benchmarks.solver_families.base import Clock, Figure, in_child, known
from planner.job.model import solve_single
from solvers.problem.options import SolveOptions

NAME = "single"
GOALS = ("every optimum equals the enumeration's",)
SIZES = (200, 2_000, 20_000)
LIMIT_S = 60.0


def measure(n_candidates: int, seed: int) -> Figure:
    """Solve one question and compare it with enumeration."""
    job = single_instance(n_candidates, seed)
    with Clock() as clock:
        result = solve_single(job, SolveOptions(time_limit_s=LIMIT_S))
    fits = job.quota_units <= np.append(job.quota_limit, math.inf)[job.quota_group]
    equal = result.objective_usd == float(job.cost_usd[fits].min())
    return Figure(
        NAME,
        f"{n_candidates:,} candidates",
        seed,
        result.status.value,
        clock.cpu_s,
        clock.wall_s,
        known(result.objective_usd),
        known(result.bound_usd),
        known(result.gap),
        0.0 if equal else None,
        limit_s=LIMIT_S,
        note="equals enumeration" if equal else "MISSED: differs from enumeration",
    )


def run(seed: int, *, quick: bool = False) -> list[Figure]:
    """Measure every size."""
    return [in_child(measure, size, seed) for size in (SIZES[:1] if quick else SIZES)]
