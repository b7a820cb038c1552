"""What a first run spends its time on: `python -m benchmarks.startup_parts [--runs 8] [--example NAME ...]`.

Every few milliseconds of CPU time (as often as the kernel's clock ticks) the stack of a `planner optimize` is noted, in
processes of their own that never saw the workload file (as "first" of `benchmarks.startup`). A sample counts for the
first part of `PARTS` that has a function of the stack. The table gives CPU ms of the median run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.startup import environment, run

EXAMPLES = ("llama-3-8b", "bert-large", "qlora-70b", "dpo-8b", "resnet50-imagenet", "vlm-8b")
INTERPRETER, ELSE, LIBRARY = "interpreter", "command line, end", "import standard library"
OWN = ("planner", "catalogs", "solvers")
# What is in the file's name and, where it is given, the function's. The first part that fits counts.
PARTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "keeping answers: stamps, notes, copy": (("workloads/kept", ""), ("files/opened", "")),
    "reading the file": (("inputs/load", ""), ("inputs/settings", "")),
    "catalog": (("catalogs/store", ""),),
    "offers and what they cost at the start": (("candidates/prepare", ""),),
    "shapes, kept": (("performance/kept", ""),),
    "costs: expected prices, tariffs of places, storage": tuple(
        (name, "")
        for name in (
            "market/moved_data", "market/place_prices", "market/spot_prices", "market/price_path",
            "market/expected_price", "market/storage", "market/costs", "catalogs/tariffs", "ways/transfers",
        )
    ),
    "risk of spot": (("spot/evidence", ""), ("spot/risk", ""), ("spot/pools", "")),
    "ways in turn: chances and course": (("ways/chances", ""), ("ways/course", "run_in_turn")),
    "ways in turn: the rest": (("ways/build", "add_turns"),),
    "candidates of one offer": (("candidates/grid", ""),),
    "limits, sizes between, choice": (("candidates/engine", ""), ("candidates/choose", "choose")),
    "beside the plan: launch, alternatives, choices, notes": (("job/", ""),),
    "the judge": (("planner/judge", ""), ("workloads/answer", "")),
    "screen": (("commands/optimize", "_show"),),
}  # fmt: skip
_HOOK = """
import json, os, signal, sys, time
stacks = []
def note(_signal, frame):
    stack = []
    while frame is not None:
        code = frame.f_code
        wanted = frame.f_locals.get("name") if code.co_name == "_find_and_load" else None
        stack.append((code.co_filename, code.co_name, wanted))
        frame = frame.f_back
    stacks.append(stack)
begin = time.process_time()
signal.signal(signal.SIGPROF, note)
signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
leave = os._exit
def end(code=0):
    signal.setitimer(signal.ITIMER_PROF, 0)
    with open(os.environ["STACKS"], "w") as file:
        json.dump({"begin": begin * 1e3, "end": time.process_time() * 1e3, "stacks": stacks}, file)
    leave(code)
os._exit = end
sys.argv[0] = "planner"
from planner.cli import main
end(main())
"""
Stack = Sequence[tuple[str, str, str | None]]


def _package(name: str) -> str:
    first = name.partition(".")[0]
    return "planner" if first in OWN else first if first in ("click", "numpy", "yaml") else ""


def part_of(stack: Stack) -> str:
    """The part that a sample counts for; `stack` from the innermost frame on: file, function, module asked for."""
    asked = next((wanted for _, _, wanted in stack if wanted is not None), None)
    if asked is not None:
        package = _package(asked)
        return f"import {package}" if package else LIBRARY
    for part, places in PARTS.items():
        if any(
            file in path and function in ("", name) for path, name, _ in stack for file, function in places
        ):
            return part
    return ELSE


def measure(example: str, runs: int, folder: Path) -> dict[str, float]:
    """CPU ms of each part in a first run of an example, scaled to the median of the runs; `""`: all of it."""
    usual = environment(folder) | {"STACKS": str(folder / "stacks.json")}
    command = ["-c", _HOOK, "optimize", f"examples/{example}.yaml"]
    counts: Counter[str] = Counter()
    begins, ends = [], []
    for turn in range(runs + 1):
        for kind in ("workload", "answer"):
            for copy in (folder / "cache").glob(f"{kind}-*.json"):
                copy.unlink()
        run(command, usual)
        if turn:  # the first one warms byte code and caches
            found = json.loads((folder / "stacks.json").read_text(encoding="utf-8"))
            counts.update(part_of(stack) for stack in found["stacks"])
            begins.append(found["begin"])
            ends.append(found["end"])
    begin, end = statistics.median(begins), statistics.median(ends)
    each = (end - begin) / counts.total()
    return {"": end, INTERPRETER: begin, **{part: count * each for part, count in counts.items()}}


def render(found: Mapping[str, Mapping[str, float]]) -> str:
    """Return a Markdown table with a column for each example."""
    imports = sorted({part for one in found.values() for part in one if part.startswith("import ")})
    lines = [f"| CPU ms | {' | '.join(found)} |", "|---|" + "---:|" * len(found)]
    for part in (INTERPRETER, *imports, *PARTS, ELSE, ""):
        figures = " | ".join(f"{one.get(part, 0.0):.0f}" for one in found.values())
        lines.append(f"| {part or 'all'} | {figures} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=8, help="runs of each example")
    parser.add_argument("--example", action="append", help="only this example (name without .yaml)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {
            name: measure(name, chosen.runs, Path(folder))
            for name in EXAMPLES
            if not chosen.example or name in chosen.example
        }
    print(f"Python {sys.version.split()[0]}, {chosen.runs} runs each\n")
    print(render(found))


if __name__ == "__main__":
    main()
