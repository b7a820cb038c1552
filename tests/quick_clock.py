"""A clock that goes faster than time passes: what a machine that does many other things is to a search."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from solvers.backends.base import Backend, Checked, Linear, Relaxation
from solvers.problem.milp import Milp
from solvers.problem.options import SolveOptions


def let_clock_run(monkeypatch: pytest.MonkeyPatch, speed: float) -> None:
    """From now on let all clocks of this process, and the limits that solvers keep, run `speed` times as fast."""
    for name in ("perf_counter", "monotonic", "process_time"):
        read: Callable[[], float] = getattr(time, name)
        began = read()
        monkeypatch.setattr(time, name, lambda read=read, began=began: began + speed * (read() - began))
    solve, relax, again = Backend.solve_vector, Backend.relax, Linear.relax

    def solve_vector(backend: Backend, problem: Milp, options: SolveOptions) -> Checked:
        return solve(backend, problem, replace(options, time_limit_s=options.time_limit_s / speed))

    def relax_once(backend: Backend, problem: Milp, limit_s: float) -> Relaxation:
        return relax(backend, problem, limit_s / speed)

    def relax_again(
        linear: Linear, limited: Milp, limit_s: float, cutoff: float = float("inf")
    ) -> Relaxation:
        return again(linear, limited, limit_s / speed, cutoff)

    monkeypatch.setattr(Backend, "solve_vector", solve_vector)
    monkeypatch.setattr(Backend, "relax", relax_once)
    monkeypatch.setattr(Linear, "relax", relax_again)
