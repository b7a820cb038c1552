"""The same charges delivered twice: snapshots of one month, and exports that overlap."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.finops.frames import rows_of
from planner.finops.read.model import Finding
from planner.finops.read.select import quote, text
from planner.inputs.quantities import is_of_our_time
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.engine.base import Engine

# Exports name the folder of each delivery after its moment: 20261101T041500Z, 2026-11-01T04:15:00.000Z-<id>.
_MOMENT = re.compile(r"(20\d{2})-?(\d{2})-?(\d{2})T(\d{2})[:\-_]?(\d{2})[:\-_]?(\d{2})")
# What makes two rows the same charge. Names and descriptions that change with a re-statement stay out,
# and what only later versions of FOCUS have: the same month exported in two versions is the same charges.
_KEY = (
    *("ChargePeriodStart", "ChargePeriodEnd", "BillingAccountId", "SubAccountId", "ResourceId", "SkuPriceId"),
    *("SkuId", "ChargeCategory", "ChargeDescription", "CommitmentDiscountId", "CommitmentDiscountStatus"),
    *("BilledCost", "EffectiveCost", "ListCost", "PricingQuantity", "ConsumedQuantity", "Tags"),
)
_AMOUNTS = frozenset(("BilledCost", "EffectiveCost", "ListCost", "PricingQuantity", "ConsumedQuantity"))
_SAMPLED_ROWS = (
    2_000_000  # rows compared; of larger bills the same sample of charges is taken from every file
)
_MANY = 0.5
_TWIN_ROWS = 300_000  # rows looked at for charges that stand in one file more than once
# A few cheap charges alike are usual: in real bills they are below 0.1 % of cost.
_TWIN_SHARE = 0.10
_FEW_ROWS = 10  # of a day: fewer alike prove nothing


@record(frozen=True)
class Total:
    """One file's charges of one day in one currency; `day` and `currency` are None where rows have none."""

    source: str
    day: date | None
    currency: str | None
    rows: int
    billed: float

    @property
    def month(self) -> date | None:
        """First day of the month."""
        return None if self.day is None else self.day.replace(day=1)


def superseded(totals: Iterable[Total]) -> tuple[dict[tuple[str, date], str], list[Finding]]:
    """Tell which files' months a later delivery of the same export replaces.

    Only the moment in a folder's or file's name tells; without one nothing is replaced.

    Returns:
        (file, month) -> the file that replaces it, and the findings.
    """
    deliveries: dict[tuple[str, date], dict[str, list[Total]]] = {}
    for total in totals:
        found = _MOMENT.search(total.source)
        if found and total.month is not None:
            series = str(Path(total.source[: found.start()] + "*").parent)
            moment = "".join(found.groups())
            deliveries.setdefault((series, total.month), {}).setdefault(moment, []).append(total)
    out: dict[tuple[str, date], str] = {}
    findings = []
    for (series, month), by_moment in sorted(deliveries.items()):
        latest = max(by_moment)
        old = [total for moment, found in by_moment.items() if moment != latest for total in found]
        out |= {(total.source, month): by_moment[latest][0].source for total in old}
        if old:
            rows, cost = sum(total.rows for total in old), sum(total.billed for total in old)
            message = (
                f"{series}: {month:%Y-%m} was delivered {len(by_moment)} times; the latest, "
                f"{by_moment[latest][0].source}, counts and {rows:,} rows of earlier ones do not"
            )
            findings.append(Finding("info", "superseded", message, series, rows, cost))
    return out, findings


def superseded_sql(replaced: Mapping[tuple[str, date], str]) -> str:
    """Return the condition that leaves replaced months out; empty where there are none."""
    by_source: dict[str, list[date]] = {}
    for source, month in sorted(replaced):
        by_source.setdefault(source, []).append(month)
    parts = []
    for source, months in by_source.items():
        days = ", ".join(f"CAST('{month.isoformat()}' AS DATE)" for month in months)
        month_sql = "CAST(DATE_TRUNC('month', \"ChargePeriodStart\") AS DATE)"
        parts.append(f"NOT (x_source = {text(source)} AND COALESCE({month_sql} IN ({days}), FALSE))")
    return " AND ".join(parts)


def find_repeats(engine: Engine, totals: Sequence[Total]) -> list[Finding]:
    """Report charges that stand in more than one file; they are counted as often as they stand there."""
    by_day: dict[date, dict[str, int]] = {}
    for total in totals:
        if total.day is not None:
            counts = by_day.setdefault(total.day, {})
            counts[total.source] = counts.get(total.source, 0) + total.rows
    shared = sorted(day for day, counts in by_day.items() if len(counts) > 1)
    if not shared:
        return []
    share = max(1, -(-sum(sum(by_day[day].values()) for day in shared) // _SAMPLED_ROWS))
    compared = shared[::share]
    rows: dict[
        str, int
    ] = {}  # of all days: files that share some of theirs are parts, and each has days of its own
    for total in totals:
        rows[total.source] = rows.get(total.source, 0) + total.rows
    times = len(shared) / len(compared)
    found: dict[tuple[str, str], list[tuple[date, int, float]]] = {}
    for first, last in _spans(compared):
        for source, other, day, charges, billed in _repeats(engine, first, last):
            found.setdefault((source, other), []).append((day, charges, billed))
    findings = []
    for (source, other), own in sorted(found.items()):
        days = [day for day, _, _ in own]
        span = f"{min(days)} to {max(days)}" if len(days) > 1 else f"{days[0]}"
        count = round(sum(number for _, number, _ in own) * times)
        kind = "they look like two snapshots of one export: give the latest only"
        if count < _MANY * min(rows[source], rows[other]):
            kind = "give each charge once"
        by_month: dict[date, float] = {}
        for day, _, billed in own:
            by_month[day.replace(day=1)] = by_month.get(day.replace(day=1), 0.0) + billed * times
        cost = sum(by_month.values())
        message = (
            f"{source} and {other}: {'about ' if share > 1 else ''}{count:,} charges of {span} ({cost:,.2f} billed) "
            f"are in both and are counted twice; {kind}"
        )
        months = tuple(sorted(by_month.items()))
        findings.append(Finding("error", "repeated_charges", message, source, count, cost, by_month=months))
    return findings


def find_twins(engine: Engine, totals: Sequence[Total]) -> list[Finding]:
    """Report files whose charges stand in them more than once, as where parts were appended twice.

    One day of each file and month is looked at, the one with most rows, as far as rows allow. Where the copies name
    their resource, or every charge of the day is there equally often, charges are doubled, and all days of the month
    say how much of its cost is (of a month with many rows that day). Else equal rows may be right, so this is a
    warning; nothing is left out in either case.
    """
    months: dict[tuple[str, date | None], tuple[int, float]] = {}
    for total in totals:
        count, billed = months.get((total.source, total.month), (0, 0.0))
        months[total.source, total.month] = count + total.rows, billed + total.billed
    days: dict[tuple[str, date | None], Total] = {}
    for total in totals:
        if (
            total.day is not None
            and is_of_our_time(total.day)
            and total.rows >= _FEW_ROWS
            and total.rows > days.get((total.source, total.month), total).rows - 1
        ):
            days[total.source, total.month] = total
    chosen: list[Total] = []
    rows = 0
    for total in sorted(days.values(), key=lambda one: one.rows):
        if chosen and rows + total.rows > _TWIN_ROWS:
            break
        chosen.append(total)
        rows += total.rows
    findings = []
    for total in sorted(chosen, key=lambda one: (one.source, one.day or date.min)):
        day = total.day or date.min
        own = _twins(engine, total.source, day, day + timedelta(days=1))
        copies = own[0] if own else _Copies(0, 0.0, 0.0, 0, 1)
        twins, cost = copies.rows, copies.cost
        if copies.proven(total):
            findings.append(_doubled(engine, total, copies, *months[total.source, total.month]))
        elif cost > _TWIN_SHARE * abs(total.billed) and cost > 0:
            message = (
                f"{total.source}: of {total.rows:,} charges of {total.day} {twins:,} ({cost:,.2f} billed) are another "
                "one again, cell by cell; if parts were appended twice, its months are too high: give each once"
            )
            findings.append(Finding("warning", "repeated_rows", message, total.source, twins, cost))
    return findings


def _doubled(engine: Engine, total: Total, copies: _Copies, count: int, billed: float) -> Finding:
    """That charges are doubled: how many of a month's; of a month with many rows what its day tells.

    Args:
        engine: has the bill.
        total: the day that proves it.
        copies: of that day.
        count: charges of the file's month.
        billed: what they bill.
    """
    month = (total.day or date.min).replace(day=1)
    if count <= _TWIN_ROWS:
        days = _twins(engine, total.source, month, (month + timedelta(days=31)).replace(day=1))
        rows = sum(one.rows for one in days)
        doubled = min(math.fsum(one.doubled_cost for one in days), abs(billed))
        again = f"{rows:,} stand in it again, cell by cell, so {doubled:,.2f}"
        said = f"of {count:,} charges of {month:%Y-%m} {again}"
    else:
        rows = copies.rows
        doubled = abs(billed) * min(copies.doubled_cost / abs(total.billed), 1.0)
        again = f"{rows:,} stand in it again, cell by cell, so about {doubled:,.2f}"
        said = f"of {total.rows:,} charges of {total.day} {again}"
    message = f"{total.source}: {said} of what {month:%Y-%m} bills is counted twice; give each charge once"
    return Finding("error", "repeated_charges", message, total.source, rows, doubled, month)


@record(frozen=True)
class _Copies:
    """Copies of charges in one file's day.

    Attributes:
        rows, cost: copies, and what they bill.
        named_cost: of these, what copies bill that name their resource.
        charges: different charges of the day.
        times: how often every one of them is there, at least; 1 where some are there once.
    """

    rows: int
    cost: float
    named_cost: float
    charges: int
    times: int

    @property
    def doubled_cost(self) -> float:
        """What is counted twice: of copies that may be charges of their own those that name their resource."""
        return self.named_cost if self.times == 1 else self.cost

    def proven(self, total: Total) -> bool:
        """Whether the copies cannot be charges of their own."""
        if not total.billed or self.cost <= 0:
            return False
        alike = self.times > 1 and self.charges >= _FEW_ROWS
        return alike or self.named_cost > _TWIN_SHARE * abs(total.billed)


def _twins(engine: Engine, source: str, first: date, after: date) -> list[_Copies]:
    """Return by day how many of a file's rows are copies of another, and what they bill; a reversed copy is none."""
    key = ", ".join(f"ABS({quote(name)})" if name in _AMOUNTS else quote(name) for name in _KEY)
    frame = engine.query(
        "SELECT day, n, is_named, COUNT(*) AS charges, SUM((n - 1) * billed) AS cost FROM (SELECT MAX(day) AS day, "
        "ABS(SUM(side)) AS n, MAX(ABS(BilledCost)) AS billed, MAX(ResourceId) IS NOT NULL AS is_named FROM ("
        "SELECT CAST(ChargePeriodStart AS DATE) AS day, "
        "BilledCost, ResourceId, CASE WHEN BilledCost < 0 OR (BilledCost = 0 AND EffectiveCost < 0) THEN -1 "
        f"ELSE 1 END AS side, HASH({key}) AS charge FROM focus "
        "WHERE x_source = :source "
        "AND ChargePeriodStart >= CAST(:first AS TIMESTAMP) AND ChargePeriodStart < CAST(:after AS TIMESTAMP)"
        ") AS hashed GROUP BY charge) AS twins WHERE n > 0 GROUP BY day, n, is_named",
        {"source": source, "first": first, "after": after},
    )
    return [_copies(day) for _, day in frame.groupby("day")]


def _copies(frame: Any) -> _Copies:
    n, charges, cost = (frame[name].fillna(0) for name in ("n", "charges", "cost"))
    return _Copies(
        int(((n - 1) * charges).sum()),
        float(cost.sum()),
        float(cost[frame["is_named"].astype(bool)].sum()),
        int(charges.sum()),
        math.gcd(*(int(times) for times in n)),
    )


def _spans(days: Sequence[date]) -> list[tuple[date, date]]:
    """Return first and last day of each run of days."""
    out: list[tuple[date, date]] = []
    for day in days:
        if out and day - out[-1][1] == timedelta(days=1):
            out[-1] = (out[-1][0], day)
        else:
            out.append((day, day))
    return out


def _repeats(engine: Engine, first: date, last: date) -> list[tuple[str, str, date, int, float]]:
    """Return per pair of files and day the charges that stand in both, and their billed cost."""
    charge = f"HASH({', '.join(map(quote, _KEY))})"  # of DuckDB only: warehouses are not asked
    frame = engine.query(
        "SELECT source, other, day, COUNT(*) AS charges, SUM(billed) AS billed FROM ("
        "SELECT charge, MIN(day) AS day, MIN(x_source) AS source, MAX(x_source) AS other, MAX(billed) AS billed FROM ("
        "SELECT x_source, charge, MIN(x_day) AS day, SUM(BilledCost) AS billed FROM ("
        f"SELECT x_source, x_day, BilledCost, {charge} AS charge FROM focus "
        "WHERE ChargePeriodStart >= CAST(:first AS TIMESTAMP) AND ChargePeriodStart < CAST(:after AS TIMESTAMP)"
        ") AS hashed GROUP BY x_source, charge) AS files "
        "GROUP BY charge HAVING COUNT(*) > 1) AS repeats "
        "GROUP BY source, other, day ORDER BY source, other, day",
        {"first": first, "after": last + timedelta(days=1)},
    )
    rows = rows_of(frame)
    return [
        (source, other, date(day.year, day.month, day.day), int(charges), float(billed))
        for source, other, day, charges, billed in rows
    ]
