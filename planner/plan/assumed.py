"""Figures that a saved plan rests on, read back from its assumptions."""

from __future__ import annotations

import math
from typing import Any


def assumed(plan: Any, key: str, default: float) -> float:
    """The figure `key` of a plan, in its own unit; `default` where the plan names none above 0.

    Args:
        plan: an answer or a saved plan.
        key: of planner/data/assumptions.csv.
        default: for plans of before the figure was counted.
    """
    text = next((item.value for item in plan.assumptions if item.key == key), None)
    try:
        value = default if text is None else float(text)
    except ValueError:
        return default
    return value if math.isfinite(value) and value > 0 else default
