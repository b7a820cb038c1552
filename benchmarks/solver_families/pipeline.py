"""Pipelines with egress: without and with a deadline, trees, and against the formulation over candidate pairs."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.instances.pipeline import pipeline_instance
from benchmarks.instances.pipeline_pairs import build_pairs
from benchmarks.solver_families.base import Clock, Figure, in_child, known
from planner.pipelines.solve import solve_pipeline
from solvers.execution.solve import solve
from solvers.problem.options import SolveOptions

NAME = "pipeline"
GOALS = (
    "100 x 200 with egress to 1e-4 <= 2 s",
    "with a deadline halfway between fastest and cheapest to 1e-3 <= 5 s",
    ">= 20 x faster than candidate pairs at 20 x 60",
)
LIMIT_S = 120.0


def measure(
    n_tasks: int, n_candidates: int, seed: int, gap: float, slack: float | None, shape: str, backend: str
) -> Figure:
    """Solve one pipeline."""
    pipe = pipeline_instance(n_tasks, n_candidates, seed, slack=slack, shape=shape)
    with Clock() as clock:
        result = solve_pipeline(pipe, SolveOptions(gap=gap, time_limit_s=LIMIT_S, backend=backend))
    size = f"{n_tasks} x {n_candidates} {shape}" + ("" if slack is None else f", deadline {slack:g}")
    cost = None if result.course is None else known(result.course.cost_usd)
    return Figure(
        NAME, size, seed, result.status.value, clock.cpu_s, clock.wall_s, cost, known(result.bound_usd),
        known(result.gap), limit_s=LIMIT_S, note=f"{result.method}, {len(pipe.source)} edges",
    )  # fmt: skip


def short(limit_s: float, seed: int) -> Figure:
    """20 tasks over 100 regions with a deadline of 60 h, within a short limit."""
    pipe = replace(pipeline_instance(20, 2_000, seed, n_places=100), deadline_hours=60.0)
    with Clock() as clock:
        result = solve_pipeline(pipe, SolveOptions(gap=1e-4, time_limit_s=limit_s, backend="auto"))
    cost = None if result.course is None else known(result.course.cost_usd)
    return Figure(
        NAME, "20 x 2,000, 100 regions, 60 h", seed, result.status.value, clock.cpu_s, clock.wall_s, cost,
        known(result.bound_usd), known(result.gap), limit_s=limit_s, note=result.method,
    )  # fmt: skip


def pairs(n_tasks: int, n_candidates: int, seed: int, gap: float, backend: str) -> Figure:
    """Solve the same question over pairs of candidates, all of them as the ordinary formulation has them."""
    pipe = pipeline_instance(n_tasks, n_candidates, seed)
    with Clock() as clock:
        problem = build_pairs(pipe)
        solution = solve(
            problem, SolveOptions(gap=gap, time_limit_s=LIMIT_S, backend=backend, core_columns=0)
        )
    ours = solve_pipeline(pipe, SolveOptions(gap=gap, backend=backend))
    assert ours.course is not None
    apart = abs(solution.objective - ours.course.cost_usd) > 2 * gap * ours.course.cost_usd
    return Figure(
        NAME, f"{n_tasks} x {n_candidates} pairs", seed, solution.status.value, clock.cpu_s, clock.wall_s,
        known(solution.objective), known(solution.bound), known(solution.gap), limit_s=LIMIT_S,
        note=f"{'MISSED: another optimum; ' if apart else ''}the rival: {problem.n_columns:,} columns",
    )  # fmt: skip


def run(seed: int, *, quick: bool = False) -> list[Figure]:
    """Measure all sizes."""
    figures = [
        in_child(measure, 20, 60, seed, 1e-4, None, "graph", "auto"),
        in_child(measure, 30, 60, seed, 1e-4, None, "fork", "auto"),
        in_child(measure, 20, 60, seed, 1e-3, 0.5, "chain", "auto"),
        in_child(measure, 20, 60, seed, 1e-3, 0.5, "graph", "auto"),
    ]
    if quick:
        return figures
    return [
        *figures,
        *(in_child(short, limit_s, seed) for limit_s in (1.0, 3.0, 6.0)),
        in_child(pairs, 20, 60, seed, 1e-4, "auto"),
        in_child(measure, 100, 200, seed, 1e-4, None, "graph", "auto"),
        in_child(measure, 100, 200, seed, 1e-3, 0.5, "graph", "auto"),
    ]
