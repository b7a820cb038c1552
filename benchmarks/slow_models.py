"""The slowest models on many seeds: `python -m benchmarks.slow_models KIND FIRST LAST [--backend NAME]`.

`fleet` has 7,000 offers in hours to a gap of 1e-4, `pipeline` 100 tasks x 200 candidates with a deadline halfway
between fastest and cheapest to 1e-3, as in `python -m benchmarks.solvers`. Each seed is solved in a process of its own,
in CPU seconds of that process with the solver imported before; then come median, p90 and worst. The time limit is one
of wall clock.
"""

from __future__ import annotations

import argparse
import importlib

import numpy as np

from benchmarks.instances.fleet import fleet_instance
from benchmarks.instances.pipeline import pipeline_instance
from benchmarks.solver_families.base import Clock, Figure, in_child, known
from planner.fleet.solve import solve_fleet
from planner.pipelines.solve import solve_pipeline
from solvers.backends.registry import get_backend
from solvers.problem.options import SolveOptions

GOALS_S = {"fleet": 10.0, "pipeline": 5.0}


def measure(kind: str, seed: int, backend: str, limit_s: float) -> Figure:
    """Solve one question."""
    importlib.import_module(getattr(get_backend(backend), "module"))  # noqa: B009 - not of the protocol
    options = SolveOptions(gap=1e-4 if kind == "fleet" else 1e-3, time_limit_s=limit_s, backend=backend)
    cost: float | None
    if kind == "fleet":
        fleet = fleet_instance(7_000, seed, hours=True)
        with Clock() as clock:
            found = solve_fleet(fleet, options)
        status, cost, bound, gap = found.status, found.objective_usd, found.bound_usd, found.gap
    else:
        pipe = pipeline_instance(100, 200, seed, slack=0.5, shape="graph")
        with Clock() as clock:
            choice = solve_pipeline(pipe, options)
        cost = None if choice.course is None else choice.course.cost_usd
        status, bound, gap = choice.status, choice.bound_usd, choice.gap
    return Figure(
        kind, backend, seed, status.value, clock.cpu_s, clock.wall_s, known(cost), known(bound), known(gap)
    )


def main() -> None:
    """Solve all seeds."""
    from benchmarks import slow_models  # by its own name, which the child imports

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=sorted(GOALS_S))
    parser.add_argument("first", type=int, metavar="FIRST")
    parser.add_argument("last", type=int, metavar="LAST")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--time-limit", type=float, default=60.0)
    asked = parser.parse_args()
    spent = []
    for seed in range(asked.first, asked.last + 1):
        figure = in_child(slow_models.measure, asked.kind, seed, asked.backend, asked.time_limit)
        spent.append(figure.cpu_s)
        gap = "none" if figure.gap_solver_ratio is None else f"{figure.gap_solver_ratio:.1e}"
        print(
            f"seed {seed}: {figure.cpu_s:6.2f} CPU s, {figure.status}, cost {figure.objective}, gap {gap}",
            flush=True,
        )
    goal = GOALS_S[asked.kind]
    median, p90 = np.quantile(spent, [0.5, 0.9])
    print(
        f"{len(spent)} seeds: median {median:.2f}, p90 {p90:.2f}, worst {max(spent):.2f}, sum {sum(spent):.1f} CPU s; "
        f"above {goal:g}: {sum(value > goal for value in spent)}"
    )


if __name__ == "__main__":
    main()
