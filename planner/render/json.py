"""JSON: the whole plan with sorted keys, so that two plans can be compared line by line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from planner.render.plain import plain_plan

if TYPE_CHECKING:
    from planner.plan.model import Plan


def render(plan: Plan, *, width: int, color: bool, verbose: bool) -> str:
    """Render `plan` as JSON; lone surrogates stay escaped, so the text is always valid UTF-8."""
    del width, color, verbose  # data formats are always complete
    return json.dumps(plain_plan(plan), indent=2, sort_keys=True, allow_nan=False) + "\n"
