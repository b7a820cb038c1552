"""Small saved plans and states, so that no test waits for an optimisation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

START = "2026-03-02T08:00+00:00"


def plan_values(**changes: Any) -> dict[str, Any]:
    """A plan of 10 h of work (9 h of steps) on two spot nodes at $1 each, deadline after 20 h, as JSON values."""
    line = {
        "purchase_option": "spot", "provider": "aws", "region": "us-east-2", "zone": "", "nodes": 2,
        "instance_type": "p3.2xlarge", "price_per_hour": "1", "usd_per_currency": "1",
    }  # fmt: skip
    parts = {
        "image pull": 0.1,
        "training steps": 9.0,
        "evaluation": 0.5,
        "checkpoints": 0.3,
        "final export": 0.2,
    }
    values = {
        "schema_version": 1, "status": "planned", "kind": "training", "workload": "small",
        "created_at": START, "start": START, "deadline": "2026-03-03T04:00+00:00", "lines": [line],
        "catalog": [{"provider": "aws", "sha256": "0" * 64}],
        "timeline": [{"name": name, "hours": hours, "note": ""} for name, hours in parts.items()],
        "assumptions": [{"key": "restart_time_s", "value": "720"}, {"key": "on_demand_acquire_s", "value": "0"}],
        "performance": {"step_time_s": 3.24}, "risk": None,
    }  # fmt: skip
    return {**values, **changes}


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
