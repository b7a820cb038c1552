"""CBC, a solver with no code in common with HiGHS, as a program of its own (the one inside the PuLP package).

It reads the LP text that `tests.lp_text` writes, so that text is tested too. It runs as a subprocess because
solver libraries do not share a process well (highspy and ortools cannot; `import pulp` imports highspy).
"""

from __future__ import annotations

import functools
import importlib.util
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from solvers.problem.milp import Milp
from tests.lp_text import lp_text


@dataclass(frozen=True)
class Second:
    """What the second solver said: `optimal` or `infeasible`, and the objective."""

    status: str
    objective: float | None


@functools.cache
def cbc_program() -> Path | None:
    """The CBC program of the installed PuLP package; None where there is none for this machine."""
    spec = importlib.util.find_spec("pulp")
    if spec is None or spec.origin is None:
        return None
    system = {"linux": "linux", "darwin": "osx", "win32": "win"}.get(sys.platform, sys.platform)
    arm = platform.machine().lower() in ("arm64", "aarch64")
    folder = Path(spec.origin).parent / "solverdir" / "cbc" / system
    found = [
        path
        for kind in (("arm64", "i64") if arm else ("i64", "i32"))
        for path in (folder / kind / "cbc", folder / kind / "cbc.exe")
        if path.exists()
    ]
    return found[0] if found else None


def solve_by_cbc(problem: Milp, folder: Path, *, gap: float = 0.0, limit_s: float = 60.0) -> Second:
    """Solve `problem` to `gap`; files go to `folder`."""
    program = cbc_program()
    assert program is not None
    model, answer = folder / "model.lp", folder / "answer.txt"
    model.write_text(lp_text(problem), encoding="ascii")
    answer.unlink(missing_ok=True)
    steps = ["-ratio", str(gap), "-allow", "1e-9", "-sec", str(limit_s), "-solve", "-solu", str(answer)]
    done = subprocess.run([str(program), str(model), *steps], capture_output=True, text=True, check=True)
    first = answer.read_text().splitlines()[0] if answer.exists() else ""
    if first.startswith("Optimal"):
        return Second("optimal", float(first.split()[-1]))
    if "infeasible" in first.lower() or "infeasible" in done.stdout.lower():
        return Second("infeasible", None)
    raise AssertionError(f"CBC: {first or done.stdout[-500:]}")
