"""`python -m benchmarks.expected_cost FILES...`: is the expected cost the mean of what a plan on spot may come to?

A plan's expected cost is a mean over luck and over the error of the speed, whose mean is the predicted speed
(`planner.candidates.ways.fallback`); its outcomes are spread around that speed as their median
(`planner.candidates.ways.outcomes`) and by the calibrated luck. So the mean over the outcomes lies above by the mean of
the error, exp(sd^2 / 2), for every way to buy alike: how far it lies from that, for each file whose plan runs on spot.
"""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime, time
from math import exp
from pathlib import Path

import numpy as np

from planner.asked.options import Options
from planner.candidates.choose import choose
from planner.candidates.plan_parts.launch import outcomes_of
from planner.errors import PlannerError
from planner.inputs.load import load_workload
from planner.workloads.answer import Answer, optimize


def ratios(answer: Answer) -> tuple[float, float, float, float] | None:
    """Mean over expected cost, the same less the mean error of the speed, of hours, log sd; None off spot."""
    launch, found = answer.plan.launch, answer.found
    if found is None or launch is None or launch.strategy not in ("spot", "spot_with_fallback"):
        return None
    made = found.candidates
    choice = choose(made, answer.context.asked.workload.preferences.objective)
    assert choice is not None
    hours, usd = outcomes_of(made, choice.winner)
    cost, sd = float(usd.mean()) / float(launch.expected_cost_usd), float(made.sigma[choice.winner])
    return cost, cost / exp(sd * sd / 2.0), float(hours.mean()) / launch.expected_hours, sd


def main() -> None:
    """Print a row a file, and the quantiles of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--as-of", required=True, type=date.fromisoformat)
    asked = parser.parse_args()
    options = Options(datetime.combine(asked.as_of, time(), UTC), as_of=asked.as_of, brief=True)
    found = []
    for path in asked.files:
        try:
            one = ratios(optimize(load_workload(path), options))
        except PlannerError as error:
            print(f"{path.stem:36} {str(error).splitlines()[0][:80]}")
            continue
        if one is not None:
            found.append(one)
            print(
                f"{path.stem:36} mean / expected: cost {one[0]:.2f}, without the mean error of the speed "
                f"{one[1]:.2f}; hours {one[2]:.2f}; log sd of the speed {one[3]:.2f}",
                flush=True,
            )
    for name, values in zip(("cost", "less the mean error", "hours"), np.asarray(found).T, strict=False):
        least, low, median, high, most = np.quantile(values, (0.0, 0.1, 0.5, 0.9, 1.0))
        print(
            f"{name}: {len(values)} plans, least {least:.2f}, P10 {low:.2f}, median {median:.2f}, "
            f"P90 {high:.2f}, most {most:.2f}"
        )


if __name__ == "__main__":
    main()
