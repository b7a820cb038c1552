"""A fleet with the limits that an explanation names moved, so that solving it again proves that they are enough."""

from __future__ import annotations

from dataclasses import replace

from planner.fleet.question import SHARES, FleetInput
from planner.fleet.relaxation import FleetExplanation


def relaxed(fleet: FleetInput, explanation: FleetExplanation) -> FleetInput:
    """Return `fleet` with the explanation's relaxations applied (a hair more, against rounding)."""
    changes: dict[str, object] = {}
    quota = fleet.quota_limit.copy()
    names, uses = list(fleet.quota_names), list(fleet.uses)
    for item in explanation.relaxations:
        if any(item.limit_name == use.limit_name for use in fleet.uses):
            moved = {(item.limit_name, item.member): item.used * (1 + 1e-12)}
            uses = [replace(use, limit=moved.get((use.limit_name, use.member), use.limit)) for use in uses]
        elif item.limit_name == "quota_limit":
            quota[names.index(item.member) if item.member in names else int(item.member)] = item.used
        elif item.limit_name in ("required_throughput", "min_total_memory_gib"):
            changes[item.limit_name] = max(item.used * (1 - 1e-12), 1e-12)
        elif item.limit_name == "spot_workers":  # idle ones: any share above 0 allows them
            changes.setdefault("max_spot_share", 1e-6)
        elif item.limit_name in ("max_regions", "max_total_units"):
            changes[item.limit_name] = round(item.used)
        else:
            value = item.used * (1 + 1e-12)
            value = min(value, 1.0) if item.limit_name in SHARES else value
            previous = changes.get(item.limit_name)
            changes[item.limit_name] = max(value, previous) if isinstance(previous, float) else value
    return replace(fleet, quota_limit=quota, uses=tuple(uses), **changes)  # type: ignore[arg-type]
