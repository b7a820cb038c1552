"""Lets a benchmark read time as on a quiet machine: clocks count the CPU seconds of this process.

All that is at work in the process counts, solver threads included, so a program that uses one core sees its own seconds
whatever else the machine does. Solvers read the wall clock by themselves: their limits are stretched by what the last
second took. Nothing runs in child processes.
"""

from __future__ import annotations

import queue
import time
from typing import Any

WALL, CPU = time.perf_counter, time.process_time
LOOK_UP_S = 0.002
_marks = [(WALL(), CPU())]


def stretch() -> float:
    """Wall seconds per CPU second of late."""
    now = WALL(), CPU()
    if now[0] - _marks[-1][0] > 1.0:
        _marks.append(now)
    then = _marks[-2] if len(_marks) > 1 else _marks[0]
    return max((now[0] - then[0]) / max(now[1] - then[1], 1e-3), 1.0)


def _next_of(items: queue.SimpleQueue[Any], left_s: float) -> Any:
    end = CPU() + left_s
    while True:
        try:
            return items.get(timeout=LOOK_UP_S)
        except queue.Empty:
            if end <= CPU():
                raise


def use() -> None:
    """Count CPU seconds from now on; to be called before anything of the planner is imported."""
    time.perf_counter = time.monotonic = CPU
    import highspy

    from solvers.execution import solve

    set_option = highspy.Highs.setOptionValue

    def stretched(solver: Any, name: str, value: Any) -> Any:
        if name == "time_limit":
            ran = solver.getRunTime()
            value = ran + (value - ran) * stretch()
        return set_option(solver, name, value)

    highspy.Highs.setOptionValue = stretched  # type: ignore[assignment, method-assign]
    solve.next_of = _next_of
    solve._start_child = lambda *_: None
