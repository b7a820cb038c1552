"""The days of a bill: when it begins, which month is its newest, and whether it has the month before."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.finops.kpis import query_kpi

if TYPE_CHECKING:
    from planner.finops.read import Bill


def daily_frame(bill: Bill) -> Any:
    """The KPI `daily_cost` with typed days; charges without a day are left out (the reader has reported them)."""
    import numpy as np

    frame: Any = query_kpi(bill.engine, "daily_cost", {})
    frame = frame[frame["x_day"].notna()].copy()
    frame["day"] = np.array(frame["x_day"].astype(str).str[:10].tolist(), dtype="datetime64[D]")
    for name in ("provider", "service"):
        frame[name] = frame[name].astype(object).where(frame[name].notna(), "(unnamed)")
    for name in ("effective_cost", "billed_cost"):
        frame[name] = frame[name].astype(float).fillna(0.0)
    return in_order(frame.drop(columns="x_day"))


def in_order(frame: Any) -> Any:
    """Rows by their names: engines give them in any order, and an answer must not depend on it."""
    import pandas as pd

    names = [n for n in frame.columns if not pd.api.types.is_numeric_dtype(frame[n])]
    ordered = frame.sort_values(names, kind="stable", na_position="first") if names else frame
    return ordered.reset_index(drop=True)


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
    before = newest - timedelta(days=1)
    found = before if newest.day == 1 and (days == before.isoformat()).any() else newest
    return found.replace(day=1)


def month_before(bill: Bill, month: date, daily: Any) -> date | None:
    """The month before, where the bill has it: charges of a time before it begins are no month."""
    last = (month - timedelta(days=1)).replace(day=1) if month > date(1, 1, 1) else None
    return last if last in bill.months and bill_begins(daily) < month else None
