"""Searches many seeds for wrong answers: `python -m benchmarks.brute_force --seeds 100000 [--family NAME ...]`.

A check is what the tests hold on a few hundred seeds: a model against enumeration of everything, a primal against its
dual, a bound against every point. Here the same function gets as many seeds as the clock allows, family after family in
blocks, so that all have had about the same CPU time whenever it is stopped. Each disagreement is printed when it is
found; the table at the end (or at Ctrl-C, or at `kill PID` of one in the background) shows seeds, disagreements and CPU
seconds per family. Exit code 1: some answer is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import math
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

# name: module of the tests and its function of a seed, which raises AssertionError where something disagrees
CHECKS = {
    "commitments: decomposition = extensive form": "commitments.test_commit_model:check_extensive",
    "commitments: second stage = linear program": "commitments.test_commit_model:check_second_stage",
    "commitments: use = dual": "commitments.test_commit_model:check_use",
    "commitments: cuts": "commitments.test_commit_model:check_cuts",
    "commitments: closed form = decomposition": "commitments.test_commit_model:check_closed_form",
    "fleet: whole workers": "fleet.test_brute_force:check_fleet",
    "fleet: budget of the least cost": "fleet.test_brute_force:check_tight_budget",
    "fleet: workers in hours": "fleet.test_brute_force:check_part_time",
    "fleet: plan of a workload": "fleet.test_spine_fleet:check_tiny_fleet",
    "job: model": "fleet.test_brute_force:check_single",
    "job: plan of a workload": "job.test_spine_brute_force:check",
    "job: bought in parts": "candidates.test_bought_in_parts:check_mix",
    "portfolio: full": "portfolios.test_brute_force:check_full",
    "portfolio: fast": "portfolios.test_brute_force:check_fast",
    "portfolio: least relaxation": "portfolios.test_infeasible:check_relaxation",
    "pipeline: cost": "pipelines.test_model:check_pipeline",
    "pipeline: least time": "pipelines.test_model:check_least_hours",
    "schedule": "schedules.test_schedule:check_schedule",
    "serving": "serving.test_serving:check_serving",
    "exhaustive judge: portfolio": "test_exhaustive_judge:check_portfolio",
    "exhaustive judge: pipeline": "test_exhaustive_judge:check_pipeline",
    "exhaustive judge: serving": "test_exhaustive_judge:check_serving",
    "exhaustive judge: commitments": "test_exhaustive_judge:check_commitment",
    "exhaustive judge: frontier": "test_exhaustive_judge:check_frontier",
    "exact bound of a relaxation": "solvers.test_certificate:check_bound",
}
BLOCK_S = 10.0  # CPU seconds of one family before the next has its turn


@dataclass
class Family:
    """One check and what it has seen.

    Attributes:
        name: as in `CHECKS`.
        next_seed: the first seed not tried yet.
        wrong: seeds that disagree.
        cpu_s: CPU seconds of this process spent on it.
    """

    name: str
    next_seed: int
    wrong: list[int] = field(default_factory=list)
    cpu_s: float = 0.0

    def run(self, end: int) -> Iterator[str]:
        """Try seeds below `end` for `BLOCK_S` CPU seconds; yields a line per disagreement."""
        module, name = CHECKS[self.name].split(":")
        room = "tests" if module.startswith("solvers.") else "tests.planner"
        check = getattr(importlib.import_module(f"{room}.{module}"), name)
        begun, before = time.process_time(), self.cpu_s
        while self.next_seed < end and self.cpu_s - before < BLOCK_S:
            seed = self.next_seed
            self.next_seed += 1
            try:
                check(seed)
            except Exception as error:  # noqa: BLE001 - a crash is a disagreement as well
                self.wrong.append(seed)
                text = str(error).strip().splitlines() or ["no message"]
                yield f"{self.name}: seed {seed}: {type(error).__name__}: {text[0][:200]}"
            self.cpu_s = before + time.process_time() - begun


def search(families: list[Family], end: int, limit_s: float) -> Iterator[str]:
    """Give every family its turns until all seeds below `end` are tried or the CPU seconds `limit_s` are spent."""
    begun = time.process_time()
    while open_ones := [family for family in families if family.next_seed < end]:
        for family in open_ones:
            yield from family.run(end)
            if time.process_time() - begun > limit_s:
                return


def table(families: list[Family], start: int) -> str:
    """Return the figures, a line per family."""
    head = f"{'family':46}{'seeds':>9}{'disagreements':>15}{'CPU s':>10}"
    rows = [(f.name, f.next_seed - start, len(f.wrong), f.cpu_s) for f in families]
    rows.append(("all", sum(r[1] for r in rows), sum(r[2] for r in rows), sum(r[3] for r in rows)))
    return "\n".join([head, *(f"{name:46}{n:>9,}{wrong:>15}{cpu:>10.1f}" for name, n, wrong, cpu in rows)])


def main() -> int:
    """Run; exit code 1 when some answer is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1000, help="seeds per family (default 1000)")
    parser.add_argument("--start", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument(
        "--family", nargs="+", metavar="TEXT", help="families whose name contains one of these"
    )
    parser.add_argument("--cpu-limit", type=float, default=math.inf, metavar="S", help="CPU seconds in all")
    arguments = parser.parse_args()
    chosen = [name for name in CHECKS if any(text in name for text in arguments.family or [""])]
    if not chosen:
        parser.error(f"no family is called so; known: {'; '.join(CHECKS)}")
    families = [Family(name, arguments.start) for name in chosen]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for line in search(families, arguments.start + arguments.seeds, arguments.cpu_limit):
            print(line, flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    print(table(families, arguments.start))
    return int(any(family.wrong for family in families))


if __name__ == "__main__":
    sys.exit(main())
