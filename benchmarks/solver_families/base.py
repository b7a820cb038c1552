"""What a benchmark family of the optimisation core reports, and how it is measured.

A family is a module of this package with `NAME`, `GOALS` and `run(seed, *, quick=False) -> list[Figure]`; `run` hands
each measurement to `in_child`, so that CPU seconds and peak memory are those of one fresh process.
"""

from __future__ import annotations

import importlib
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Protocol

from solvers.execution.leftover import leave_with

KEPT = 1.10  # of the limit: the latest that an answer may come


@dataclass(frozen=True)
class Figure:
    """One measurement.

    Attributes:
        family: the family's name.
        size: what was solved, as a reader would say it ("7,000 offers").
        seed: seed of the instance.
        status: what the answer is worth (`solvers.problem.solution.Status`), or `error`.
        cpu_s: CPU seconds (user and system, children included) of what was timed.
        wall_s: wall-clock seconds of the same.
        objective: cost of the best point, None without one.
        bound: the solver's bound on the cost, None without one.
        gap_solver_ratio: gap that the solver claims (floating point).
        gap_exact_ratio: gap proven in exact arithmetic.
        peak_mib: peak resident memory of the largest process.
        limit_s: time limit the answer was asked within.
        note: what else is worth knowing, goals missed first.
    """

    family: str
    size: str
    seed: int
    status: str
    cpu_s: float
    wall_s: float
    objective: float | None = None
    bound: float | None = None
    gap_solver_ratio: float | None = None
    gap_exact_ratio: float | None = None
    peak_mib: float | None = None
    limit_s: float | None = None
    note: str = ""

    @property
    def kept(self) -> bool | None:
        """Whether the answer came within the limit + 10 %; None without a limit."""
        return None if self.limit_s is None else self.wall_s <= self.limit_s * KEPT


class Family(Protocol):
    """What a module of this package offers."""

    NAME: str
    GOALS: tuple[str, ...]

    def run(self, seed: int, *, quick: bool = False) -> list[Figure]:
        """Measure the family; `quick` takes sizes that end within seconds."""


class Clock:
    """Times a `with` block: CPU seconds of this process and its ended children, and wall seconds."""

    def __init__(self) -> None:
        self.cpu_s = self.wall_s = 0.0
        self._cpu = self._wall = 0.0

    def __enter__(self) -> Clock:
        self._cpu, self._wall = process_cpu_s(), time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cpu_s, self.wall_s = process_cpu_s() - self._cpu, time.perf_counter() - self._wall


def process_cpu_s() -> float:
    """CPU seconds of this process and of its children that have ended."""
    used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(item.ru_utime + item.ru_stime for item in used)


def peak_mib() -> float:
    """Peak resident memory of this process and of its largest ended child, MiB.

    `ru_maxrss` of a process counts what its parent held before `exec`, so this process's own peak is read from the
    kernel where it tells.
    """
    scale = 1024.0 if sys.platform == "darwin" else 1.0  # KiB, on macOS bytes
    own = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / scale
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text(encoding="ascii", errors="replace").splitlines()
        own = next((float(line.split()[1]) for line in lines if line.startswith("VmHWM")), own)
    return max(own, float(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / scale) / 1024


def in_child(
    measure: Callable[..., Figure], *arguments: Any, timeout_s: float = 900.0, **named: Any
) -> Figure:
    """Call `measure` in a fresh interpreter and return its figure with the peak memory filled in.

    Args:
        measure: a module-level function; arguments and figure travel as JSON.
        arguments: its arguments.
        timeout_s: when to give the child up.
        named: its named arguments.

    Raises:
        RuntimeError: the child failed; carries the end of its error output.
    """
    call = [measure.__module__, measure.__name__, arguments, named]
    command = [sys.executable, "-m", "benchmarks.solver_families.base", json.dumps(call)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{measure.__module__}: no figure within {timeout_s:g} s") from error
    if done.returncode:
        raise RuntimeError(f"{measure.__module__}{arguments}: {done.stderr.strip()[-2000:]}")
    return Figure(**json.loads(done.stdout.splitlines()[-1]))


def known(value: float | None) -> float | None:
    """Return `value`, None in place of NaN and infinities (which JSON does not know)."""
    return None if value is None or not math.isfinite(value) else float(value)


def families() -> dict[str, ModuleType]:
    """Return every family by name: the modules of this package that have `run`."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        module = importlib.import_module(f"{__package__}.{path.stem}") if path.stem != "base" else None
        if module is not None and hasattr(module, "run"):
            found[module.NAME] = module
    return found


def main() -> None:
    """Run in the child: one call as JSON in, one figure as JSON out."""
    module, function, arguments, named = json.loads(sys.argv[1])
    figure: Figure = getattr(importlib.import_module(module), function)(*arguments, **named)
    print(json.dumps(asdict(replace(figure, peak_mib=round(peak_mib(), 1)))))
    leave_with(0)  # a solver may still be at work after its time limit: the figure is printed


if __name__ == "__main__":
    main()
