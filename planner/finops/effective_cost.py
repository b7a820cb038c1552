"""How much of a month's cost is of files that state EffectiveCost; of the others BilledCost is used instead."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from planner.finops.frames import rows_of

if TYPE_CHECKING:
    from planner.finops.engine.base import Parameter
    from planner.finops.read.model import Bill

_BY_SOURCE = (
    "SELECT CAST(x_month AS VARCHAR) AS month, CASE WHEN x_source IN (:sources) THEN 1 ELSE 0 END AS stands_in, "
    "SUM(ABS(BilledCost)) AS billed FROM focus WHERE x_month IN (CAST(:one AS DATE), CAST(:other AS DATE)) "
    "GROUP BY x_month, CASE WHEN x_source IN (:sources) THEN 1 ELSE 0 END"
)


def effective_stated(bill: Bill, months: Sequence[date]) -> dict[date, float | None]:
    """Share (0..1) of billed cost that is of files with an EffectiveCost.

    Args:
        bill: the bill.
        months: first days of one or two months.
    """
    lacking = {one.where for one in bill.findings if one.code == "billed_as_effective"}
    if not lacking:
        return dict.fromkeys(months, 1.0)
    if lacking >= {source.path for source in bill.sources if source.dataset == "CostAndUsage"}:
        return dict.fromkeys(months, 0.0)
    given: dict[str, Parameter] = {"sources": tuple(sorted(lacking)), "one": months[0], "other": months[-1]}
    sums: dict[date, list[float]] = {month: [0.0, 0.0] for month in months}
    for row in rows_of(bill.engine.query(_BY_SOURCE, given)):
        sums[date.fromisoformat(row.month[:10])][int(row.stands_in)] += float(row.billed or 0.0)
    return {
        month: known / (known + lacks) if known + lacks else 1.0 for month, (known, lacks) in sums.items()
    }


def stated_words(share: float | None) -> str:
    """What of the bill has no EffectiveCost."""
    return (
        f"{as_percent(1 - share)} of billed cost has no EffectiveCost"
        if share
        else "the bill has no EffectiveCost"
    )


def as_percent(share: float) -> str:
    """Write a share so that 99.96 % does not read 100 %."""
    text = f"{100 * share:.1f}"
    if text in ("100.0", "0.0") and share not in (0.0, 1.0):
        return "more than 99.9 %" if share > 0.5 else "less than 0.1 %"
    return f"{text} %"
