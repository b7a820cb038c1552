"""When the plan's money falls due, month by month, and when its cost accrues, day by day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from planner.plan.model import CashMonth, CostLine

QUANTUM = Decimal("0.000001")  # smallest unit of a month's part


def spread_months(lines: Sequence[tuple[CostLine, datetime, datetime]]) -> tuple[CashMonth, ...]:
    """Spread each line evenly over the time it is owed for, by calendar month.

    The last month of a line takes the remainder, so sums are exact.

    Args:
        lines: cost line, from when and until when it accrues (equal moments: due at once).
    """
    months: dict[str, Decimal] = {}
    for line, begin, end in lines:
        left = line.amount_usd
        parts = _shares(begin, end, _next_month)
        for position, (moment, share) in enumerate(parts):
            month = f"{moment:%Y-%m}"
            last = position == len(parts) - 1
            part = left if last else (line.amount_usd * Decimal(repr(share))).quantize(QUANTUM)
            months[month] = months.get(month, Decimal(0)) + part
            left -= part
    return tuple(CashMonth(month, amount) for month, amount in sorted(months.items()))


def spread_days(lines: Sequence[tuple[CostLine, datetime, datetime]]) -> dict[str, dict[str, float]]:
    """Spread each line evenly over the time in which it accrues: US dollars by kind of cost and day (ISO).

    Args:
        lines: cost line, from when and until when it accrues (equal moments: at once).
    """
    by_kind: dict[str, dict[str, float]] = {}
    for line, begin, end in lines:
        days = by_kind.setdefault(line.kind, {})
        for moment, share in _shares(begin, end, _next_day):
            day = f"{moment:%Y-%m-%d}"
            days[day] = days.get(day, 0.0) + float(line.amount_usd) * share
    return by_kind


def _next_month(at: datetime) -> datetime:
    return (_midnight(at).replace(day=1) + timedelta(days=32)).replace(day=1)


def _next_day(at: datetime) -> datetime:
    return _midnight(at) + timedelta(days=1)


def _midnight(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0)


def _shares(
    begin: datetime, end: datetime, following: Callable[[datetime], datetime]
) -> list[tuple[datetime, float]]:
    """Shares of a span of time in the periods it touches, each with its first moment."""
    total = (end - begin).total_seconds()
    if total <= 0:
        return [(begin, 1.0)]
    out = []
    at = begin
    while at < end:
        stop = min(following(at), end)
        out.append((at, (stop - at).total_seconds() / total))
        at = stop
    return out
