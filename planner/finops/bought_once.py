"""What a bill has bought once: no part of the cost that goes on, so a forecast does not expect it again.

One-time purchases (FOCUS ChargeFrequency) are bought once where their SKU was bought in one calendar month alone, such
as a capacity block; a later refund or correction is no purchase, and is left out with it. What is bought in several
months recurs, and forecasts see it: of a service's capacity reservations that is so whatever their sizes. Where the use
of a capacity reservation bears the price of such a purchase, that use ends with it too; commitment discounts are
renewed.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.finops.frames import in_order, rows_of
from planner.finops.provider_days import UNNAMED
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.read.model import Bill

_SQL = Path(__file__).resolve().parent / "data" / "parts" / "bought_once.sql"
_PURCHASES = (
    "SELECT provider, service, sku, MIN(x_day) AS first_day, SUM(cost) AS cost FROM charges "
    "GROUP BY provider, service, sku"
)
_BY_DAY = "SELECT scope, x_day, SUM(cost) AS cost, SUM(used) AS used FROM charges GROUP BY scope, x_day"
NO_END = date(2100, 1, 1)  # ClickHouse knows no moments after 2106
_NAMED = 3


@record(frozen=True)
class Once:
    """A thing that was bought once.

    Attributes:
        day: the first one with a charge of it.
        cost: of the purchase, and of the use that bears its price, in the bill's currency.
    """

    provider: str
    service: str
    day: date
    cost: float


def bought_once(bill: Bill, column: str = "EffectiveCost", end: date = NO_END) -> tuple[Once, ...]:
    """Things that were bought once, the dearest first.

    Args:
        bill: the bill.
        column: `EffectiveCost` or `BilledCost`.
        end: charges from this day on are not looked at.
    """
    rows = rows_of(_ask(bill, once_queries("''", column)[0], end))
    found = [
        Once(
            _name(row.provider),
            _name(row.service),
            date.fromisoformat(str(row.first_day)[:10]),
            float(row.cost),
        )
        for row in rows
    ]
    return tuple(sorted(found, key=lambda one: (-one.cost, one.day)))


def once_by_day(bill: Bill, scope: str, column: str = "EffectiveCost", end: date = NO_END) -> Any:
    """What was bought once by scope and day: frame with scope, x_day, cost, and used, the part that is charged as use.

    Args:
        bill: the bill.
        scope: SQL expression of the scope.
        column: as of `bought_once`.
        end: as of `bought_once`.
    """
    return _ask(bill, once_queries(scope, column)[1], end)


def once_words(things: tuple[Once, ...], least: float, currency: str) -> str:
    """What forecasts do not expect again, in words; empty where nothing of it costs at least `least`."""
    named = [one for one in things if abs(one.cost) >= max(least, 0.01)]
    if not named:
        return ""
    each = (
        f"{one.service} of {one.provider} ({one.cost:,.0f} {currency} in {one.day:%B %Y})"
        for one in named[:_NAMED]
    )
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"what was bought once is in the cost to date, and forecasts do not expect it again: {', '.join(each)}{more}"


def once_queries(scope: str, column: str) -> tuple[str, str]:
    """Both questions to a bill, with the parameter `end`: of `bought_once` and of `once_by_day`."""
    sql = _SQL.read_text(encoding="utf-8").replace("{scope}", scope).replace("{cost}", column)
    return f"{sql}{_PURCHASES}", f"{sql}{_BY_DAY}"


def _ask(bill: Bill, sql: str, end: date) -> Any:
    return in_order(bill.engine.query(sql, {"end": end}))


def _name(value: object) -> str:
    return value if isinstance(value, str) and value else UNNAMED
