"""Fleets whose workers are used in full: an integer mix under quotas, spot cap, region and offer shares."""

from __future__ import annotations

import math

from benchmarks.instances.fleet import fleet_instance
from benchmarks.solver_families.base import Clock, Figure, in_child, known
from planner.fleet.question import FleetInput
from planner.fleet.search import FleetResult
from planner.fleet.solve import proof_of, solve_fleet
from solvers.problem.options import SolveOptions
from solvers.problem.solution import relative_gap
from solvers.search.bounds import exact_bound, in_millionths

NAME = "fleet"
GOALS = (
    "7,000 offers: 1e-4 proven in <= 10 CPU s",
    "7,000 offers: a plan within 5 % in <= 1 CPU s",
    "100,000 offers: plan and bound within 10 s + 10 %",
)
# offers, gap, limit, CPU seconds of the goal (inf: none)
CASES = (
    (200, 1e-4, 60.0, math.inf),
    (2_000, 1e-4, 60.0, math.inf),
    (7_000, 1e-4, 60.0, 10.0),
    (100_000, 1e-3, 10.0, math.inf),
)
FIRST_PLAN_S = 1.0
NEAR = 0.05


def measure(
    n_offers: int, seed: int, gap: float, limit_s: float, goal_cpu_s: float, name: str = NAME
) -> Figure:
    """Solve one question; `name` tells the family (`hours`: workers may stop early)."""
    fleet = fleet_instance(n_offers, seed, hours=name == "hours")
    with Clock() as clock:
        result = solve_fleet(fleet, SolveOptions(gap=gap, time_limit_s=limit_s))
    missed = []
    first_s = first_plan_s(result) * min(1.0, clock.cpu_s / clock.wall_s)
    if clock.cpu_s > goal_cpu_s or (math.isfinite(goal_cpu_s) and result.gap > gap * 1.001):
        missed.append(f"MISSED: {gap:g} in {goal_cpu_s:g} CPU s")
    if first_s > FIRST_PLAN_S and n_offers <= 7_000:
        missed.append(f"MISSED: 5 % in {FIRST_PLAN_S:g} s")
    return Figure(
        name,
        f"{n_offers:,} offers",
        seed,
        result.status.value,
        clock.cpu_s,
        clock.wall_s,
        known(result.objective_usd),
        known(result.bound_usd),
        known(result.gap),
        exact_gap(fleet, result),
        limit_s=limit_s,
        note="; ".join([*missed, f"within 5 % after {first_s:.2f} CPU s", f"gap {gap:g}"]),
    )


def exact_gap(fleet: FleetInput, result: FleetResult) -> float | None:
    """The gap that a certificate of `result` proves in whole micro-dollars; None where there is no plan."""
    if not result.has_plan:
        return None
    problem, duals, _ = proof_of(fleet, result)
    bound = exact_bound(in_millionths(problem), duals * 1e6, cutoff=result.objective_usd * 1e6)
    return known(relative_gap(result.objective_usd, bound.as_float() * 1e-6))


def first_plan_s(result: FleetResult) -> float:
    """Wall seconds until the first plan within 5 % of the bound that was proven in the end."""
    for _, seconds, objective, _ in result.stages:
        if objective * (1 - NEAR) <= result.bound_usd:
            return seconds
    return math.inf


def run(seed: int, *, quick: bool = False) -> list[Figure]:
    """Measure every size."""
    return [in_child(measure, size, seed, *case) for size, *case in (CASES[:1] if quick else CASES)]
