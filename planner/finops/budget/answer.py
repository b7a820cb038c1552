"""Budgets checked: spent so far, where the period lands, how likely it goes over. Notebooks call `check_budgets`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Literal

import numpy as np

from planner.errors import InputError
from planner.finops.forecast.calendars import CalendarError, FiscalCalendar, Period, parse_calendar
from planner.finops.forecast.clean import history_start
from planner.finops.forecast.completion import late_days
from planner.finops.forecast.daily import DailyCost, carried_on, total_of
from planner.finops.forecast.model import Backtest, MonthEnd, forecast_periods
from planner.finops.forecast.plan_spread import plan_spread
from planner.finops.forecast.plans import PlannedCost, daily_plan_cost
from planner.finops.read.tag_keys import known_spelling
from planner.inputs.faults import Fault, near
from planner.records import record
from planner.render.currency import UNKNOWN_CURRENCY
from planner.render.presentable import Presentable

if TYPE_CHECKING:
    from planner.inputs.budget_load import LoadedBudgets
    from planner.inputs.budget_schema import Budget

Status = Literal["over", "alert", "watch", "ok"]
Scopes = Mapping[str, Mapping[str, DailyCost]]
LEVEL = 0.8  # of the range shown: P10 to P90
_WATCH = 0.5  # share of the gate's probability from which a budget is watched


@record(frozen=True, eq=False)
class BudgetLine:
    """One budget in its period.

    Attributes:
        scope: as people write it: `total`, `service AmazonEC2`, `tag:team research`.
        amount: the budget; `actual`: spent so far, or in all.
        landing, low, high: expected cost of the period, and its P10 and P90.
        planned: what plans add to it.
        p_over: probability that it goes over; 0 or 1 when the period is over.
        max_p_over: the gate.
        status: `over`: spent more already; `alert`: the gate is exceeded; `watch`: half of it is; `ok`.
        missing_days: days of the period up to the last known one without any cost reported; they count as 0.
        runs_out: day on which the expected cost passes the budget, in this period; None where it does not.
    """

    name: str
    scope: str
    period: Period
    amount: float
    actual: float
    landing: float
    low: float
    high: float
    planned: float
    p_over: float
    max_p_over: float
    status: Status
    runs_out: date | None
    days_left: int
    backtest: Backtest
    missing_days: int

    @property
    def exceeded(self) -> bool:
        """Whether the gate closes."""
        return self.status in ("over", "alert")


@record(frozen=True, eq=False)
class BudgetAnswer(Presentable):
    """All budgets that hold in their period.

    Attributes:
        last_day: last day whose cost was used; `dropped_days`: days after it whose bill is not complete.
        silent: names of budgets that do not hold on that day.
        first_day: first day with known cost; periods that began before are short of what was spent then.
        daily: whether costs came from a file of daily costs.
    """

    REPORT = "planner.finops.budget.report:budget_report"
    __repr__ = Presentable.__repr__

    name: str
    currency: str
    last_day: date
    dropped_days: int
    lines: tuple[BudgetLine, ...]
    silent: tuple[str, ...]
    first_day: date
    daily: bool = False

    @property
    def exceeded(self) -> bool:
        """Whether any gate closes."""
        return any(line.exceeded for line in self.lines)


def dimensions(loaded: LoadedBudgets) -> tuple[str, ...]:
    """What the bill must be divided by, the total first."""
    return tuple(dict.fromkeys(("total", *(budget.by for budget in loaded.file.budgets))))


def refuse_csv_scopes(loaded: LoadedBudgets) -> None:
    """Refuse `by: scope` where costs come from a bill.

    Raises:
        InputError: names the budgets.
    """
    text = "is for daily costs in a CSV file; of a bill name a dimension, like service or tag:team"
    faults = [
        Fault(("budgets", at, "by"), text) for at, one in enumerate(loaded.file.budgets) if one.by == "scope"
    ]
    if faults:
        raise loaded.error(faults)


def check_budgets(
    loaded: LoadedBudgets,
    scopes: Scopes,
    *,
    currency: str,
    day: date | None = None,
    planned: Sequence[PlannedCost] = (),
    drop_days: int | None = None,
) -> BudgetAnswer:
    """Check every budget in the period in which `day` lies.

    Args:
        loaded: the budgets.
        scopes: dimension -> scope -> daily cost, for `dimensions(loaded)`.
        currency: of the costs; `XXX` where unknown.
        day: None: the last day whose cost is known.
        planned: costs to come, added to the total, and to a scope they name.
        drop_days: last days to leave out; None: those whose bill looks late.

    Raises:
        InputError: a currency differs, a scope is not in the bill, or the history cannot be used.
    """
    file = loaded.file
    if currency not in (file.currency, UNKNOWN_CURRENCY):
        text = f"the costs are in {currency}: budgets must be in the same currency"
        raise loaded.error([Fault(("currency",), text)])
    calendar = _calendar(loaded)
    _check_scopes(loaded, scopes)
    total = total_of(next(iter(scopes.values())))
    drop = late_days(total) if drop_days is None else drop_days
    last = total.days[-1] - drop
    when = day or _date(last)
    first = _date(total.days[history_start(total.days, total.cost)])
    lines, silent = [], []
    for budget in file.budgets:
        period = calendar.periods(budget.period, when, 1)[0]
        if period.end <= first:
            raise InputError(f"--day {when}: costs are known from {first} on; {period.label} ended before")
        if not _holds(budget, period):
            silent.append(budget.name)
            continue
        own = cost_of(budget, scopes)
        mine = [
            one
            for one in planned
            if budget.scope is None or one.scope in (budget.scope, _scope(budget, scopes))
        ]
        lines.append(_line(file.max_p_over, budget, period, own, last, mine))
    return BudgetAnswer(file.name, file.currency, _date(last), drop, tuple(lines), tuple(silent), first)


def _calendar(loaded: LoadedBudgets) -> FiscalCalendar:
    file = loaded.file
    try:
        return parse_calendar(file.fiscal_start, file.fiscal_weeks)
    except CalendarError as error:
        key = "fiscal_weeks" if file.fiscal_weeks is not None else "fiscal_start"
        raise loaded.error([Fault((key,), error.reason)]) from None


def cost_of(budget: Budget, scopes: Scopes) -> DailyCost:
    """The daily cost that a budget is for, whichever way it spells the value of a tag."""
    if budget.scope is None:
        return total_of(next(iter(scopes.values())))
    return scopes[budget.by][_scope(budget, scopes)]


def _scope(budget: Budget, scopes: Scopes) -> str:
    known, asked = scopes.get(budget.by, {}), budget.scope or ""
    return known_spelling(asked, known) if budget.by.startswith("tag:") else asked


def _check_scopes(loaded: LoadedBudgets, scopes: Scopes) -> None:
    faults = []
    spelled: dict[tuple[str, str], str] = {}
    for at, budget in enumerate(loaded.file.budgets):
        known = sorted(scopes.get(budget.by, {}))
        scope = _scope(budget, scopes)
        first = spelled.setdefault((budget.by, scope), budget.scope or "")
        if first != (budget.scope or ""):
            text = f"{budget.scope!r} and {first!r} are two spellings of one value of the tag: spell it alike"
            faults.append(Fault(("budgets", at, "scope"), text))
        elif budget.scope is not None and scope not in known:
            some = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
            text = f"no cost of {budget.by} {budget.scope!r}; there are {some or 'none'}"
            faults.append(Fault(("budgets", at, "scope"), text, near(budget.scope, known)))
    if faults:
        raise loaded.error(faults)


def _holds(budget: Budget, period: Period) -> bool:
    after = budget.starts is None or budget.starts < period.end
    return after and (budget.ends is None or budget.ends >= period.start)


def _line(
    gate: float,
    budget: Budget,
    period: Period,
    daily_cost: DailyCost,
    last: np.datetime64,
    planned: Sequence[PlannedCost],
) -> BudgetLine:
    known = carried_on(daily_cost, last)
    days, cost = known.days, known.cost
    bounds = [(np.datetime64(period.start), np.datetime64(period.end))]
    end = forecast_periods(days, cost, used=known.used, once=known.once, periods=bounds, level=LEVEL)[0]
    ahead = np.datetime64(period.end, "D") - np.arange(end.days_left, 0, -1)
    extra = daily_plan_cost(planned, ahead)
    amount, more = float(budget.amounts.get(period.label, budget.amount)), float(extra.sum())
    spread = plan_spread(planned, ahead)
    p_over = spread.p_over(lambda usd: end.p_over(usd - more), amount)
    low, high = spread.widened(end.landing + more, end.low + more, end.high + more, LEVEL)
    limit = budget.max_p_over if budget.max_p_over is not None else gate
    status = _status(end, amount, p_over, limit)
    return BudgetLine(
        budget.name, budget.by if budget.scope is None else f"{budget.by} {budget.scope}", period, amount,
        end.actual_to_date, end.landing + more, low, high, more, p_over, limit, status,
        _runs_out(days, cost, period, ahead, end.expected + extra, amount), end.days_left, end.backtest,
        end.missing_days,
    )  # fmt: skip


def _status(end: MonthEnd, amount: float, p_over: float, limit: float) -> Status:
    if end.actual_to_date > amount:
        return "over"
    if end.days_left and p_over > limit:
        return "alert"
    return "watch" if end.days_left and p_over > _WATCH * limit else "ok"


def _runs_out(
    days: np.ndarray[tuple[int], np.dtype[np.datetime64]],
    cost: np.ndarray[tuple[int], np.dtype[np.float64]],
    period: Period,
    ahead: np.ndarray[tuple[int], np.dtype[np.datetime64]],
    expected: np.ndarray[tuple[int], np.dtype[np.float64]],
    amount: float,
) -> date | None:
    inside = (days >= np.datetime64(period.start)) & (days < np.datetime64(period.end))
    spent = np.cumsum(np.concatenate([cost[inside], expected]))
    passed = np.flatnonzero(spent > amount)
    return _date(np.concatenate([days[inside], ahead])[passed[0]]) if passed.size else None


def _date(day: np.datetime64) -> date:
    return date(1970, 1, 1) + timedelta(days=int(day.astype("datetime64[D]").astype(int)))
