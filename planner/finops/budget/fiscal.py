"""A fiscal year by month: budget against actual, the year to date, and where the year lands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from planner.finops.budget.answer import cost_of
from planner.finops.counted_twice import months_counted_twice
from planner.finops.forecast.calendars import FiscalCalendar, Period
from planner.finops.forecast.clean import history_start, unreported_days
from planner.finops.forecast.daily import DailyCost, carried_on, total_of
from planner.finops.forecast.model import MAX_HORIZON_DAYS, forecast_periods
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.budget.answer import Scopes
    from planner.inputs.budget_load import LoadedBudgets
    from planner.inputs.budget_schema import Budget

LEVEL = 0.8
TWICE = "counted twice"


@record(frozen=True)
class FiscalMonth:
    """One month of a budget.

    Attributes:
        state: `actual` (over), `running`, `ahead`, `no data` (before the first known day, or no day of it is known) or
            `counted twice` (the bill has charges of it twice).
        budget: the month's part; None where the budget does not hold in it.
        actual: cost reported; None where no day is known.
        expected: actual, and for days to come the forecast; None where nothing is known.
    """

    period: Period
    state: str
    budget: float | None
    actual: float | None
    expected: float | None


@record(frozen=True)
class FiscalBudget:
    """A budget over a fiscal year.

    Attributes:
        spread: whether the months are equal parts by days of a quarter's or a year's amount (assumed).
        to_date_budget, to_date_actual: of the months that are over and known.
        year_budget: sum of the months in which it holds.
        reforecast, low, high: cost of the months in which it holds: known ones and the forecast of the rest, with its
            80 % interval; None where months before the first known day are missing, or the year ends too far ahead.
        run_rate_left: what each month to come may cost on average to end within the budget; None where none is left.
    """

    name: str
    scope: str
    months: tuple[FiscalMonth, ...]
    spread: bool
    to_date_budget: float
    to_date_actual: float
    year_budget: float
    reforecast: float | None
    low: float | None
    high: float | None
    run_rate_left: float | None


@record(frozen=True)
class FiscalYear:
    """All budgets over the fiscal year in which the last known day lies.

    Attributes:
        explained: of the budget of everything, the variance to date by the budgets of one dimension, and the rest;
            empty where there is no such pair.
        unknown: first days of months without any charge, between others.
        twice: first days of months that the bill states too high.
    """

    label: str
    start: date
    end: date
    budgets: tuple[FiscalBudget, ...]
    explained: tuple[tuple[str, float], ...]
    unknown: tuple[date, ...] = ()
    twice: tuple[date, ...] = ()


def fiscal_year(
    loaded: LoadedBudgets,
    scopes: Scopes,
    first_month: int,
    last: date,
    *,
    twice: Mapping[date, float] | None = None,
) -> FiscalYear:
    """Every budget by month of the fiscal year.

    Args:
        loaded: the budgets.
        scopes: dimension -> scope -> daily cost, as for `check_budgets`.
        first_month: month in which the year begins, 1 to 12.
        last: last day whose cost is known.
        twice: billed cost that is counted twice, by first day of the month.
    """
    calendar = FiscalCalendar(first_month=first_month)
    year = calendar.periods("year", last, 1)[0]
    total = total_of(next(iter(scopes.values())))
    first = _day(total.days[history_start(total.days, total.cost)])
    unknown = tuple(day for day in _unreported(total, first, last) if year.start <= day < year.end)
    periods = calendar.periods("month", year.start, 12)
    costs = {one.start: _sum(total.days, total.cost, one.start, one.end) for one in periods}
    too_high = months_counted_twice(twice or {}, costs)
    unsound = {**dict.fromkeys(unknown, "no data"), **dict.fromkeys(too_high, TWICE)}
    budgets = [
        _budget(budget, cost_of(budget, scopes), calendar, year, last, first, unsound)
        for budget in loaded.file.budgets
    ]
    explained = _explained(loaded.file.budgets, budgets)
    return FiscalYear(year.label, year.start, year.end, tuple(budgets), explained, unknown, too_high)


def _unreported(total: DailyCost, first: date, last: date) -> list[date]:
    """First days of the months of which no day is known, between others."""
    days = np.arange(np.datetime64(first), np.datetime64(last) + 1)
    lacking = days[unreported_days(days[0], ~np.isin(days, total.days))]
    months, counts = np.unique(lacking.astype("datetime64[M]"), return_counts=True)
    whole = counts == ((months + 1).astype("datetime64[D]") - months.astype("datetime64[D]")).astype(int)
    return [_day(month) for month in months[whole]]


def _budget(
    budget: Budget,
    daily_cost: DailyCost,
    calendar: FiscalCalendar,
    year: Period,
    last: date,
    first_known: date,
    unsound: Mapping[date, str],
) -> FiscalBudget:
    periods = calendar.periods("month", year.start, 12)
    known = carried_on(daily_cost, np.datetime64(last))
    days, cost = known.days, known.cost
    ahead = [one for one in periods if one.end.toordinal() - 1 > last.toordinal()]
    held = [one for one in ahead if _amount(budget, calendar, one) is not None]
    is_near = (year.end - last).days <= MAX_HORIZON_DAYS
    bounds = [(np.datetime64(one.start), np.datetime64(one.end)) for one in ahead]
    rest = [(np.datetime64(held[0].start), np.datetime64(held[-1].end))] if held else []
    ends = (
        forecast_periods(days, cost, used=known.used, once=known.once, periods=[*bounds, *rest], level=LEVEL)
        if is_near and ahead
        else []
    )
    landings = {one.start: end.landing for one, end in zip(ahead, ends, strict=False)}
    months = tuple(
        _month(budget, calendar, one, _sum(days, cost, one.start, min(one.end, date.fromordinal(last.toordinal() + 1))),
               landings.get(one.start), last, first_known, unsound.get(one.start, ""))
        for one in periods
    )  # fmt: skip
    mine = [one for one in months if one.budget is not None]
    over = [one for one in mine if one.state == "actual"]
    planned, spent, whole = (
        math.fsum(one.budget or 0.0 for one in over),
        math.fsum(one.actual or 0.0 for one in over),
        math.fsum(one.budget or 0.0 for one in mine),
    )
    complete = not any(one.state in ("no data", TWICE) for one in mine)
    tail = ends[-1] if ends and held and complete else None
    left = len([one for one in mine if one.state == "ahead"])
    lands = spent + math.fsum(one.expected or 0.0 for one in mine if one.state in ("running", "ahead"))
    return FiscalBudget(
        budget.name, budget.by if budget.scope is None else f"{budget.by} {budget.scope}", months,
        budget.period != "month", planned, spent, whole,
        lands if tail else (spent if complete and not held else None),
        lands + tail.low - tail.landing if tail else None, lands + tail.high - tail.landing if tail else None,
        (whole - spent - (_running(mine) or 0.0)) / left if left and complete else None,
    )  # fmt: skip


def _running(months: Sequence[FiscalMonth]) -> float | None:
    return next((one.expected for one in months if one.state == "running"), None)


def _month(
    budget: Budget,
    calendar: FiscalCalendar,
    period: Period,
    actual: float,
    landing: float | None,
    last: date,
    first_known: date,
    unsound: str,
) -> FiscalMonth:
    amount = _amount(budget, calendar, period)
    if unsound or period.end <= first_known or (period.start < first_known):
        return FiscalMonth(period, unsound or "no data", amount, None, None)
    if period.start > last:
        return FiscalMonth(period, "ahead", amount, None, landing)
    state = "actual" if period.end.toordinal() - 1 <= last.toordinal() else "running"
    return FiscalMonth(period, state, amount, actual, actual if state == "actual" else landing)


def _amount(budget: Budget, calendar: FiscalCalendar, period: Period) -> float | None:
    """The budget's part of a month; a quarter's or a year's amount is spread evenly by days."""
    holds = (budget.starts is None or budget.starts < period.end) and (
        budget.ends is None or budget.ends >= period.start
    )
    if not holds:
        return None
    whole = calendar.periods(budget.period, period.start, 1)[0]
    plain = replace(calendar, first_month=1).periods(budget.period, period.start, 1)[
        0
    ]  # the file's own labels
    amount = budget.amounts.get(whole.label, budget.amounts.get(plain.label, budget.amount))
    return float(amount) * (period.end - period.start).days / (whole.end - whole.start).days


def _sum(days: np.ndarray, cost: np.ndarray, start: date, end: date) -> float:
    inside = (days >= np.datetime64(start)) & (days < np.datetime64(end))
    return float(cost[inside].sum())


def _explained(
    budgets: Sequence[Budget], fiscal_budgets: Sequence[FiscalBudget]
) -> tuple[tuple[str, float], ...]:
    """The total's variance to date by the monthly budgets of the dimension that has most of them."""
    total = next(
        (m for b, m in zip(budgets, fiscal_budgets, strict=True) if b.by == "total" and b.period == "month"),
        None,
    )
    parts: dict[str, list[FiscalBudget]] = {}
    for budget, one in zip(budgets, fiscal_budgets, strict=True):
        if (
            budget.by != "total"
            and budget.period == "month"
            and budget.starts is None
            and budget.ends is None
        ):
            parts.setdefault(budget.by, []).append(one)
    if total is None or not parts:
        return ()
    chosen = max(parts.values(), key=len)
    gaps = [(one.name, one.to_date_actual - one.to_date_budget) for one in chosen]
    rest = total.to_date_actual - total.to_date_budget - math.fsum(gap for _, gap in gaps)
    return (*sorted(gaps, key=lambda pair: (-abs(pair[1]), pair[0])), ("not in these budgets", rest))


def _day(day: np.datetime64) -> date:
    return date.fromordinal(date(1970, 1, 1).toordinal() + int(day.astype("datetime64[D]").astype(int)))
