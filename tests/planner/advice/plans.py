"""Small saved plans and states, so that no test waits for an optimisation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner.plan.ids import TimePartId
from planner.plan.model import Assumption, Performance, TimePart
from tests.saved_plans import START, plan_line, saved_plan

HOURS = {
    TimePartId.IMAGE_PULL: 0.1,
    TimePartId.TRAINING_STEPS: 9.0,
    TimePartId.EVALUATION: 0.5,
    TimePartId.CHECKPOINTS: 0.3,
    TimePartId.FINAL_EXPORT: 0.2,
}


def plan_values(**changes: Any) -> dict[str, Any]:
    """A plan of 10 h of work (9 h of steps) on two spot nodes at $1 each, deadline after 20 h, as JSON values."""
    plan = saved_plan(
        plan_line(),
        deadline="2026-03-03T04:00+00:00",
        timeline=tuple(TimePart(part, str(part), hours, "model") for part, hours in HOURS.items()),
        assumptions=assumed(restart_time_s=720, on_demand_acquire_s=0),
        performance=Performance("samples", 100.0, 90.0, 110.0, 3.24, None, None, None, "compute"),
    )
    return {**plan.to_dict(), "start": START, **changes}


def line_values(**changes: Any) -> dict[str, Any]:
    """Its line as JSON values."""
    line = saved_plan(plan_line(**changes)).to_dict()["lines"][0]
    assert isinstance(line, dict)
    return line


def assumed(**values: float) -> tuple[Assumption, ...]:
    """Assumptions of a plan."""
    return tuple(Assumption(key, f"{value:g}", "s", "default") for key, value in values.items())


def state_values(**changes: Any) -> dict[str, Any]:
    """Five hours in, 2 h done, idle, one zone up; on-demand costs $4 a node."""
    values: dict[str, Any] = {
        "version": 1, "kind": "state", "now": 5, "done_hours": 2.0, "mode": "idle", "on_demand_usd_per_hour": 4.0,
        "zones": [{"name": "us-east-2a", "available": True, "since": 1.5}],
    }  # fmt: skip
    values |= changes
    return {key: value for key, value in values.items() if value is not None}


def write(
    folder: Path, plan: dict[str, Any] | None = None, state: dict[str, Any] | None = None
) -> tuple[str, str]:
    """Write both files; returns their paths."""
    plan_file, state_file = folder / "plan.json", folder / "state.json"
    plan_file.write_text(json.dumps(plan if plan is not None else plan_values()), encoding="utf-8")
    state_file.write_text(json.dumps(state if state is not None else state_values()), encoding="utf-8")
    return str(plan_file), str(state_file)
