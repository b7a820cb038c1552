"""The days of a bill: when it begins, which month is its newest, and whether it has the month before."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.finops.frames import in_order, rows_of
from planner.finops.kpis import query_kpi
from planner.inputs.quantities import FIRST_YEAR, LAST_YEAR, is_of_our_time

if TYPE_CHECKING:
    from planner.finops.read import Bill


_LONG_CHARGES = Path(__file__).resolve().parent / "data" / "long_charges.sql"
_UNNAMED = "(unnamed)"
PATTERN_DAYS = 56  # that show on which weekdays a bill has use
_LEAST_TIMES = 4  # a weekday without use, before it is one on which none is expected
_STEADY_SHARE = 0.75  # of the other weekdays that have use: some of them are holidays


def daily_frame(bill: Bill) -> Any:
    """The KPI `daily_cost` with typed days.

    Charges without a day are left out, and those of no year of our time where there are others (the reader has reported
    both): every day between them and the bill's own would be one of a forecast.
    """
    import numpy as np

    frame: Any = query_kpi(bill.engine, "daily_cost", {})
    frame = frame[frame["x_day"].notna()].copy()
    frame["day"] = np.array(frame["x_day"].astype(str).str[:10].tolist(), dtype="datetime64[D]")
    ours = frame["day"].dt.year.between(FIRST_YEAR, LAST_YEAR)
    frame = frame[ours].copy() if ours.any() else frame
    for name in ("provider", "service"):
        frame[name] = frame[name].astype(object).where(frame[name].notna(), _UNNAMED)
    for name in ("effective_cost", "billed_cost"):
        frame[name] = frame[name].astype(float).fillna(0.0)
    return in_order(frame.drop(columns="x_day"))


def bill_begins(daily: Any) -> date:
    """Day on which a bill begins: see `planner.finops.forecast.clean.history_start`.

    Args:
        daily: rows of `daily_frame`, at least one.
    """
    from planner.finops.forecast.clean import history_start

    days, cost = untaxed(daily)
    first = days[history_start(days, cost)] if len(days) else daily["day"].min().to_datetime64()
    found: date = first.astype("datetime64[D]").item()
    return found


def untaxed(daily: Any) -> tuple[Any, Any]:
    """Days in order and their cost without tax."""
    sums = daily[daily["charge_category"] != "Tax"].groupby("day")["effective_cost"].sum()
    return sums.index.to_numpy().astype("datetime64[D]"), sums.to_numpy(dtype=float)


def long_charges(bill: Bill, month: date, end: date, *, without: Collection[str] = ()) -> tuple[float, float]:
    """Charges of more than a day, such as monthly fees: what they cost, and what they cost a day of their periods.

    Args:
        bill: the bill.
        month: first day of the month in which they start.
        end: first day after it.
        without: providers that are left out.
    """
    sql = _LONG_CHARGES.read_text(encoding="utf-8")
    rows = rows_of(bill.engine.query(sql, {"start": month, "end": end}))
    named = ((provider if isinstance(provider, str) else _UNNAMED, *costs) for provider, *costs in rows)
    kept = [(cost, per_day) for provider, cost, per_day in named if provider not in without and cost == cost]
    return sum(float(cost) for cost, _ in kept), sum(float(per_day) for _, per_day in kept)


def newest_month(daily: Any) -> date:
    """First day of the newest month with use beyond its first day; of a bill without use, with a charge.

    The last hours of a month are on the first day of the next where the invoice's month is not that of UTC.

    Raises:
        InputError: no charge has a day.
    """
    use = daily[daily["charge_category"] == "Usage"]
    days = (use if len(use) else daily)["day"]
    if not len(days):
        raise InputError("the bill has no charge with a ChargePeriodStart: there is nothing to review")
    newest: date = days.max().to_pydatetime().date()
    if newest.day > 1 or not is_of_our_time(newest):
        return newest.replace(day=1)
    before = newest - timedelta(days=1)
    return (before if (days == before.isoformat()).any() else newest).replace(day=1)


def month_before(bill: Bill, month: date, daily: Any) -> date | None:
    """The month before, where the bill has it: charges of a time before it begins are no month."""
    last = (month - timedelta(days=1)).replace(day=1) if month > date(1, 1, 1) else None
    return last if last in bill.months and bill_begins(daily) < month else None


def rest_days(used: Collection[date], month: date, end: date) -> set[date]:
    """Days of a month without use that lack nothing: use pauses on their weekdays, on weekends for instance.

    A weekday counts where it had no use at least four times in the eight weeks up to the month's last day with use,
    while the others mostly had. Days before the month's first one with use, and after its last one, are among them
    where all of them are such days.

    Args:
        used: days with use, of this month and those before it.
        month: its first day.
        end: first day after it.
    """
    known = {day for day in used if day < end}
    inside = {day for day in known if day >= month}
    if not inside:
        return set()
    last = max(inside)
    first = date.fromordinal(max(min(known).toordinal(), last.toordinal() - PATTERN_DAYS + 1))
    seen, with_use = [0] * 7, [0] * 7  # days, by weekday
    for day in _each_day(first, last):
        seen[day.weekday()] += 1
        with_use[day.weekday()] += day in known
    resting = {weekday for weekday in range(7) if seen[weekday] >= _LEAST_TIMES and not with_use[weekday]}
    others = sum(seen[weekday] for weekday in range(7) if weekday not in resting)
    if not resting or sum(with_use) < _STEADY_SHARE * others:
        return set()
    days = _each_day(min(inside), last)
    for outside in (_each_day(month, min(inside))[:-1], _each_day(last, end)[1:-1]):
        days += outside if all(day.weekday() in resting for day in outside) else []
    return {day for day in days if day.weekday() in resting}


def _each_day(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]
