"""YAML: the same values as the JSON form, for reading and for tools that take YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from planner.render.plain import plain_plan

if TYPE_CHECKING:
    from planner.plan.model import Plan


def render(plan: Plan, *, width: int, color: bool, verbose: bool) -> str:
    """Render `plan` as YAML with sorted keys and without aliases or Python tags."""
    del width, color, verbose  # data formats are always complete
    return yaml.safe_dump(plain_plan(plan), sort_keys=True, width=100, default_flow_style=False)
