"""Recomputes what a measurement before the purchase is worth, from the figures that the plan states."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from planner.judge.findings import IfStated, Near
from planner.judge.prices import Z80

if TYPE_CHECKING:
    from planner.judge.document import Node

_KEPT = 9.9 / 17.8  # docs/calibration.md: mean errors after and before one measurement


def profiling(plan: Node) -> tuple[float, float] | None:
    """Cost of 100 steps and by how much they narrow the interval of the cost; None where no line says it."""
    speed = plan["performance"]
    if plan["kind"].text() != "training" or speed.is_null or speed["step_time_s"].is_null:
        return None
    line = next(iter(plan["lines"]))
    if line["layout"].is_null:
        return None
    mid, low, high = (speed[f"throughput{name}_per_s"].number() for name in ("", "_low", "_high"))
    if not low > 0 or (high - low) / (2.0 * mid) < 0.1:
        return None
    degrees = (line["layout"][f"{name}_parallel"].number() for name in ("tensor", "pipeline", "context"))
    nodes = max(1, math.ceil(math.prod(degrees) / max(line["accelerators_per_node"].number(), 1.0)))
    start = sum(p["hours"].number() for p in plan["timeline"] if p["id"].text() in ("image_pull", "warm_up"))
    price = float(line["price_per_hour"].money() * line["usd_per_currency"].money())
    cost = nodes * (start + 100.0 * speed["step_time_s"].number() / 3600.0) * price
    costs = (
        cost for plan_line in plan["lines"] for cost in plan_line["costs"] if cost["kind"].text() == "compute"
    )
    compute = sum(float(cost["amount_usd"].money()) for cost in costs)
    stated = [float(a["value"].money()) for a in plan["assumptions"] if a["key"].text() == "whole_run_log_sd"]
    whole_runs = Z80 * (stated[0] if stated else 0.0)  # a measurement of steps leaves this spread as it is
    half = math.log(high / low) / 2.0
    less = math.sqrt(half**2 + whole_runs**2) - math.sqrt((_KEPT * half) ** 2 + whole_runs**2)
    narrows = compute * (mid / low - mid / high) * less / half
    if not plan["risk"].is_null:  # nothing narrows a cost that is owed however long the run takes
        above = plan["risk"]["worst_cost_usd"].money() - plan["total_usd"].money()
        narrows = min(narrows, 2.0 * float(above))
    return (cost, narrows) if narrows >= 5.0 * cost else None


def profile_fields(plan: Node) -> dict[str, IfStated]:
    """What the two fields must say where they are stated."""
    figures = profiling(plan)
    cost, narrows = (None, None) if figures is None else figures
    expected = (("profile_cost_usd", cost), ("profile_narrows_usd", narrows))
    return {name: IfStated(None if value is None else Near(value, 1e-6)) for name, value in expected}
