"""When commitments may begin, and the periods of the horizon in which the same ones are active or owned.

Terms begin at the start. With `renewals` those that end within the horizon may also begin at its later years, and any
may begin on the day after an owned commitment ends that they may replace, and again a term later. Nothing of what
begins later is owed yet: it stands for a purchase that will be decided then. So what it leaves unused beyond the
horizon counts only where the question says so (`tail_value`).
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Ints
from planner.commitments.prices import HOURS_PER_YEAR

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from planner.inputs.commit_schema import CommitQuestion


def starts_of(
    question: CommitQuestion, years: int, term_years: int, serves: Collection[str], provider: str
) -> dict[date, int]:
    """Return the first days of a term, each with its first hour of the horizon; years have 8,760 hours.

    It may replace what is owned for a pool that it serves, and plans in dollars of its provider.

    Args:
        question: the question.
        years: length of the horizon.
        term_years: length of the term.
        serves: pools that it covers.
        provider: who sells it.
    """
    out = {question.start: 0}
    if not question.options.renewals:
        return out
    for year in range(1, years - term_years + 1):
        out[in_years(question.start, year)] = year * HOURS_PER_YEAR
    for own in question.commitments:
        mine = own.pool in serves if own.pool is not None else own.provider == provider
        for day, hour in _after(question, years, own.expires, term_years) if mine else ():
            out.setdefault(day, hour)
    return out


def edges_of(question: CommitQuestion, years: int) -> Ints:
    """Return the first hour of each period: years, and what begins or ends with owned commitments."""
    hours = {hour for own in question.commitments for _, hour in _after(question, years, own.expires, 1)}
    return np.array(sorted({*range(0, years * HOURS_PER_YEAR, HOURS_PER_YEAR), *hours}), dtype=np.int64)


def active_in(edges: Ints, first: int, term_years: int) -> tuple[int, ...]:
    """Return the periods of a term that begins in an hour."""
    inside = (edges >= first) & (edges < first + term_years * HOURS_PER_YEAR)
    return tuple(np.flatnonzero(inside).tolist())


def parts_of(hours: Ints, edges: Ints, year: int) -> Iterator[tuple[int, slice, float]]:
    """Yield each period of a year, the rows of the year that tell of it, and how many hours each stands for.

    They are the hours within the period, else those of the period that holds the nearest one: hours that nobody gave
    are like those given closest to them.

    Args:
        hours: given or drawn of the year, ascending, shape `(n,)`.
        edges: first hour of each period of the horizon.
        year: 0, 1, ...
    """
    begin, end = year * HOURS_PER_YEAR, (year + 1) * HOURS_PER_YEAR
    inside = np.flatnonzero((edges >= begin) & (edges < end))
    first = edges[inside]
    after = np.append(first[1:], end)
    low, high = np.searchsorted(hours, first), np.searchsorted(hours, after)
    before, behind = np.maximum(low - 1, 0), np.minimum(high, len(hours) - 1)
    later = (low == 0) | ((high < len(hours)) & (hours[behind] - after + 1 < first - hours[before]))
    like = np.searchsorted(first, hours[np.where(later, behind, before)], side="right") - 1
    like = np.where(low < high, np.arange(len(first)), like)
    for number, length, own in zip(inside.tolist(), (after - first).tolist(), like.tolist(), strict=True):
        yield number, slice(low[own], high[own]), length / (high[own] - low[own])


def in_years(day: date, years: int) -> date:
    """Return the same day some years later; 29 February becomes 28."""
    try:
        return day.replace(year=day.year + years)
    except ValueError:
        return day.replace(year=day.year + years, day=28)


def _after(
    question: CommitQuestion, years: int, expires: date, step_years: int
) -> Iterator[tuple[date, int]]:
    """Yield the day after an end within the horizon, and the same day of later years, with their hours."""
    day = expires + timedelta(days=1)
    first = (day - question.start).days * 24
    for more in range(0, years, step_years) if first > 0 else ():
        if first + more * HOURS_PER_YEAR < years * HOURS_PER_YEAR:
            yield in_years(day, more), first + more * HOURS_PER_YEAR
