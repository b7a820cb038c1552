"""FOCUS rows, of the answers that have them: plans and forecasts."""

from __future__ import annotations

from planner.errors import InputError
from planner.render.model import Answer


def render(answer: Answer, *, width: int, color: bool) -> str:
    """Render `answer` as CSV of FOCUS 1.4 rows.

    Raises:
        InputError: the answer has no such rows.
    """
    del width, color  # data formats are always complete
    if answer.focus is None:
        raise InputError("-o focus: is of plans and forecasts; choose another format")
    return answer.focus()
