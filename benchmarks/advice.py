"""What a question of a launcher costs: `python -m benchmarks.advice [--runs 5]`.

CPU time (user and system) of `planner advise` in processes of their own, in turns with `python` and `import pandas`, on
the bundled example of two zones (docs/spot/drivers.md): the first question of a job, which solves the policy (and the
hazards where the plan carries none), later ones, which look both up, and the whole answer with its 400 futures.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.startup import YARDSTICK, Cost, environment, run

_STATE = "examples/spot-state.json"
_BARE = "python alone"
_BARE_PLAN = "first question, a plan without hazards"


def measure(runs: int, folder: Path) -> dict[str, list[Cost]]:
    """Measure everything `runs` times, in turns, after one round that only warms byte code."""
    usual, plan = environment(folder), str(folder / "plan.json")
    run(["-m", "planner", "optimize", "examples/resnet50-imagenet.yaml", "-o", "json", "--out", plan], usual)
    bare = _without_hazards(Path(plan))
    ask = ["-m", "planner", "advise", plan, "--state", _STATE]
    action = ["--futures", "0"]
    jobs = {
        _BARE: ["-c", "pass"],
        YARDSTICK: ["-c", YARDSTICK],
        _BARE_PLAN: ["-m", "planner", "advise", str(bare), "--state", _STATE, *action],
        "first question, the action alone": [*ask, *action],
        "later, the action alone": [*ask, *action],
        "later, with 400 futures": ask,
    }
    costs: dict[str, list[Cost]] = {name: [] for name in jobs}
    for turn in range(runs + 1):
        for name, command in jobs.items():
            if not name.startswith("later"):
                for copy in (folder / "cache").glob("spot-*"):
                    copy.unlink()
            cost, _ = run(command, usual)
            if turn:
                costs[name].append(cost)
    return costs


def _without_hazards(plan: Path) -> Path:
    """The same plan without the hazards that it carries, as a plan that was not saved with `--out`."""
    values = json.loads(plan.read_text(encoding="utf-8"))
    for place in values["launch"]["places"]:
        place["hazards"] = None
    bare = plan.with_name("bare.json")
    bare.write_text(json.dumps(values, indent=2), encoding="utf-8")
    return bare


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
