"""Option types shared by commands: durations, ratios and dates, with messages that name the remedy."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import Any

import click

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class Seconds(click.ParamType[float]):
    """A duration such as `30s`, `2m` or `1h`, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds, or fail with an example."""
        if isinstance(value, int | float):
            return float(value)
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(s|m|min|h|)\s*", str(value))
        if not match or float(match[1]) <= 0:
            self.fail(f"{value!r} is not a duration; write it as 30s, 2m or 1h", param, ctx)
        return float(match[1]) * _SECONDS[match[2]]


class RatioOption(click.ParamType[float]):
    """A ratio such as `0.1%` or `0.001`."""

    name = "ratio"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return a ratio of at least 0 and below 1."""
        text = str(value).strip()
        try:
            ratio = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
        except ValueError:
            ratio = -1.0
        if not 0.0 <= ratio < 1.0:
            self.fail(f"{value!r} is not a ratio; write it as 0.1% or 0.001", param, ctx)
        return ratio


class DayOption(click.ParamType[datetime]):
    """A date `YYYY-MM-DD`, as the first moment of that day in UTC."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return an aware datetime."""
        if isinstance(value, datetime):
            return value
        try:
            return datetime.combine(date.fromisoformat(str(value)), time(), tzinfo=UTC)
        except ValueError:
            self.fail(f"{value!r} is not a date; write it as 2026-11-20", param, ctx)
