"""Daily costs from a CSV file: columns date, scope, cost."""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.files.tables import csv_rows
from planner.finops.forecast.clean import until
from planner.inputs.faults import need_columns
from planner.inputs.load import decode, read_limited
from planner.inputs.quantities import of_our_time
from planner.records import record

_Moment = TypeVar("_Moment", date, datetime)
Days = NDArray[np.datetime64]
MAX_BYTES = 256 * 1024 * 1024
COLUMNS = ("date", "scope", "cost")
_LARGEST = 1e15
_WEEK = timedelta(days=7)
_LONGEST = timedelta(days=20 * 365)  # the days between are filled, and each costs time


@record(frozen=True, eq=False)
class DailyCost:
    """Cost of one scope.

    Attributes:
        days: (n,) datetime64[D], ascending.
        cost: (n,) cost per day; rows of one day are added up.
        used: (n,) cost per day of use alone, without fees and credits, NaN on days without a charge of use; None where
            it is not known apart.
        once: (n,) of the cost what was bought once and is not expected again (`planner.finops.bought_once`); use that
            bears its price is not in `used`. None without any.
    """

    days: Days
    cost: Floats
    used: Floats | None = None
    once: Floats | None = None


def load_daily(
    path: Path, *, columns: Sequence[str] = COLUMNS, until_last_day: bool = False
) -> dict[str, DailyCost]:
    """Read a file of daily costs, plain or gzip.

    A day that the file has for another scope is a day without cost for this one; a day that the file has for none is
    unknown and stays absent. Use never costs less than nothing, so rows below 0 are credits or refunds and not part of
    `used`; where a day of a scope has no other row, its use is that of a week before.

    Args:
        path: the file.
        columns: its names of date, scope and cost.
        until_last_day: whether each scope goes on, at 0, to the last day of the file. Otherwise to its own last day.

    Raises:
        InputError: names file, line and remedy.
    """
    sums: dict[str, dict[date, float]] = {}
    credits: dict[str, dict[date, float]] = {}
    for day, scope, cost in _rows(path, columns):
        for found in (sums, credits) if cost < 0 else (sums,):
            mine = found.setdefault(scope, {})
            mine[day] = mine.get(day, 0.0) + cost
    if not sums:
        raise InputError(f"{path}:2: there is no row; needed: {', '.join(columns)}")
    days = sorted({day for mine in sums.values() for day in mine})
    if days[-1] - days[0] > _LONGEST:
        raise InputError(
            f"{path}: days from {days[0]} to {days[-1]}: at most {_LONGEST.days // 365} years in a file; "
            "is a date mistyped?"
        )
    return {
        scope: _series(mine, credits.get(scope, {}), days, until_last_day)
        for scope, mine in sorted(sums.items())
    }


def load_vintages(path: Path) -> list[tuple[date, Days, Floats]]:
    """Read earlier reports: columns reported, date, scope, cost; scopes are added up.

    Of several reports of a scope on one day (`reported` with a time) the latest counts.

    Raises:
        InputError: names file, line and remedy.
    """
    latest: dict[tuple[date, date, str], tuple[datetime, float]] = {}
    for moment, day, scope, cost in _reports(path):
        key = (moment.date(), day, scope)
        before, spent = latest.get(key, (moment, 0.0))
        if moment >= before:
            latest[key] = (moment, cost + (spent if moment == before else 0.0))
    reports: dict[date, dict[date, float]] = {}
    for (reported, day, _), (_, cost) in latest.items():
        mine = reports.setdefault(reported, {})
        mine[day] = mine.get(day, 0.0) + cost
    return [
        (
            reported,
            np.array(sorted(costs), dtype="datetime64[D]"),
            np.array([costs[day] for day in sorted(costs)]),
        )
        for reported, costs in sorted(reports.items())
    ]


def total_of(scopes: Mapping[str, DailyCost]) -> DailyCost:
    """The sum of all scopes by day; use alone where every scope knows it."""
    parts = list(scopes.values())
    days = np.unique(np.concatenate([one.days for one in parts])) if parts else np.empty(0, "datetime64[D]")

    def summed(of: Callable[[DailyCost], ArrayLike | None]) -> Floats:
        sums = np.zeros(len(days))
        for one in parts:
            if (amounts := of(one)) is not None:
                np.add.at(sums, np.searchsorted(days, one.days), amounts)
        return sums

    def used() -> Floats:
        charged = summed(lambda one: None if one.used is None else np.isfinite(one.used))
        of_use = summed(lambda one: None if one.used is None else np.nan_to_num(one.used))
        return np.where(charged > 0, of_use, np.nan)

    return DailyCost(
        days,
        summed(lambda one: one.cost),
        None if any(one.used is None for one in parts) else used(),
        None if all(one.once is None for one in parts) else summed(lambda one: one.once),
    )


def carried_on(one: DailyCost, last: np.datetime64, *, before: np.datetime64 | None = None) -> DailyCost:
    """One scope up to `last`, with days without cost after its own last day: others were charged on them.

    Args:
        one: the scope.
        last: day to which it goes on.
        before: keep the days before this one, in place of those up to `last`.
    """
    known = one.days <= last if before is None else one.days < before
    days = one.days[known]

    def of(amounts: Floats | None, then: float) -> Floats | None:
        return None if amounts is None else until(days, amounts[known], last, then)[1]

    return DailyCost(*until(days, one.cost[known], last), of(one.used, np.nan), of(one.once, 0.0))


def _series(
    mine: Mapping[date, float], credits: Mapping[date, float], reported: Sequence[date], until_last_day: bool
) -> DailyCost:
    first, last = min(mine), reported[-1] if until_last_day else max(mine)
    days = [day for day in reported if first <= day <= last]
    used: dict[date, float] = {}
    for day in days:
        cost, credit = mine.get(day, 0.0), credits.get(day, 0.0)
        is_credit = credit != 0 and cost == credit
        before = used.get(day - _WEEK, math.nan)
        used[day] = before if is_credit else cost - credit if day in mine else math.nan
    costs = np.array([mine.get(day, 0.0) for day in days], dtype=float)
    return DailyCost(np.array(days, dtype="datetime64[D]"), costs, np.array(list(used.values()), dtype=float))


def _reports(path: Path) -> Iterator[tuple[datetime, date, str, float]]:
    """Moment of the report, day, scope and cost of each row."""
    rows = _rows(path, ("reported", "scope", "cost"), moments=True)
    for (moment, *_), (day, scope, cost) in zip(rows, _rows(path, COLUMNS), strict=True):
        yield cast("datetime", moment), day, scope, cost


def _rows(path: Path, columns: Sequence[str], *, moments: bool = False) -> Iterator[tuple[date, str, float]]:
    reader = csv_rows(_text(path), path)
    need_columns(path, reader.fieldnames, columns)
    for row in reader:
        place = f"{path}:{reader.line_num}"
        when, scope, cost = (row[name] for name in columns)
        yield (
            (_moment if moments else _day)(when, place),
            (scope or "").strip() or "(none)",
            _cost(cost, place),
        )


def _text(path: Path) -> str:
    data = read_limited(path, MAX_BYTES)
    if data[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                data = file.read(MAX_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: is not a whole gzip file: {error}") from error
        if len(data) > MAX_BYTES:
            raise InputError(f"{path}: is larger than {MAX_BYTES // 2**20} MiB unpacked")
    return decode(data, str(path))


def _day(text: str | None, place: str) -> date:
    try:
        day = date.fromisoformat((text or "").strip()[:10])
    except ValueError:
        raise InputError(f"{place}: {(text or '')!r} is not a date; write 2026-10-31") from None
    return _of_our_time(day, place)


def _of_our_time(moment: _Moment, place: str) -> _Moment:
    try:
        return of_our_time(moment)
    except ValueError as error:
        raise InputError(f"{place}: {error}") from None


def _moment(text: str | None, place: str) -> datetime:
    """A day, or a day with a time; without an offset it is UTC."""
    try:
        found = datetime.fromisoformat((text or "").strip())
    except ValueError:
        raise InputError(
            f"{place}: {(text or '')!r} is not a date; write 2026-10-31 or 2026-10-31T06:00Z"
        ) from None
    _of_our_time(found, place)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _cost(text: str | None, place: str) -> float:
    try:
        value = float((text or "").strip())
    except ValueError:
        value = float("nan")
    if not abs(value) < _LARGEST:
        raise InputError(
            f"{place}: cost {(text or '')!r} is not a number; credits are negative, decimals have a point"
        )
    return value
