"""Exchange rates of the user's own, and a bill of several currencies in one of them.

Columns of the file (CSV), one row per rate:

| column | meaning |
| --- | --- |
| `date` | first day on which the rate holds, `2026-10-01`, or a month, `2026-10` |
| `from`, `to` | ISO 4217 codes |
| `rate` | units of `to` that one unit of `from` is worth |
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

from planner.errors import InputError
from planner.files.limited import read_limited
from planner.files.tables import comma_hint, csv_rows
from planner.finops.read.model import Consolidated, Conversion, Finding
from planner.finops.read.overlaps import Total
from planner.inputs.faults import need_columns
from planner.records import record

COLUMNS = ("date", "from", "to", "rate")
MAX_BYTES = 16 << 20
OLD_DAYS = 45  # a rate older than this on a day that it converts is named: half a month past its own
_SHOWN = 3


@record(frozen=True)
class Rates:
    """A file of rates.

    Attributes:
        path: as given.
        target: the currency that everything becomes.
        by_currency: currency -> (first day, rate to the target), by day.
        others: pairs of the file that lead elsewhere, for messages.
    """

    path: str
    target: str
    by_currency: Mapping[str, tuple[tuple[date, float], ...]]
    others: tuple[tuple[str, str], ...] = ()

    def at(self, currency: str, day: date) -> tuple[date, float] | None:
        """The latest rate not after a day, with its first day; None where there is none."""
        if currency == self.target:
            return day, 1.0
        known = self.by_currency.get(currency, ())
        place = bisect_right([first for first, _ in known], day)
        return known[place - 1] if place else None


def read_rates(path: Path | None, target: str | None) -> Rates | None:
    """Rates into one currency, None without a file: what --rates and --in ask for.

    Raises:
        InputError: one of the two is missing, or the file cannot be used.
    """
    if (path is None) != (target is None):
        raise InputError(
            "--in: name the file of rates with --rates CSV"
            if path is None
            else "--rates: name the currency with --in CODE"
        )
    return None if path is None or target is None else load_rates(path, target)


def load_rates(path: Path, target: str) -> Rates:
    """Read a file of rates.

    Args:
        path: the file.
        target: ISO 4217 code of the currency that everything becomes.

    Raises:
        InputError: it cannot be read, lacks a column, or a cell is not a day, code or rate; two rates for one day.
    """
    wanted = target.strip().upper()
    if not _is_code(wanted):
        raise InputError(f"--in: {target!r} is not a currency; write its ISO 4217 code, like USD")
    try:
        text = read_limited(path, MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"--rates: {path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise InputError(f"--rates: {path}: is not UTF-8 text") from None
    reader = csv_rows(text, path)
    names = [(name or "").strip().lower() for name in reader.fieldnames or ()]
    need_columns(f"--rates: {path}", names, COLUMNS)
    reader.fieldnames = names
    rates: dict[tuple[str, str], dict[date, tuple[float, int]]] = {}
    for cells in reader:
        _add(rates, _row(path, reader.line_num, cells), path, reader.line_num)
    own = {
        pair[0]: tuple(sorted((day, rate) for day, (rate, _) in days.items()))
        for pair, days in rates.items()
        if pair[1] == wanted
    }
    return Rates(str(path), wanted, own, tuple(sorted(pair for pair in rates if pair[1] != wanted)))


def consolidate(
    totals: Sequence[Total], rates: Rates
) -> tuple[list[Total], Conversion, Consolidated, list[Finding]]:
    """Put the charges of all currencies into one.

    Args:
        totals: of the whole bill, in its own currencies.
        rates: the rates.

    Returns:
        Totals in the target currency, the rates that were used, the sums by month and currency, and the findings.

    Raises:
        InputError: days of a currency have no rate; no row names its currency.
    """
    if not any(total.currency for total in totals):
        raise InputError(
            f"--in {rates.target}: no row of the bill names its BillingCurrency; say it with --currency"
        )
    missing: dict[str, set[date]] = {}
    used: dict[tuple[str, date], tuple[date, float]] = {}
    kept: list[Total] = []
    sums: dict[tuple[date, str], tuple[float, float]] = {}
    for total in totals:
        if not total.currency or total.day is None:
            continue
        known = rates.at(total.currency, total.day)
        if known is None:
            missing.setdefault(total.currency, set()).add(total.day)
            continue
        used[total.currency, total.day] = known
        inside = total.billed * known[1]
        kept.append(replace(total, currency=rates.target, billed=inside))
        month = total.day.replace(day=1)
        before = sums.get((month, total.currency), (0.0, 0.0))
        sums[month, total.currency] = (before[0] + total.billed, before[1] + inside)
    if missing:
        raise InputError(_no_rate(rates, missing))
    conversion = Conversion(rates.target, tuple((code, day, rate) for (code, day), (_, rate) in used.items()))
    rows = tuple((month, code, *both) for (month, code), both in sorted(sums.items()))
    old = {(day.replace(day=1), code, first) for (code, first), days in _old(used).items() for day in days}
    consolidated = Consolidated(rates.path, rates.target, rows, tuple(sorted(old)))
    return kept, conversion, consolidated, _findings(totals, used, rates)


def _findings(
    totals: Sequence[Total], used: Mapping[tuple[str, date], tuple[date, float]], rates: Rates
) -> list[Finding]:
    out = []
    unnamed = [total for total in totals if not total.currency]
    if rows := sum(total.rows for total in unnamed):
        cost = sum(total.billed for total in unnamed)
        message = (
            f"{rows:,} rows ({cost:,.2f} billed) name no BillingCurrency and are left out: correct the export"
        )
        out.append(Finding("error", "no_currency", message, "", rows, cost))
    if lost := sum(total.rows for total in totals if total.currency and total.day is None):
        message = f"{lost:,} rows have no ChargePeriodStart and are in no month's figures"
        out.append(Finding("error", "no_month", message, "", lost))
    for (code, first), days in _old(used).items():
        span = f"{days[0]} to {days[-1]}" if len(days) > 1 else f"{days[0]}"
        age = f"{'up to ' if len(days) > 1 else ''}{(days[-1] - first).days} days older"
        message = f"{rates.path}: {code} of {span} is converted at the rate of {first}, {age}"
        out.append(Finding("warning", "old_rate", message, rates.path))
    return out


def _old(used: Mapping[tuple[str, date], tuple[date, float]]) -> dict[tuple[str, date], list[date]]:
    """Days by currency and day of the rate, where that is an old one."""
    found: dict[tuple[str, date], list[date]] = {}
    for (code, day), (first, _) in sorted(used.items()):
        if (day - first).days > OLD_DAYS:
            found.setdefault((code, first), []).append(day)
    return found


def _no_rate(rates: Rates, missing: Mapping[str, set[date]]) -> str:
    parts = []
    for code, days in sorted(missing.items()):
        words = _spans(sorted(days))
        known = rates.by_currency.get(code)
        why = f"its first is of {known[0][0]}" if known else "it has none"
        if not known and (rates.target, code) in rates.others:
            why = f"it has {rates.target} to {code} only: add the other direction"
        parts.append(f"no rate from {code} to {rates.target} for {words} ({why})")
    return f"--rates: {rates.path}: {'; '.join(parts)}"


def _spans(days: Sequence[date]) -> str:
    runs: list[list[date]] = []
    for day in days:
        if runs and day - runs[-1][-1] == timedelta(1):
            runs[-1].append(day)
        else:
            runs.append([day])
    shown = [f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs[:_SHOWN]]
    more = sum(len(run) for run in runs[_SHOWN:])
    return ", ".join(shown) + (f" and {more} more days" if more else "")


_Row = tuple[date, str, str, float]


def _add(
    rates: dict[tuple[str, str], dict[date, tuple[float, int]]], row: _Row, path: Path, line: int
) -> None:
    day, source, target, rate = row
    days = rates.setdefault((source, target), {})
    if day in days and days[day][0] != rate:
        raise InputError(
            f"--rates: {path}:{line}: {source} to {target} of {day} is {rate:g} here and {days[day][0]:g} in line "
            f"{days[day][1]}: keep one"
        )
    days[day] = (rate, line)


def _row(path: Path, line: int, cells: Mapping[str, str | None]) -> _Row:
    given = {name: (cells.get(name) or "").strip() for name in COLUMNS}
    try:
        day = date.fromisoformat(given["date"] if len(given["date"]) > 7 else f"{given['date']}-01")
    except ValueError:
        raise InputError(
            f"--rates: {path}:{line}: date: {given['date'][:60]!r} is not a day; write 2026-10-01, or 2026-10 for "
            "a month"
        ) from None
    for name in ("from", "to"):
        if not _is_code(given[name].upper()):
            raise InputError(
                f"--rates: {path}:{line}: {name}: {given[name][:60]!r} is not a currency; write its ISO 4217 code, "
                "like USD"
            )
    try:
        rate = float(given["rate"])
    except ValueError:
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0):
        raise InputError(
            f"--rates: {path}:{line}: rate: {given['rate'][:60]!r} is not a number above 0{comma_hint(given['rate'])}"
        )
    return day, given["from"].upper(), given["to"].upper(), rate


def _is_code(code: str) -> bool:
    return len(code) == 3 and code.isascii() and code.isalpha()
