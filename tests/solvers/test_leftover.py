"""A program whose solver is still at work at its end ends with its own exit code, not with an abort."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from solvers.backends.quiet import LeftBehindError, leave_behind, quiet_moment
from tests.conftest import ROOT

SCRIPT = """
import sys
import threading
from solvers.problem.options import SolveOptions
from solvers.execution.solve import solve
from tests.solvers import cases
found = solve(cases.hard(size=400, rows=60), SolveOptions(gap=0.0, time_limit_s=0.05, isolate=False, backend=%r))
print(found.termination.value, flush=True)
sys.exit(7)
"""

# The solver comes back from C++ while the interpreter is being taken down, which takes a second here.
LATE = """
import sys
import time
import highspy
import scipy.optimize
from solvers.problem.options import SolveOptions
from solvers.execution import leftover
from solvers.execution.solve import solve
from tests.solvers import cases
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(1.0)
slow = Slow()
leftover.PATIENCE_S = 0.0
solve(cases.hard(size=400, rows=60), SolveOptions(gap=0.0, time_limit_s=0.1, isolate=False, backend=%r))
print("the answer", flush=True)
sys.exit(7)
"""


@pytest.mark.parametrize("backend", ["scipy", "highspy"])
def test_a_solver_that_comes_back_at_the_end_aborts_nothing(backend: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE % backend],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (7, "the answer\n", "")


@pytest.mark.parametrize("backend", ["scipy", "highspy"])
def test_a_script_keeps_its_exit_code(backend: str) -> None:
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT % backend],
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stdout) == (7, "time_limit\n"), done.stderr
        assert "terminate called" not in done.stderr


def test_a_solver_left_behind_silences_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Its start came after the time limit, when the caller's answer was already being printed."""
    caller_gone, tried = threading.Event(), threading.Event()
    raised: list[Exception] = []

    def start_late() -> None:
        caller_gone.wait(20)
        try:
            with quiet_moment():
                tried.wait(20)
        except LeftBehindError as error:
            raised.append(error)

    thread = threading.Thread(target=start_late, daemon=True)
    thread.start()
    leave_behind(thread)
    caller_gone.set()
    thread.join(5)
    print("the answer", flush=True)
    tried.set()
    thread.join(20)
    assert len(raised) == 1
    assert capfd.readouterr().out == "the answer\n"
