"""`python -m benchmarks.soak --answers 2000 --processes 200`: does memory grow, does a file stay.

Mixed questions (jobs, frontiers, portfolios, pipelines, estimates, bills ...) in one process, in rounds of a drawn
order: after each round the resident memory, and what of it is in use (handed out by the C library and not given back).
Growth is told after `WARM` rounds, in which each question was asked that often. Then the same questions in a process
each, and the most memory that each kind took at first and at last. Folders of the user are fresh ones: after the first
round no file may be new.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.file_faults import DAY, EXAMPLES, Files, files, fresh, planner
from benchmarks.startup import run as run_program

QUESTIONS: dict[str, tuple[str, ...]] = {
    **{
        f"optimize {name}": ("optimize", f"EX/{name}.yaml", *DAY, "-o", "json")
        for name in ("bert-large", "llama-3-8b", "resnet50-imagenet", "qlora-70b", "hpo-fleet", "low-carbon", "grpo-8b")
    },
    "frontier": ("frontier", "EX/bert-large.yaml", *DAY, "-o", "csv"),
    "whatif": ("whatif", "EX/bert-large.yaml", *DAY, "--set", "constraints.max_nodes=2"),
    "compare": ("compare", "EX/bert-large.yaml", *DAY, "--over", "provider"),
    "estimate": ("estimate", "EX/bert-large.yaml", *DAY, "--instance-type", "p4d.24xlarge", "--nodes", "2"),
    "validate": ("validate", "EX/portfolio.yaml"),
    "portfolio": ("portfolio", "EX/portfolio.yaml", *DAY, "-o", "md"),
    "pipeline": ("pipeline", "EX/pipeline.yaml", *DAY, "-o", "html"),
    "schedule": ("schedule", "EX/schedule.yaml", *DAY, "-o", "csv"),
    "serving": ("serving", "EX/serving.yaml", *DAY),
    "commit": ("commit", "EX/commit.yaml", *DAY),
    "tco": ("tco", "EX/tco-8xh100.yaml", *DAY),
    "forecast": ("forecast", "--daily", "EX/daily-costs.csv", "-o", "json"),
    "budget": ("budget", "EX/budgets.yaml", "--daily", "EX/daily-costs.csv"),
    "review": ("review", "--focus", "EX/focus", "-o", "html", "--no-forecast"),
    "size": ("size", "--data", "100GB", "--goal", "image_classification", *DAY),
    "refused": ("optimize", "EX/no-such-file.yaml"),
}  # fmt: skip
# done, no plan within limits, over a budget, or bad input: what these questions may end with
ENDED = (0, 2, 3, 5)
GROWTH = 0.05
WARM = 5  # rounds, until the allocator has seen the largest answers side by side
_MALLINFO2 = (
    "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"
)  # fmt: skip


class _Mallinfo2(ctypes.Structure):
    """What glibc's `mallinfo2` gives, in bytes or blocks (malloc.h of glibc 2.33)."""

    _fields_ = [(name, ctypes.c_size_t) for name in _MALLINFO2]


@dataclass
class Soak:
    """What was seen: memory in MB after each round, resident and in use, the files after the first, and at the end."""

    memory_mb: list[float] = field(default_factory=list)
    used_mb: list[float] = field(default_factory=list)
    first: Files = field(default_factory=dict)
    last: Files = field(default_factory=dict)
    asked: int = 0

    @property
    def growth(self) -> float:
        """Growth of resident memory from the first third after the warm-up to the last third, as medians."""
        return _later(self.memory_mb[WARM:] or self.memory_mb)

    @property
    def used_growth(self) -> float:
        """The same of the memory in use."""
        return _later(self.used_mb[WARM:] or self.used_mb)

    @property
    def left(self) -> list[str]:
        """Files that are there at the end and were not after the first round, and all temporary ones."""
        return sorted(name for name in self.last if name not in self.first or name.startswith("tmp/"))


def _later(mb: list[float]) -> float:
    """How much more the last third took than the first, as medians."""
    third = max(1, len(mb) // 3)
    return statistics.median(mb[-third:]) / statistics.median(mb[:third]) - 1


def resident_mb() -> float:
    """Memory of this process that is in use, in MB, of 1e6 bytes."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def used_mb() -> float:
    """Memory that the C library has handed out and not got back, in MB of 1e6 bytes; NaN without glibc 2.33."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return math.nan
    mallinfo2.restype = _Mallinfo2
    found = mallinfo2()
    return float(found.uordblks + found.hblkhd) / 1e6


def rounds(questions: dict[str, tuple[str, ...]], answers: int, draw: random.Random) -> Iterator[list[str]]:
    """The names of questions in rounds: each once, in an order of its own, until there are enough."""
    for _ in range(max(1, round(answers / len(questions)))):
        yield draw.sample(sorted(questions), len(questions))


def soak(
    questions: dict[str, tuple[str, ...]], answers: int, seed: int, parent: Path, *, tell: bool = False
) -> Soak:
    """Ask in this process.

    Raises:
        RuntimeError: a question ends otherwise than it may.
    """
    seen, draw = Soak(), random.Random(seed)
    with fresh(parent, lambda _: None) as run:
        for order in rounds(questions, answers, draw):
            for name in order:
                code, err = planner(questions[name], run, run)
                seen.asked += 1
                if code not in ENDED or "internal error" in err:
                    raise RuntimeError(f"{name}: exit code {code}: {err[-300:]}")
            seen.memory_mb.append(resident_mb())
            seen.used_mb.append(used_mb())
            seen.first = seen.first or _all_files(run)
            if tell:
                print(
                    f"  {seen.asked} answers, {seen.memory_mb[-1]:.1f} MB, {seen.used_mb[-1]:.1f} in use, "
                    f"{time.process_time():.0f} CPU s",
                    flush=True,
                )
        seen.last = _all_files(run)
    return seen


def _all_files(run: Path) -> Files:
    """Also those of the cache, by their names."""
    found = files(run)
    return found | {str(path.relative_to(run)): b"" for path in run.rglob("*") if path.is_file()}


def processes(
    questions: dict[str, tuple[str, ...]], count: int, seed: int, parent: Path
) -> tuple[dict[str, list[float]], list[str]]:
    """Ask in a process each: the most memory of each, in MB, by question, and the files that were left."""
    most: dict[str, list[float]] = {}
    first: Files = {}
    with fresh(parent, lambda _: None) as run:
        for order in rounds(questions, count, random.Random(seed)):
            for name in order:
                words = [word.replace("EX/", f"{EXAMPLES}/", 1) for word in questions[name]]
                each_anew = {**os.environ, "PLANNER_REUSE_ANSWERS": "0"}
                cost, _ = run_program(["-m", "planner", *words], each_anew, ENDED)
                most.setdefault(name, []).append(cost.rss_mib * 2**20 / 1e6)
            first = first or _all_files(run)
        left = [name for name in _all_files(run) if name not in first or name.startswith("tmp/")]
    return most, left


def main() -> int:
    """Run; exit code 1 where memory grows by more than 5 % or a file is left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", action="append", default=[], metavar="QUESTION", help="Ask these alone; repeatable."
    )
    asked = parser.parse_args()
    chosen = {name: QUESTIONS[name] for name in asked.only} or QUESTIONS
    wrong = False
    with tempfile.TemporaryDirectory() as name:
        if asked.answers:
            seen = soak(chosen, asked.answers, asked.seed, Path(name), tell=True)
            print(
                f"{seen.asked} answers: memory {seen.growth:+.1%}, in use {seen.used_growth:+.1%}, "
                f"{len(seen.left)} files left {seen.left[:5]}"
            )
            wrong = seen.growth > GROWTH or bool(seen.left)
        if asked.processes:
            most, left = processes(chosen, asked.processes, asked.seed, Path(name))
            worst = max(_later(mb) for mb in most.values())
            count = sum(map(len, most.values()))
            print(f"{count} processes: memory {worst:+.1%} at most, {len(left)} files left {left[:5]}")
            wrong = wrong or worst > GROWTH or bool(left)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
