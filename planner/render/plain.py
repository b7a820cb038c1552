"""A plan as plain JSON values: dict, list, str, int, float, bool and None, no NaN, no infinity."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.plan import Plan


def plain_plan(plan: Plan) -> dict[str, Any]:
    """Return the plan's values; unknown or unbounded numbers become None, numpy scalars Python's own."""
    return {str(key): _plain(value) for key, value in plan.to_dict().items()}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if hasattr(value, "item"):  # a numpy scalar; numpy itself is not needed to see that
        return _plain(value.item()) if not isinstance(value, float) else _plain(float(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int):
        return int(value)
    return str(value)
