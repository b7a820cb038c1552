"""Plans of the examples on the bundled catalog: each is worked out once in a run of the tests, not once per worker."""

from __future__ import annotations

import functools
import os
import pickle
from datetime import UTC, datetime
from pathlib import Path

from planner.asked.options import Options
from planner.inputs.load import load_workload
from planner.plan.model import Plan
from planner.workloads.answer import optimize

DAY = datetime(2026, 11, 20, tzinfo=UTC)
_EXAMPLES = Path(__file__).parent.parent / "examples"
_SHARED: list[Path] = []


def share(folder: Path) -> None:
    """Keep plans in a folder that all workers of this run have, and no other run."""
    folder.mkdir(exist_ok=True)
    _SHARED[:] = [folder]


@functools.cache
def plan_of(name: str) -> Plan:
    """The plan of `examples/NAME.yaml` with the prices of 20 November 2026; for tests of what is made of a plan."""
    assert "PLANNER_CATALOG_DIR" not in os.environ, "a test with the mark of another catalog asks for itself"
    kept = _SHARED[0] / f"{name}.pickle"
    if kept.is_file():
        return pickle.loads(kept.read_bytes())  # type: ignore[no-any-return]  # written by a worker of this run
    options = Options(DAY, as_of=DAY.date())
    plan = optimize(load_workload(_EXAMPLES / f"{name}.yaml"), options).plan
    own = kept.with_suffix(f".{os.getpid()}")
    own.write_bytes(pickle.dumps(plan))
    own.replace(kept)
    return plan
