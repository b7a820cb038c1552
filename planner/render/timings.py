"""An answer without the seconds that it took and the moment it was made: equal questions then give equal bytes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.render.model import Answer, Section

KEY = "seconds"  # every answer calls its own wall-clock time so, and nothing else
MADE = "created"


def without_timings(answer: Answer) -> Answer:
    """The same answer: time spent is 0 and the moment null in the data formats; both are absent from the others."""
    values = _zeroed(answer.values)
    return replace(
        answer,
        sections=tuple(_untimed(section) for section in answer.sections),
        front=tuple(_untimed(section) for section in answer.front),
        values={**values, MADE: None} if isinstance(values, dict) and MADE in values else values,
        created=None,
    )


def _untimed(section: Section) -> Section:
    return replace(section, figures=tuple(f for f in section.figures if f.key != KEY))


def _zeroed(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: 0.0 if k == KEY and isinstance(v, (int, float)) else _zeroed(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_zeroed(item) for item in value]
    return value
