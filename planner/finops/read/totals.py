"""What the files of a bill charge by month and currency, and what that allows."""

from __future__ import annotations

import itertools
from calendar import monthrange
from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.finops.frames import rows_of
from planner.finops.read.columns import COST
from planner.finops.read.model import Finding
from planner.finops.read.overlaps import Total
from planner.finops.read.select import Group, text
from planner.inputs.quantities import is_of_our_time
from planner.render.currency import UNKNOWN_CURRENCY

if TYPE_CHECKING:
    from planner.finops.engine.base import Engine

_DENSE = 0.5  # of a month's days have a charge: corrections of months before a bill begins come on a few


def read_totals(engine: Engine) -> list[Total]:
    """Return what each file charges by day and currency, in one pass over the bill.

    Raises:
        InputError: a charge's day is none of a calendar.
    """
    frame = engine.query(
        "SELECT x_source, CAST(x_day AS VARCHAR) AS day, BillingCurrency, COUNT(*) AS n, "
        "SUM(BilledCost) AS billed "
        "FROM focus GROUP BY x_source, x_day, BillingCurrency ORDER BY x_source, x_day, BillingCurrency"
    )
    out = []
    for source, day, currency, rows, billed in rows_of(frame):
        when = _day(str(source), day) if isinstance(day, str) else None
        code = currency if isinstance(currency, str) else None
        cost = float(billed) if billed == billed else 0.0
        out.append(Total(str(source), when, code, int(rows), cost))
    return out


def _day(source: str, day: str) -> date:
    try:
        return date.fromisoformat(day[:10])
    except ValueError:  # typed files may hold infinity, or the year 12026
        raise InputError(
            f"{source}: ChargePeriodStart: {day} is no day of a bill; correct the export"
        ) from None


def rows_beside(engine: Engine, read: Sequence[Group]) -> dict[str, int]:
    """Rows of the files or tables that hold no costs, as they are in their dataset's view."""
    out: dict[str, int] = {}
    for dataset in sorted({group.dataset for group in read} - {COST}):
        frame = engine.query(f"SELECT x_source, COUNT(*) AS n FROM {dataset} GROUP BY x_source", {})
        out |= {str(source): int(n) for source, n in zip(frame["x_source"], frame["n"], strict=True)}
    return out


def charges_of_no_month(totals: Sequence[Total]) -> list[Finding]:
    """Report charges that belong to no month, or to one of no year of our time."""
    far = [total for total in totals if total.month is not None and not is_of_our_time(total.month)]
    lost = [total for total in totals if total.month is None]
    return [*_far(far), *_lost(lost)]


def _far(far: Sequence[Total]) -> list[Finding]:
    if not far:
        return []
    rows, cost = sum(total.rows for total in far), sum(total.billed for total in far)
    days = ", ".join(sorted({str(total.day or total.month) for total in far})[:3])
    message = (
        f"{rows:,} {'row' if rows == 1 else 'rows'} ({cost:,.2f} billed) of {days}: no bill is of such a year, so "
        "they are in no month's figures and no forecast; give them their day"
    )
    return [Finding("error", "no_month", message, far[0].source, rows, cost)]


def _lost(lost: Sequence[Total]) -> list[Finding]:
    if not lost:
        return []
    rows, cost = sum(total.rows for total in lost), sum(total.billed for total in lost)
    many = f"{rows:,} rows ({cost:,.2f} billed) have no ChargePeriodStart and are"
    one = f"1 row ({cost:,.2f} billed) has no ChargePeriodStart and is"
    message = f"{one if rows == 1 else many} in no month's figures: a line of totals should be; give others their day"
    return [Finding("error", "no_month", message, lost[0].source, rows, cost)]


def choose_currency(totals: Sequence[Total], asked: str | None) -> tuple[str, list[Finding]]:
    """Return the bill's currency, and what is left out for it.

    Args:
        totals: of the whole bill.
        asked: the currency to keep, `XXX` for rows that name none; what a bill is in that names none at all.

    Raises:
        InputError: nothing is billed in what was asked for, or several currencies and none asked for.
    """
    sums: dict[str, list[float]] = {}
    for total in totals:
        entry = sums.setdefault(total.currency or "", [0, 0.0])
        entry[0] += total.rows
        entry[1] += total.billed
    named = {code: entry for code, entry in sums.items() if code}
    shown = ", ".join(
        f"{code} ({int(n):,} rows, {cost:,.2f} billed)" for code, (n, cost) in sorted(named.items())
    )
    if asked is not None and (named or asked == UNKNOWN_CURRENCY):
        if asked not in named and not (asked == UNKNOWN_CURRENCY and "" in sums):
            raise InputError(
                f"--currency {asked}: no row is billed in it; there are {shown or 'no currencies'}"
            )
        out = []
        for code, (rows, cost) in sums.items():
            if (code or UNKNOWN_CURRENCY) != asked:
                counted = f"{int(rows):,} {'row' if rows == 1 else 'rows'}"
                named_as = f"{counted} in {code or 'no currency'} ({cost:,.2f} billed)"
                message = f"{named_as} {'is' if rows == 1 else 'are'} left out by --currency {asked}"
                out.append(Finding("warning", "other_currency", message, "", int(rows), None))
        return asked, out
    if len(named) > 1:
        most = max(sorted(named), key=lambda code: named[code])
        raise InputError(
            f"the bill mixes currencies: {shown}; amounts are never added across currencies: choose one with "
            f"--currency {most}, which most rows are in, or convert with --rates FILE --in {most}"
        )
    if not named:
        message = "no row names its BillingCurrency; "
        message += (
            f"all are taken as {asked}, as --currency says" if asked else "amounts are shown without one"
        )
        return asked or UNKNOWN_CURRENCY, [Finding("warning", "no_currency", message)]
    code = next(iter(named))
    if "" in sums and sums[""][0]:
        rows, cost = sums[""]
        many = f"{int(rows):,} rows ({cost:,.2f} billed) name no BillingCurrency and are"
        one = f"1 row ({cost:,.2f} billed) names no BillingCurrency and is"
        message = (
            f"{one if rows == 1 else many} left out of what is in {code}: "
            f"correct the export, or look at them alone with --currency {UNKNOWN_CURRENCY}"
        )
        return code, [Finding("error", "no_currency", message, "", int(rows), cost)]
    return code, []


def only_currency(totals: Sequence[Total], chosen: str) -> tuple[list[Total], str]:
    """The totals in one currency, and the SQL condition that keeps its rows; empty where all are kept.

    Args:
        totals: of the whole bill.
        chosen: what `choose_currency` returned.
    """
    if not any(total.currency for total in totals):
        return list(totals), ""
    if chosen == UNKNOWN_CURRENCY:
        return [total for total in totals if not total.currency], "COALESCE(\"BillingCurrency\", '') = ''"
    kept = [total for total in totals if total.currency == chosen]
    return kept, f'"BillingCurrency" = {text(chosen)}' if len(kept) < len(totals) else ""


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


def check_month(months: Sequence[date], month: date | None, findings: Sequence[Finding] = ()) -> None:
    """Refuse a month that the bill does not have, and a bill none of whose days can be read.

    Args:
        months: those of the bill.
        month: the one asked for.
        findings: of the files, what could not be read among them.
    """
    unread = next(
        (one for one in findings if one.code == "bad_cells" and ": must be a moment" in one.message), None
    )
    if unread and not months:
        raise InputError(f"no day of the bill can be read: {unread.message}")
    if month is None or month.replace(day=1) in months:
        return
    shown = ", ".join(f"{found:%Y-%m}" for found in months) or "no month at all"
    raise InputError(f"--month {month:%Y-%m}: the bill has no charges in it; it has {shown}")
