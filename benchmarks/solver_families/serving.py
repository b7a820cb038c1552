"""Serving fleets by request size: continuous shares against slices of one kind each."""

from __future__ import annotations

from benchmarks.instances.serving import build_slices, serving_instance
from benchmarks.solver_families.base import Clock, Figure, in_child, known
from planner.serving.model import solve_serving
from solvers.execution.solve import solve
from solvers.problem.options import SolveOptions

NAME = "serving"
GOALS = ("100 buckets x 12 kinds to 2e-4 within a second", "never dearer than the formulation by slices")
GAP = 1.6e-4
LIMIT_S = 30.0


def measure(n_buckets: int, n_kinds: int, seed: int) -> Figure:
    """Solve with continuous shares."""
    question = serving_instance(n_buckets, n_kinds, seed)
    with Clock() as clock:
        result = solve_serving(question, SolveOptions(gap=GAP, time_limit_s=LIMIT_S, backend="auto"))
    return Figure(
        NAME, f"{n_buckets} x {n_kinds} shares", seed, result.status.value, clock.cpu_s, clock.wall_s,
        known(result.usd_per_hour), known(result.bound_usd_per_hour), known(result.gap), limit_s=LIMIT_S,
    )  # fmt: skip


def sliced(n_buckets: int, n_kinds: int, seed: int, slices: int) -> Figure:
    """Solve the rival's formulation of the same question."""
    question = serving_instance(n_buckets, n_kinds, seed)
    with Clock() as clock:
        solution = solve(
            build_slices(question, slices), SolveOptions(gap=GAP, time_limit_s=LIMIT_S, backend="auto")
        )
    ours = solve_serving(question, SolveOptions(gap=GAP, backend="auto"))
    dearer = ours.usd_per_hour > solution.objective * (1 + GAP)
    return Figure(
        NAME, f"{n_buckets} x {n_kinds}, {slices} slices", seed, solution.status.value, clock.cpu_s, clock.wall_s,
        known(solution.objective), known(solution.bound), known(solution.gap), limit_s=LIMIT_S,
        note="MISSED: cheaper than ours" if dearer else "the rival",
    )  # fmt: skip


def run(seed: int, *, quick: bool = False) -> list[Figure]:
    """Measure both formulations."""
    figures = [in_child(measure, 100, 12, seed), in_child(measure, 400, 24, seed)]
    return (
        figures
        if quick
        else [*figures, in_child(sliced, 100, 12, seed, 1), in_child(sliced, 100, 12, seed, 4)]
    )
