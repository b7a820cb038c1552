"""YAML: the same values as the JSON form, for reading and for tools that take YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from planner.render.plain import plain_value

if TYPE_CHECKING:
    from planner.render.model import Answer


def render(answer: Answer, *, width: int, color: bool) -> str:
    """Render `answer` as YAML with sorted keys and without aliases or Python tags."""
    del width, color  # data formats are always complete
    return yaml.safe_dump(plain_value(answer.values), sort_keys=True, width=100, default_flow_style=False)
