"""What a start costs: `python -m benchmarks.startup [--runs 7] [--example NAME ...]`.

Every figure is CPU time (user and system) of a process of its own, so that waiting counts for nothing; the commands
take turns, so that a busy minute hits all of them. Byte code is cached in a folder of the benchmark's own and warmed
before the first measurement, as it is for every installed program. A "bare" run finds no cache of ours, a "first" one
has a compiled catalog but never saw the workload file, a "later" one finds what the run before left, its answer
included (docs/adr/0018). "No answer kept" leaves out what keeping takes; "planned anew" is a later one that takes no
answer. The yardstick is `import pandas`: a start must cost less than that (docs/adr/0004).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
YARDSTICK = "import pandas"
_LOAD = """
import time, json
from catalogs.store.load import load_catalog
begin = time.process_time(); load_catalog(); print(json.dumps((time.process_time() - begin) * 1e3))
"""
# The second search in one process: what a notebook waits for after the first.
_SEARCH = """
import json, sys, time
from pathlib import Path
from catalogs.store.load import load_catalog
from planner.candidates.choose import choose
from planner.asked.options import utc_now
from planner.candidates.prepare import build_context
from planner.candidates.engine import build
from planner.inputs.load import load_workload
loaded = load_workload(Path(sys.argv[1]))
context = build_context(loaded, loaded.workload, load_catalog(), utc_now())
for _ in range(3):
    begin = time.process_time()
    found = build(context)
    choose(found.candidates, loaded.workload.preferences.objective)
    spent = time.process_time() - begin
print(json.dumps(spent * 1e3))
"""


class Cost(NamedTuple):
    """CPU milliseconds and peak memory in MiB of one run."""

    cpu_ms: float
    rss_mib: float


def run(
    command: Sequence[str], environment: Mapping[str, str], ended: Collection[int] = (0,)
) -> tuple[Cost, bytes]:
    """Run a program; return what it cost and what it wrote.

    Raises:
        RuntimeError: its exit code is none of `ended`.
    """
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=dict(environment), stdout=out, stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        errors = process.stderr.read()
        process.stderr.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in ended:
            raise RuntimeError(
                f"{' '.join(command)} ended with {process.returncode}: {errors.decode()[-2000:]}"
            )
        out.seek(0)
        unit = 1024.0 if sys.platform != "darwin" else 1024.0**2  # ru_maxrss is KiB, on macOS bytes
        return Cost((usage.ru_utime + usage.ru_stime) * 1e3, usage.ru_maxrss / unit), out.read()


def environment(folder: Path) -> dict[str, str]:
    """The environment of the measured programs: byte code and caches inside `folder`, nothing of the user's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PLANNER_", "PYTHON"))}
    return {
        **kept,
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "PLANNER_CACHE_DIR": str(folder / "cache"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "NO_COLOR": "1",
    }


def single_jobs() -> list[Path]:
    """Examples of one training job each; fleets and ladders of tasks are other questions."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").glob("*.yaml"))}
    return [
        path.relative_to(ROOT)
        for path, text in texts.items()
        if "\ntraining:" in text and "kind: fleet" not in text
    ]


def measure(examples: Sequence[Path], runs: int, folder: Path) -> dict[str, list[Cost]]:
    """Measure everything `runs` times, in turns, after one round that only warms byte code and caches."""
    usual = environment(folder)

    def fresh(command: Sequence[str]) -> Cost:
        return run(command, _without_cache(usual, folder))[0]

    def unseen(command: Sequence[str]) -> Cost:
        for kind in ("workload", "answer"):
            for copy in (folder / "cache").glob(f"{kind}-*.json"):
                copy.unlink()
        return run(command, usual)[0]

    def again(command: Sequence[str]) -> Cost:
        return run(command, usual)[0]

    jobs: dict[str, Callable[[], Cost]] = {
        "python alone": partial(again, ["-c", "pass"]),
        "import numpy": partial(again, ["-c", "import numpy"]),
        YARDSTICK: partial(again, ["-c", YARDSTICK]),
        "planner --help": partial(again, ["-m", "planner", "--help"]),
        "load the catalog, no cache": lambda: _inner(_LOAD, _without_cache(usual, folder)),
        "load the catalog, cached": lambda: _inner(_LOAD, usual),
    }
    for path in examples:
        command = ["-m", "planner", "optimize", str(path)]
        jobs[f"{path.stem}, bare"] = partial(fresh, command)
        jobs[f"{path.stem}, first"] = partial(unseen, command)
        jobs[f"{path.stem}, later"] = partial(again, command)  # takes the answer of the line above
        jobs[f"{path.stem}, first, no answer kept"] = partial(unseen, [*command, "--reuse-answers", "0"])
        jobs[f"{path.stem}, planned anew"] = partial(again, [*command, "--reuse-answers", "0"])
        jobs[f"{path.stem}, search again"] = partial(_inner, _SEARCH, usual, str(path))
    costs: dict[str, list[Cost]] = {name: [] for name in jobs}
    for turn in range(runs + 1):
        for name, job in jobs.items():
            cost = job()
            if turn:
                costs[name].append(cost)
    return costs


def _without_cache(usual: Mapping[str, str], folder: Path) -> dict[str, str]:
    return {**usual, "PLANNER_CACHE_DIR": tempfile.mkdtemp(dir=folder)}


def _inner(code: str, env: Mapping[str, str], *args: str) -> Cost:
    """Run code that prints its own CPU milliseconds: a part of a process."""
    cost, out = run(["-c", code, *args], env)
    return Cost(float(json.loads(out)), cost.rss_mib)


def render(costs: Mapping[str, Sequence[Cost]]) -> str:
    """Return the results as a Markdown table; ratios are of the least costs."""
    yardstick = min(cost.cpu_ms for cost in costs[YARDSTICK])
    lines = [
        "| what | CPU ms, least | CPU ms, median | of `import pandas` | peak MiB |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, found in costs.items():
        times = [cost.cpu_ms for cost in found]
        peak = max(cost.rss_mib for cost in found)
        spent = f"{min(times):.1f} | {statistics.median(times):.1f} | {min(times) / yardstick:.2f}"
        lines.append(f"| {name} | {spent} | {peak:.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="measured runs of each command")
    parser.add_argument("--example", action="append", help="only this example (name without .yaml)")
    chosen = parser.parse_args()
    examples = [path for path in single_jobs() if not chosen.example or path.stem in chosen.example]
    with tempfile.TemporaryDirectory() as folder:
        costs = measure(examples, chosen.runs, Path(folder))
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, {chosen.runs} runs each, in turns\n")
    print(render(costs))


if __name__ == "__main__":
    main()
