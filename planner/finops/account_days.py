"""Days with use of each billing account: what one payer's file lacks must not hide behind those of the others.

An account counts as a provider does (`planner.finops.provider_days`), among those of its provider. A bill of one
account is not asked.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from planner.finops.frames import rows_of
from planner.finops.provider_days import UNNAMED, missing_words, months_around, provider_days

if TYPE_CHECKING:
    from planner.finops.read.model import Bill

_SQL = Path(__file__).resolve().parent / "data" / "account_days.sql"
_MOST = 50  # accounts of a provider; of more each is a small part


def account_gaps(bill: Bill, months: Collection[date] = ()) -> str:
    """Steady and material billing accounts without use on days of months, in words; empty where there are none.

    Args:
        bill: the bill.
        months: first days of the months; empty: the newest with use beyond its first day.
    """
    ends = bill.engine.query("SELECT MIN(BillingAccountId) AS low, MAX(BillingAccountId) AS high FROM focus")
    low, high = ends["low"].iloc[0], ends["high"].iloc[0]
    if not bill.months or not isinstance(low, str) or low == high:
        return ""
    asked = sorted(months or bill.months[-1:])
    _, _, last = months_around(asked[-1])
    frame = bill.engine.query(_SQL.read_text(encoding="utf-8"), {"first": bill.months[0], "next": last})
    used: dict[str, dict[str, dict[date, float]]] = {}
    for provider, account, day, cost in rows_of(frame):
        name = provider if isinstance(provider, str) else UNNAMED
        label = f"billing account {account if isinstance(account, str) else UNNAMED} of {name}"
        own = used.setdefault(name, {}).setdefault(label, {})
        own[date.fromisoformat(str(day)[:10])] = float(cost) if cost == cost else 0.0
    days = [day for accounts in used.values() for own in accounts.values() for day in own]
    if not months and days:
        asked = [(max(days) - timedelta(1)).replace(day=1)]
    found = [
        missing_words(lacking)
        for month in asked
        for accounts in used.values()
        if len(accounts) <= _MOST
        for lacking in provider_days(accounts, [month]).values()
    ]
    return "; ".join(dict.fromkeys(filter(None, found)))
