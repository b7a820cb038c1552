"""What a question of a launcher costs: `python -m benchmarks.advice [--runs 5]`.

CPU time (user and system) of `planner advise` in processes of their own, in turns with `python` and `import pandas`, on
the bundled example of two zones (docs/spot/drivers.md): the first question of a job, which solves hazards and policy,
later ones, which look both up, and the whole answer with its 400 futures.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.startup import YARDSTICK, Cost, environment, run

_STATE = "examples/spot-state.json"
_BARE = "python alone"


def measure(runs: int, folder: Path) -> dict[str, list[Cost]]:
    """Measure everything `runs` times, in turns, after one round that only warms byte code."""
    usual, plan = environment(folder), str(folder / "plan.json")
    run(["-m", "planner", "optimize", "examples/resnet50-imagenet.yaml", "-o", "json", "--out", plan], usual)
    ask = ["-m", "planner", "advise", plan, "--state", _STATE]
    jobs = {
        _BARE: ["-c", "pass"],
        YARDSTICK: ["-c", YARDSTICK],
        "first question, the action alone": [*ask, "--futures", "0"],
        "later, the action alone": [*ask, "--futures", "0"],
        "later, with 400 futures": ask,
    }
    costs: dict[str, list[Cost]] = {name: [] for name in jobs}
    for turn in range(runs + 1):
        for copy in (folder / "cache").glob("spot-*"):
            copy.unlink()
        for name, command in jobs.items():
            cost, _ = run(command, usual)
            if turn:
                costs[name].append(cost)
    return costs


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="measured runs of each command")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        costs = measure(chosen.runs, Path(folder))
    least = {name: min(cost.cpu_ms for cost in found) for name, found in costs.items()}
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, {chosen.runs} runs each, in turns\n")
    print("| what | CPU ms, least | median | above the interpreter | of `import pandas` |")
    print("|---|---:|---:|---:|---:|")
    for name, found in costs.items():
        middle = statistics.median(cost.cpu_ms for cost in found)
        above = least[name] - least[_BARE]
        print(
            f"| {name} | {least[name]:.0f} | {middle:.0f} | {above:.0f} | {least[name] / least[YARDSTICK]:.2f} |"
        )


if __name__ == "__main__":
    main()
