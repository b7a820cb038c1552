"""Rows whose cost is not known, or whose kind of charge is not: of which providers and months they are.

A share of rows sends nobody to the file that has to be mended, and a forecast or budget has no other place to say it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from planner.finops.frames import in_order, rows_of
from planner.finops.provider_days import UNNAMED, months_around
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.read.model import Bill

# columns of the query: rows without a cost, and what those without a kind cost; by the cost that is asked for
_COLUMNS = {
    None: ("no_cost", "kindless_effective"),
    "EffectiveCost": ("untaxed_no_effective", "kindless_effective"),
    "BilledCost": ("untaxed_no_billed", "kindless_billed"),
}
_SQL = Path(__file__).resolve().parent / "data" / "unclear_rows.sql"
_NAMED = 3


@record(frozen=True)
class UnclearRows:
    """Rows of one provider and month.

    Attributes:
        month: its first day.
        unknown: rows without a cost.
        kindless: rows whose ChargeCategory is missing or none of FOCUS's.
        kindless_cost: what these cost, in the bill's currency.
    """

    provider: str
    month: date
    unknown: int
    kindless: int
    kindless_cost: float


def unclear_rows(bill: Bill, months: Collection[date], column: str | None = None) -> tuple[UnclearRows, ...]:
    """Such rows from the first to the last of the months, by provider and month.

    Args:
        bill: the bill.
        months: first days of the months.
        column: `EffectiveCost` or `BilledCost`: rows without it that are no tax; else rows without either.
    """
    if not months:
        return ()
    _, end, _ = months_around(max(months))
    frame = in_order(bill.engine.query(_SQL.read_text(encoding="utf-8"), {"first": min(months), "next": end}))
    unknown, cost = _COLUMNS[column]
    return tuple(
        UnclearRows(
            row.provider if isinstance(row.provider, str) else UNNAMED, date.fromisoformat(str(row.month)[:10]),
            int(getattr(row, unknown)), int(row.kindless), float(getattr(row, cost)),
        )
        for row in rows_of(frame)
    )  # fmt: skip


def unclear_words(bill: Bill, column: str) -> list[str]:
    """What forecasts and budgets do not know of a bill's rows, in words.

    Args:
        bill: the bill.
        column: `EffectiveCost` or `BilledCost`.
    """
    rows = unclear_rows(bill, bill.months, column)
    out = []
    if unknown := _whose([(one, one.unknown) for one in rows], _between):
        out.append(f"{unknown} without {column}: what they cost is not known and not counted")
    if kindless := _whose([(one, one.kindless) for one in rows], _between):
        cost = sum(one.kindless_cost for one in rows)
        out.append(
            f"{kindless} without a known ChargeCategory: what they cost ({cost:,.0f} {bill.currency}) is counted, "
            "though it may be tax"
        )
    return out


def month_words(rows: Sequence[UnclearRows], month: date) -> dict[str, str]:
    """Whose rows of a month the checks `unknown_cost` and `no_category` found; empty where there are none."""
    own = [one for one in rows if one.month == month]
    unknown = _whose([(one, one.unknown) for one in own], lambda _: "")
    kindless = _whose([(one, one.kindless) for one in own], lambda _: "")
    return {"unknown": f": {unknown}" * bool(unknown), "kindless": f": {kindless}" * bool(kindless)}


def _whose(counts: Sequence[tuple[UnclearRows, int]], when: Callable[[Sequence[date]], str]) -> str:
    """`5 rows of AWS (October 2026)` of the providers with most; empty without rows."""
    sums: dict[str, tuple[int, list[date]]] = {}
    for one, count in counts:
        if count:
            before, months = sums.get(one.provider, (0, []))
            sums[one.provider] = (before + count, [*months, one.month])
    most = sorted(sums.items(), key=lambda own: (-own[1][0], own[0]))
    named = [
        f"{count:,} row{'s' * (count > 1)} of {name}{when(months)}" for name, (count, months) in most[:_NAMED]
    ]
    more = sum(count for _, (count, _) in most[_NAMED:])
    return ", ".join(named) + (f" and {more:,} of others" if more else "")


def _between(months: Sequence[date]) -> str:
    first, last = min(months), max(months)
    return f" ({first:%B %Y})" if first == last else f" ({first:%B %Y} to {last:%B %Y})"
