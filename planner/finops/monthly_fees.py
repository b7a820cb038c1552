"""Monthly fees that a running month does not have yet: a bill may bring them at its end, dated on its first day.

Support plans of AWS are an example: what exceeds their minimum is billed at the end of the month
(repost.aws/knowledge-center/support-billing). Such a fee may also have ended, so it is said and not forecast.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from planner.finops.frames import in_order, rows_of
from planner.finops.provider_days import UNNAMED

if TYPE_CHECKING:
    from planner.finops.read.model import Bill

_SQL = Path(__file__).resolve().parent / "data" / "monthly_fees.sql"
_LEAST_RATIO = 0.001  # of the month before: less does not show in a forecast
_NAMED = 3


def fees_to_come(bill: Bill, last_day: date) -> str:
    """Services charged by the month in both months before and not in the running one, in words; empty without any.

    Args:
        bill: the bill.
        last_day: its last day with use; the last day of a month leaves nothing to come.
    """
    end = (last_day.replace(day=1) + timedelta(days=31)).replace(day=1)
    if last_day + timedelta(days=1) == end:
        return ""
    start = last_day.replace(day=1)
    before = (start - timedelta(days=1)).replace(day=1)
    first = (before - timedelta(days=1)).replace(day=1)
    given = {"first": first, "before": before, "start": start, "end": end}
    rows = list(rows_of(in_order(bill.engine.query(_SQL.read_text(encoding="utf-8"), given))))
    least = _LEAST_RATIO * sum(float(row.all_before) for row in rows)
    missing = [
        row
        for row in rows
        if not row.fees and float(row.fee_first) > 0 and float(row.fee_before) >= max(least, 0.01)
    ]
    if not missing:
        return ""
    missing.sort(key=lambda row: -float(row.fee_before))
    named = ", ".join(
        f"{_name(row.service)} of {_name(row.provider)} ({row.fee_before:,.0f} {bill.currency} in {before:%B})"
        for row in missing[:_NAMED]
    )
    more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
    is_one = len(missing) == 1
    return (
        f"{named}{more} {'is' if is_one else 'are'} charged by the month and not in {start:%B %Y} yet: forecasts leave "
        f"{'it' if is_one else 'them'} out"
    )


def _name(value: object) -> str:
    return value if isinstance(value, str) else UNNAMED
