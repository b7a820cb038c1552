"""Answers to examples on the bundled catalog: each is worked out once in a run of the tests, not once per worker."""

from __future__ import annotations

import functools
import os
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planner.asked.options import Options
from planner.inputs.load import load_workload
from planner.pipelines.pools import plan_pools
from planner.pipelines.pools_model import Pools
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
    return _worked_out(name, "plan", lambda *question: optimize(*question).plan)  # type: ignore[no-any-return]


@functools.cache
def pools_of(name: str) -> Pools:
    """Its trainer and rollout pools, with the same prices."""
    return _worked_out(name, "pools", plan_pools)  # type: ignore[no-any-return]


def _worked_out(name: str, kind: str, ask: Callable[..., Any]) -> Any:
    """The answer that a worker of this run has written, else that of `ask`, which is written for the others."""
    assert "PLANNER_CATALOG_DIR" not in os.environ, "a test with the mark of another catalog asks for itself"
    kept = _SHARED[0] / f"{name}.{kind}"
    if kept.is_file():
        return pickle.loads(kept.read_bytes())
    answer = ask(load_workload(_EXAMPLES / f"{name}.yaml"), Options(DAY, as_of=DAY.date()))
    own = kept.with_suffix(f".{os.getpid()}")
    own.write_bytes(pickle.dumps(answer))
    own.replace(kept)
    return answer
