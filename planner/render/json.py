"""JSON: the machine form of an answer with sorted keys, so that two answers can be compared line by line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from planner.render.plain import plain_value

if TYPE_CHECKING:
    from planner.render.model import Answer


def render(answer: Answer, *, width: int, color: bool) -> str:
    """Render `answer` as JSON; lone surrogates stay escaped, so the text is always valid UTF-8."""
    del width, color  # data formats are always complete
    return json.dumps(plain_value(answer.values), indent=2, sort_keys=True, allow_nan=False) + "\n"
