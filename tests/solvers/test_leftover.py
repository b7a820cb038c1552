"""A program whose solver is still at work at its end ends with its own exit code, not with an abort."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT

SCRIPT = """
import sys
from solvers.problem.options import SolveOptions
from solvers.execution.solve import solve
from tests.solvers import cases
found = solve(cases.hard(size=400, rows=60), SolveOptions(gap=0.0, time_limit_s=0.05, isolate=False, backend=%r))
print(found.termination.value, flush=True)
sys.exit(7)
"""


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
