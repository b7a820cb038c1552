"""What a call from Python gives, as the rooms take it: days, months, paths and flags."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path

from planner.asked.options import Options, options_at
from planner.errors import InputError
from planner.inputs.quantities import of_our_time, parse_month

Day = date | str
"""A day: a `date`, a `datetime`, or text such as `2026-11-20`."""


def options_on(as_of: Day | None) -> Options:
    """The options of a question as of a day, by default now."""
    day = day_of(as_of)
    return options_at(None if day is None else datetime.combine(day, time(), tzinfo=UTC))


def day_of(day: Day | None) -> date | None:
    """A day that may be text.

    Raises:
        InputError: the text is not a date, or the date is of no year of our time.
    """
    if day is None:
        return None
    try:
        given = date.fromisoformat(day) if isinstance(day, str) else day
    except ValueError:
        raise InputError(f"{day!r} is not a date; write it as 2026-11-20") from None
    try:
        return of_our_time(given.date() if isinstance(given, datetime) else given)
    except ValueError as error:
        raise InputError(f"a day {error}") from None


def month_of(month: Day | None) -> date | None:
    """The first day of a month, which may be text such as `2026-10`, or be given by one of its days.

    Raises:
        InputError: the text is neither a month nor a date, or of no year of our time.
    """
    if isinstance(month, str) and len(month) != len("2026-11-20"):
        try:
            return parse_month(month)
        except ValueError as error:
            raise InputError(f"month: {error}") from None
    day = day_of(month)
    return None if day is None else day.replace(day=1)


def path_of(path: str | Path | None) -> Path | None:
    """A path that may be text."""
    return None if path is None else Path(path)


def texts_of(paths: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    """One or several paths or names as texts."""
    return (str(paths),) if isinstance(paths, str | Path) else tuple(str(path) for path in paths)
