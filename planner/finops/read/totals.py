"""What the files of a bill charge by month and currency, and what that allows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.finops.read.model import UNKNOWN_CURRENCY, Finding
from planner.finops.read.overlaps import Total

if TYPE_CHECKING:
    from planner.finops.engine.base import Engine


def read_totals(engine: Engine) -> list[Total]:
    """Return what each file charges by day and currency, in one pass over the bill."""
    frame = engine.query(
        "SELECT x_source, CAST(x_day AS VARCHAR) AS day, BillingCurrency, COUNT(*) AS n, "
        "SUM(BilledCost) AS billed "
        "FROM focus GROUP BY x_source, x_day, BillingCurrency ORDER BY x_source, x_day, BillingCurrency"
    )
    out = []
    for source, day, currency, rows, billed in frame.itertuples(index=False):
        when = date.fromisoformat(str(day)[:10]) if isinstance(day, str) else None
        code = currency if isinstance(currency, str) else None
        cost = float(billed) if billed == billed else 0.0
        out.append(Total(str(source), when, code, int(rows), cost))
    return out


def charges_of_no_month(totals: Sequence[Total]) -> list[Finding]:
    """Report charges that belong to no month."""
    lost = [total for total in totals if total.month is None]
    if not lost:
        return []
    rows, cost = sum(total.rows for total in lost), sum(total.billed for total in lost)
    message = f"{rows:,} rows ({cost:,.2f} billed) have no ChargePeriodStart and are in no month's figures"
    return [Finding("error", "no_month", message, lost[0].source, rows, cost)]


def choose_currency(totals: Sequence[Total], asked: str | None) -> tuple[str, list[Finding]]:
    """Return the bill's currency, and what is left out for it."""
    sums: dict[str, list[float]] = {}
    for total in totals:
        entry = sums.setdefault(total.currency or "", [0, 0.0])
        entry[0] += total.rows
        entry[1] += total.billed
    named = {code: entry for code, entry in sums.items() if code}
    shown = ", ".join(
        f"{code} ({int(n):,} rows, {cost:,.2f} billed)" for code, (n, cost) in sorted(named.items())
    )
    if asked is not None:
        if asked not in named:
            raise InputError(
                f"--currency {asked}: no row is billed in it; there are {shown or 'no currencies'}"
            )
        out = []
        for code, (rows, cost) in sums.items():
            if code != asked:
                named_as = f"{int(rows):,} rows in {code or 'no currency'} ({cost:,.2f} billed)"
                message = f"{named_as} are left out by --currency {asked}"
                out.append(Finding("warning", "other_currency", message, "", int(rows), None))
        return asked, out
    if len(named) > 1:
        raise InputError(
            f"the bill mixes currencies: {shown}; amounts are never added across currencies: "
            f"choose one with --currency {min(named)}"
        )
    if not named:
        message = "no row names its BillingCurrency; amounts are shown without one"
        return UNKNOWN_CURRENCY, [Finding("warning", "no_currency", message)]
    code = next(iter(named))
    if "" in sums and sums[""][0]:
        rows, cost = sums[""]
        message = f"{int(rows):,} rows name no BillingCurrency and are taken as {code}"
        return code, [Finding("warning", "no_currency", message, "", int(rows), cost)]
    return code, []


def check_month(months: Sequence[date], month: date | None) -> None:
    """Refuse a month that the bill does not have."""
    if month is None or month.replace(day=1) in months:
        return
    shown = ", ".join(f"{found:%Y-%m}" for found in months) or "no month at all"
    raise InputError(f"--month {month:%Y-%m}: the bill has no charges in it; it has {shown}")
