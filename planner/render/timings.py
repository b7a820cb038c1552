"""An answer without the seconds that it took and the moment it was made: equal questions then give equal bytes.

Answers with a moment are those about bills. Their sums are added up by parallel threads, in an order that changes the
last of sixteen digits; twelve are kept of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.render.model import Answer, Section

KEY = "seconds"  # every answer calls its own wall-clock time so, and nothing else
MADE = "created"


def without_timings(answer: Answer) -> Answer:
    """The same answer: time spent is 0 and the moment null in the data formats; both are absent from the others."""
    values = _zeroed(answer.values)
    if isinstance(values, dict) and MADE in values:
        values = {**_twelve_digits(values), MADE: None}
    return replace(
        answer,
        sections=tuple(_untimed(section) for section in answer.sections),
        front=tuple(_untimed(section) for section in answer.front),
        values=values,
        created=None,
    )


def _untimed(section: Section) -> Section:
    return replace(section, figures=tuple(f for f in section.figures if f.key != KEY))


def _twelve_digits(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _twelve_digits(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_twelve_digits(item) for item in value]
    return round(float(f"{value:.12g}"), 12) if isinstance(value, float) else value


def _zeroed(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: 0.0 if k == KEY and _is_time(v) else _zeroed(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_zeroed(item) for item in value]
    return value


def _is_time(value: Any) -> bool:
    """Whether it is a number of seconds, or none because nothing was measured in this run."""
    return value is None or isinstance(value, (int, float))
