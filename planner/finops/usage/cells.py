"""Cells of usage exports: numbers and moments, or an error that names the place."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any

from planner.errors import InputError

_LAST_YEAR = 9998  # the day after must be one of the calendar


def number(value: Any, place: str) -> float:
    """A number from 0 up; empty is 0.

    Raises:
        InputError: it is none.
    """
    text = str(value if value is not None else "").strip()
    if not text:
        return 0.0
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found >= 0):
        raise InputError(f"{place}: {text[:40]!r} is not a number from 0 up")
    return found


def moment(value: Any, place: str) -> datetime:
    """A moment, ISO 8601 or seconds since 1970; without a zone it is UTC.

    Raises:
        InputError: it is none.
    """
    text = str(value).strip()
    try:
        if text.replace(".", "", 1).isdigit() and len(text) >= 9:
            seconds = float(text)
            return datetime.fromtimestamp(seconds / 1000 if seconds > 1e11 else seconds, UTC)
        found = datetime.fromisoformat(text)
        found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        if found.year > _LAST_YEAR:
            raise ValueError(text)
    except (ValueError, OverflowError, OSError):
        raise InputError(f"{place}: {text[:40]!r} is not a timestamp like 2026-10-03T12:00:00") from None
    return found


def day(value: Any, place: str) -> date:
    """A day.

    Raises:
        InputError: it is none.
    """
    return moment(value, place).date()
