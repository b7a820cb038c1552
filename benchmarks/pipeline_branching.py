"""Branching over relaxations against the whole model: `python -m benchmarks.pipeline_branching [--n 150]`.

Random graphs of 4-11 tasks with a deadline, each solved both ways to 1e-5; costs must agree, and no bound may pass the
other's cost. Prints every disagreement, and how many there are; exit code 1 where there is one.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from benchmarks.instances.pipeline import pipeline_instance
from planner.pipelines.solve import PipelineResult, solve_pipeline
from solvers.problem.options import SolveOptions

GAP = 1e-5
BRANCHED, WHOLE = 0, 10**9  # candidates below which a pipeline is solved as one model


def _cost(result: PipelineResult) -> float:
    return math.inf if result.course is None else result.course.cost_usd


def agrees(seed: int) -> bool:
    """Solve one instance both ways; say whether the answers agree."""
    draw = np.random.default_rng(seed)
    pipe = pipeline_instance(
        int(draw.integers(4, 12)), int(draw.integers(8, 30)), seed, slack=float(draw.uniform(0, 0.6)),
        n_places=int(draw.integers(3, 12)),
    )  # fmt: skip
    options = SolveOptions(gap=GAP, time_limit_s=120.0, backend="auto")
    one, other = (
        solve_pipeline(pipe, options, method="milp", whole_below=below) for below in (BRANCHED, WHOLE)
    )
    costs, bounds = (_cost(one), _cost(other)), (one.bound_usd, other.bound_usd)
    near = costs[0] == costs[1] or abs(costs[0] - costs[1]) <= 2 * GAP * costs[1]
    good = near and max(bounds) <= min(costs) * (1 + 1e-9)
    if not good:
        print(f"seed {seed}: costs {costs}, bounds {bounds}, {one.status.value} and {other.status.value}")
    return good


def main() -> None:
    """Solve `--n` instances."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=150)
    count = parser.parse_args().n
    wrong = sum(not agrees(seed) for seed in range(count))
    print(f"{count} pipelines, {wrong} disagreements")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
