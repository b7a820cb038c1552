"""A plan as plain JSON values: dict, list, str, int, float, bool and None, no NaN, no infinity."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.plan.model import Plan


def plain_plan(plan: Plan) -> dict[str, Any]:
    """Return the plan's values; unknown or unbounded numbers become None, numpy scalars Python's own."""
    return {str(key): plain_value(value) for key, value in plan.to_dict().items()}


def plain_value(value: Any) -> Any:
    """The same for any value: unknown or unbounded numbers become None, dates and decimals text."""
    if isinstance(value, dict):
        return {str(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if hasattr(value, "item"):  # a numpy scalar; numpy itself is not needed to see that
        return plain_value(value.item()) if not isinstance(value, float) else plain_value(float(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, int):
        return int(value)
    return str(value)
