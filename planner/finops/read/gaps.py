"""Months of which a bill lacks every charge, between months that have them: a file is missing."""

from __future__ import annotations

import itertools
from calendar import monthrange
from collections.abc import Sequence
from datetime import date, timedelta

from planner.finops.read.model import Finding
from planner.finops.read.overlaps import Total

_DENSE = 0.5  # of a month's days have a charge: corrections of months before a bill begins come on a few


def missing_months(totals: Sequence[Total]) -> list[Finding]:
    """Report months without a charge between two that have charges on half of their days or more."""
    days: dict[date, set[date]] = {}
    for total in totals:
        if total.day is not None and total.month is not None:
            days.setdefault(total.month, set()).add(total.day)
    dense = sorted(m for m, own in days.items() if len(own) >= _DENSE * monthrange(m.year, m.month)[1])
    found: list[date] = []
    for before, after in itertools.pairwise(dense):
        month = _next(before)
        while month < after:
            found += [] if month in days else [month]
            month = _next(month)
    if not found:
        return []
    names = ", ".join(f"{month:%B %Y}" for month in found)
    message = (
        f"the bill has no charge in {names}, between months that have them: add the missing file, or read sums over "
        "that time as too low"
    )
    return [Finding("warning", "missing_months", message, by_month=tuple((month, 0.0) for month in found))]


def _next(month: date) -> date:
    return month + timedelta(days=monthrange(month.year, month.month)[1])
