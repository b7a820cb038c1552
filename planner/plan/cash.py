"""When the plan's money falls due, month by month."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from planner.plan.model import CashMonth, CostLine


def spread_months(
    lines: Sequence[tuple[CostLine, datetime, datetime]], *, quantum: Decimal = Decimal("0.000001")
) -> tuple[CashMonth, ...]:
    """Spread each line evenly over the time it is owed for, by calendar month.

    Args:
        lines: cost line, from when and until when it accrues (equal moments: due at once).
        quantum: smallest unit of a month's part; the last month of a line takes the remainder, so sums are exact.
    """
    months: dict[str, Decimal] = {}
    for line, begin, end in lines:
        left = line.amount_usd
        parts = _shares(begin, end)
        for position, (month, share) in enumerate(parts):
            last = position == len(parts) - 1
            part = left if last else (line.amount_usd * Decimal(repr(share))).quantize(quantum)
            months[month] = months.get(month, Decimal(0)) + part
            left -= part
    return tuple(CashMonth(month, amount) for month, amount in sorted(months.items()))


def _shares(begin: datetime, end: datetime) -> list[tuple[str, float]]:
    total = (end - begin).total_seconds()
    if total <= 0:
        return [(f"{begin:%Y-%m}", 1.0)]
    out = []
    at = begin
    while at < end:
        following = (
            at.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=32)
        ).replace(day=1)
        stop = min(following, end)
        out.append((f"{at:%Y-%m}", (stop - at).total_seconds() / total))
        at = stop
    return out
