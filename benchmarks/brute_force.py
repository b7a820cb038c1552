"""Searches many seeds for wrong answers: `python -m benchmarks.brute_force --seeds 100000 [--family NAME ...]`.

A check is what the tests hold on a few hundred seeds: a model against enumeration of everything, a primal against its
dual, a bound against every point. Here the same function gets as many seeds as the clock allows, family after family in
blocks, so that all have had about the same CPU time whenever it is stopped. Each disagreement is printed when it is
found; the table at the end (or at Ctrl-C, or at `kill PID` of one in the background, after the seed that is being
tried) shows seeds, disagreements and CPU seconds per family. Exit code 1: some answer is wrong.

On a busy machine a time limit of the planner may end an answer early, which is no disagreement. A seed that fails after
that long by the clock, of which this process worked less than half, is not told: it is printed, and counts neither as
tried nor as wrong.

With `--record` the seeds that were tried are kept in benchmarks/data/brute_force.json, those of earlier runs are left
out, and the table shows all of them: so many runs add up to 100,000 seeds.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import math
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from benchmarks.seed_record import Range, Tried, joined, load_record, save_record
from tests.few_remedies import FewRemedies
from tests.remembered_chances import remembered_chances
from tests.remembered_shapes import RememberedShapes

# name: module of the tests and its function of a seed, which raises AssertionError where something disagrees
CHECKS = {
    "commitments: decomposition = extensive form": "commitments.test_commit_model:check_extensive",
    "commitments: second stage = linear program": "commitments.test_commit_model:check_second_stage",
    "commitments: use = dual": "commitments.test_commit_model:check_use",
    "commitments: cuts": "commitments.test_commit_model:check_cuts",
    "commitments: closed form = decomposition": "commitments.test_commit_model:check_closed_form",
    "commitments: what begins later": "commitments.test_commit_model:check_later",
    "commitments: what replaces what is owned": "commitments.test_begins:check_ends",
    "fleet: whole workers": "fleet.test_brute_force:check_fleet",
    "fleet: budget of the least cost": "fleet.test_brute_force:check_tight_budget",
    "fleet: workers in hours": "fleet.test_brute_force:check_part_time",
    "fleet: laws": "fleet.test_model_laws:check_laws",
    "fleet: plan of a workload": "fleet.test_spine_fleet:check_tiny_fleet",
    "fleet: on commitments that end": "fleet.test_own_ends:check_own_ends",
    "fleet: with a fall-back": "fleet.test_fallback:check_fallback",
    "fleet: some workers fall back": "fleet.test_parts:check_parts",
    "fleet: a larger share": "fleet.test_parts_laws:check_larger_share",
    "job: model": "fleet.test_brute_force:check_single",
    "job: plan of a workload": "job.test_spine_brute_force:check",
    "job: bought in parts": "candidates.test_bought_in_parts:check_mix",
    "job: one engine": "job.test_one_engine:check_one_engine",
    "portfolio: full": "portfolios.test_brute_force:check_full",
    "portfolio: fast": "portfolios.test_brute_force:check_fast",
    "portfolio: least relaxation": "portfolios.test_infeasible:check_relaxation",
    "pipeline: cost": "pipelines.test_model:check_pipeline",
    "pipeline: least time": "pipelines.test_model:check_least_hours",
    "pipeline: on commitments that end": "pipelines.test_own_ends:check_starts",
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
LIMIT_S = 10.0  # by the clock; checks ask for limits of 30 s and more, and take less than a second
ASKING = ("planner.candidates.sizes", "planner.judge.bench", "tests.planner.job.test_spine_brute_force")
RECORD = Path(__file__).parent / "data" / "brute_force.json"
_remedies = FewRemedies()
_stopped: list[bool] = []  # by a signal: a search of the product's would take an exception for its own user's


@dataclass
class Family:
    """One check and what it has seen in this run.

    Attributes:
        name: as in `CHECKS`.
        left: ranges of seeds that are still to be tried.
        done: ranges that were tried.
        wrong: seeds that disagree.
        cpu_s: CPU seconds of this process spent on it.
    """

    name: str
    left: list[Range]
    done: list[Range] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)
    cpu_s: float = 0.0

    @property
    def tried(self) -> Tried:
        """As it is recorded."""
        return Tried(joined(self.done), tuple(self.wrong), self.cpu_s)

    def run(self) -> Iterator[str]:
        """Try seeds for `BLOCK_S` CPU seconds; yields a line per disagreement."""
        module, name = CHECKS[self.name].split(":")
        room = "tests" if module.startswith("solvers.") else "tests.planner"
        check = getattr(importlib.import_module(f"{room}.{module}"), name)
        begun, before = time.process_time(), self.cpu_s
        while self.left and self.cpu_s - before < BLOCK_S and not _stopped:
            seed, end = self.left.pop(0)
            if seed + 1 < end:
                self.left.insert(0, (seed + 1, end))
            _remedies.begin(seed)
            started, worked = time.monotonic(), time.process_time()
            try:
                check(seed)
            except Exception as error:  # noqa: BLE001 - a crash is a disagreement as well
                text = str(error).strip().splitlines() or ["no message"]
                said = f"{self.name}: seed {seed}: {type(error).__name__}: {text[0][:200]}"
                took, worked = time.monotonic() - started, time.process_time() - worked
                if took > LIMIT_S and worked < took / 2:
                    self.cpu_s = before + time.process_time() - begun
                    yield f"{said} (not told: {took:.0f} s by the clock, a time limit may have passed)"
                    continue
                self.wrong.append(seed)
                yield said
            first = self.done.pop()[0] if self.done and self.done[-1][1] == seed else seed
            self.done.append((first, seed + 1))
            self.cpu_s = before + time.process_time() - begun


def search(families: list[Family], limit_s: float) -> Iterator[str]:
    """Give every family its turns until all its seeds are tried or the CPU seconds `limit_s` are spent.

    What the performance model says of a job on a machine is worked out once for all seeds, whoever asks: the planner,
    the judge or an enumeration. So is the chance of a fleet that is planned twice. What stands beside an answer (what
    would help where there is none, what else could be bought), which no check looks at, is worked out for one seed in
    five.
    """
    begun = time.process_time()
    with contextlib.ExitStack() as stack:
        remembered = RememberedShapes()
        for asking in ASKING:
            stack.enter_context(mock.patch(f"{asking}.estimate_shapes", remembered))
        stack.enter_context(remembered_chances())
        stack.enter_context(_remedies.in_place())
        while open_ones := [family for family in families if family.left]:
            for family in open_ones:
                yield from family.run()
                if _stopped or time.process_time() - begun > limit_s:
                    return


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let Ctrl-C and `kill` end the search after the seed that is being tried."""
    _stopped.clear()
    before = {
        number: signal.signal(number, lambda *_: _stopped.append(True))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def table(tried: dict[str, Tried]) -> str:
    """Return the figures, a line per family."""
    head = f"{'family':46}{'seeds':>9}{'disagreements':>15}{'CPU s':>10}"
    rows = [(name, one.seeds, len(one.wrong), one.cpu_s) for name, one in tried.items()]
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
    parser.add_argument(
        "--record", action="store_true", help="leave out recorded seeds, and add those of this run"
    )
    arguments = parser.parse_args()
    chosen = [name for name in CHECKS if any(text in name for text in arguments.family or [""])]
    if not chosen:
        parser.error(f"no family is called so; known: {'; '.join(CHECKS)}")
    record = load_record(RECORD) if arguments.record else {}
    first, end = arguments.start, arguments.start + arguments.seeds
    families = [Family(name, [*record.get(name, Tried()).missing(first, end)]) for name in chosen]
    with _ended_by_signals():
        for line in search(families, arguments.cpu_limit):
            print(line, flush=True)
    tried = {family.name: family.tried for family in families}
    if arguments.record:
        record = load_record(RECORD)  # another run may have added to it
        tried = {name: record.get(name, Tried()).plus(tried.get(name, Tried())) for name in CHECKS}
        save_record(RECORD, tried)
    print(table(tried))
    return int(any(family.wrong for family in families))


if __name__ == "__main__":
    sys.exit(main())
