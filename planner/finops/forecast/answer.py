"""The forecast of many scopes: periods, plans, scenarios and the record of each. One function a notebook can call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.finops.forecast.calendars import FiscalCalendar, Period, Size
from planner.finops.forecast.clean import ForecastError, history_start, regular_series
from planner.finops.forecast.completion import Completion, late_days
from planner.finops.forecast.conformal import Spread
from planner.finops.forecast.daily import DailyCost, carried_on, total_of
from planner.finops.forecast.model import Backtest, MonthEnd, forecast_periods
from planner.finops.forecast.more import Fit
from planner.finops.forecast.plan_spread import PlanSpread, plan_spread
from planner.finops.forecast.plans import PlannedCost, as_known, daily_plan_cost
from planner.finops.forecast.scenarios import Scenario, check_scopes, day_factors
from planner.finops.read.tag_keys import known_spelling
from planner.records import record
from planner.render.presentable import Presentable

TOTAL = "total"
OTHERS = "(others)"
Progress = Callable[[int, int], None]
_LONG_GAP = 62  # days


_CERTAIN = PlanSpread()


@record(frozen=True, eq=False)
class PeriodForecast:
    """One period of one scope.

    Attributes:
        actual: reported cost of its known days; `settled`: the same, grossed up where young.
        expected, low, high: cost of the whole period with plans and scenarios, and its interval.
        base: the same without plans and scenarios.
        planned: what plans add.
        factor: what scenarios multiply its forecast days with.
        days_left: days that are forecast.
        shift: in the total, what scenarios of single scopes change.
        plan_spread: how far the plans may be off; it is in `low`, `high` and `p_over`.
    """

    period: Period
    actual: float
    settled: float
    expected: float
    low: float
    high: float
    base: float
    planned: float
    factor: float
    days_left: int
    spread: Spread | None
    backtest: Backtest
    shift: float = 0.0
    plan_spread: PlanSpread = _CERTAIN

    def p_over(self, amount: float) -> float:
        """Probability that the period costs more than `amount`."""
        return self.plan_spread.p_over(self._p_over_at_expected_plans, amount)

    def _p_over_at_expected_plans(self, amount: float) -> float:
        rest = amount - self.settled - self.planned - self.shift
        if self.spread is None or self.factor <= 0:
            return float(rest < 0)
        return self.spread.p_over(rest / self.factor)


@record(frozen=True, eq=False)
class ScopeForecast:
    """One scope.

    Attributes:
        days: forecast days, (n,) datetime64[D].
        expected: (n,) cost per day with plans and scenarios.
        periods: in order; the last may be the horizon asked for.
        weights: of the members, for the first period that is not over.
    """

    scope: str
    first_day: date
    last_day: date
    filled_days: int
    days: NDArray[np.datetime64]
    expected: Floats
    periods: tuple[PeriodForecast, ...]
    weights: Mapping[str, float]


@record(frozen=True, eq=False)
class ForecastAnswer(Presentable):
    """Forecasts of all scopes.

    Attributes:
        currency: ISO 4217; `XXX` where unknown.
        by: the dimension of the scopes.
        last_day: last day whose cost was used.
        dropped_days: last days left out because their bill is not complete.
        skipped: scopes without a forecast, and why.
        gap: the days around the longest time of which no scope has a row, where that is over two months.
    """

    REPORT = "planner.finops.forecast.report:forecast_report"
    __repr__ = Presentable.__repr__

    currency: str
    by: str
    level: float
    last_day: date
    dropped_days: int
    scopes: tuple[ScopeForecast, ...]
    skipped: tuple[tuple[str, str], ...]
    planned: tuple[PlannedCost, ...]
    scenarios: tuple[Scenario, ...]
    gap: tuple[date, date] | None = None


@record(frozen=True)
class Question:
    """What to forecast.

    Attributes:
        calendar, size, count: the periods; the first is the one in which the day after the last known one lies.
        horizon_days: an extra period of as many days from then on; 0: none.
        level: of the intervals.
        top: so many scopes at most, the dearest; the rest is one scope.
        drop_days: last days to leave out; None: those that look late.
        more_members: members of the extra `forecast`.
    """

    calendar: FiscalCalendar = FiscalCalendar()
    size: Size = "month"
    count: int = 3
    horizon_days: int = 30
    level: float = 0.8
    top: int = 20
    drop_days: int | None = None
    scenarios: tuple[Scenario, ...] = ()
    planned: tuple[PlannedCost, ...] = ()
    completion: Completion | None = None
    more_members: Mapping[str, Fit] | None = None


def forecast_scopes(
    scopes: Mapping[str, DailyCost],
    question: Question,
    *,
    currency: str = "USD",
    by: str = TOTAL,
    progress: Progress | None = None,
) -> ForecastAnswer:
    """Forecast the total and each scope.

    The total is forecast by itself, not as the sum: errors of scopes cancel in it.

    Args:
        scopes: daily cost per scope.
        question: what to forecast.
        currency: of the costs.
        by: the dimension of the scopes.
        progress: told how many scopes are done, and of how many.

    Raises:
        InputError: no scope can be forecast, or a scenario or plan names a scope that is not there.
    """
    if TOTAL in scopes and len(scopes) > 1:
        raise InputError(
            "a scope is called 'total', which is reserved for the sum of the scopes; remove or rename it"
        )
    total = total_of(scopes)
    chosen = {TOTAL: total}
    if set(scopes) != {TOTAL}:
        chosen |= _dearest(scopes, question.top)
    if by.startswith("tag:"):
        question = _as_spelled(question, list(chosen))
    check_scopes(question.scenarios, list(chosen))
    for plan in question.planned:
        if plan.scope is not None and plan.scope not in chosen:
            raise InputError(f"--plans: no scope {plan.scope!r}; there are {', '.join(list(chosen)[:8])}")
    drop = _drop(total, question)
    reported, last = total.days[-1], total.days[-1] - drop
    if question.completion is not None:
        reported = question.completion.report_of(reported)
    scope_forecasts: list[ScopeForecast] = []
    skipped: list[tuple[str, str]] = []
    for number, (name, one) in enumerate(chosen.items()):
        if progress is not None:
            progress(number, len(chosen))
        try:
            scope_forecasts.append(_scope(name, carried_on(one, last), question, reported, last))
        except ForecastError as error:
            skipped.append((name, error.reason))
    if not scope_forecasts:
        raise ForecastError(skipped[0][1])
    if scope_forecasts[0].scope == TOTAL:
        scope_forecasts[0] = _with_scope_scenarios(scope_forecasts, chosen, question, reported, last)
    return ForecastAnswer(
        currency, by, question.level, _day(last), drop, tuple(scope_forecasts), tuple(skipped), question.planned,
        question.scenarios, _gap(total),
    )  # fmt: skip


def _gap(total: DailyCost) -> tuple[date, date] | None:
    days = total.days[history_start(total.days, total.cost) :]  # corrections of long ago lie before it
    apart = np.diff(days).astype(int)
    at = int(np.argmax(apart)) if len(apart) else 0
    return (_day(days[at]), _day(days[at + 1])) if len(apart) and apart[at] > _LONG_GAP else None


def _as_spelled(question: Question, scopes: Sequence[str]) -> Question:
    """Scenarios and plans of a tag's value, whichever way they spell it."""
    scenarios = tuple(
        one if one.scope is None else replace(one, scope=known_spelling(one.scope, scopes))
        for one in question.scenarios
    )
    return replace(
        question, scenarios=scenarios, planned=tuple(as_known(one, scopes) for one in question.planned)
    )


def _drop(total: DailyCost, question: Question) -> int:
    if question.completion is not None:
        return 0
    if question.drop_days is not None:
        return question.drop_days
    return late_days(total)


def _dearest(scopes: Mapping[str, DailyCost], top: int) -> dict[str, DailyCost]:
    """The dearest scopes, and the others added up."""
    order = sorted(scopes, key=lambda name: (-float(np.abs(scopes[name].cost).sum()), name))
    chosen = {name: scopes[name] for name in order[:top]}
    rest = {name: scopes[name] for name in order[top:]}
    return chosen | ({OTHERS: total_of(rest)} if rest else {})


def _scope(
    name: str,
    known: DailyCost,
    question: Question,
    reported: np.datetime64,
    last: np.datetime64,
) -> ScopeForecast:
    series = regular_series(known.days, known.cost)
    periods = list(question.calendar.periods(question.size, _day(last) + timedelta(days=1), question.count))
    if question.horizon_days:
        begin, days_ahead = _day(last) + timedelta(days=1), question.horizon_days
        label = f"next {days_ahead} days"
        periods.append(Period(label, begin, begin + timedelta(days=days_ahead), is_horizon=True))
    ends = forecast_periods(
        known.days,
        known.cost,
        used=known.used,
        once=known.once,
        periods=[(np.datetime64(p.start), np.datetime64(p.end)) for p in periods],
        level=question.level,
        completion=question.completion,
        reported_on=reported,
        more_members=question.more_members,
    )
    planned = [one for one in question.planned if name == TOTAL or one.scope == name]
    forecasts = tuple(_period(name, p, end, question, planned) for p, end in zip(periods, ends, strict=True))
    ahead, expected = _by_day(name, periods, ends, question, planned)
    return ScopeForecast(
        name, _day(series.days[0]), _day(series.days[-1]), series.filled, ahead, expected, forecasts,
        next((end.weights for end in ends if end.weights), {}),
    )  # fmt: skip


def _with_scope_scenarios(
    scope_forecasts: Sequence[ScopeForecast],
    chosen: Mapping[str, DailyCost],
    question: Question,
    reported: np.datetime64,
    last: np.datetime64,
) -> ScopeForecast:
    """The total with what scenarios of single scopes change in it."""
    total = scope_forecasts[0]
    named = {one.scope for one in question.scenarios} - {None, TOTAL}
    plain = replace(question, scenarios=tuple(one for one in question.scenarios if one.scope is None))
    for scope in (one for one in scope_forecasts[1:] if one.scope in named):
        before = _scope(scope.scope, carried_on(chosen[scope.scope], last), plain, reported, last)
        periods = tuple(
            _shifted(mine, after.expected - without.expected)
            for mine, after, without in zip(total.periods, scope.periods, before.periods, strict=True)
        )
        expected = total.expected + scope.expected - before.expected
        total = replace(total, periods=periods, expected=expected)
    return total


def _shifted(period: PeriodForecast, amount: float) -> PeriodForecast:
    return replace(
        period, expected=period.expected + amount, low=period.low + amount, high=period.high + amount,
        shift=period.shift + amount,
    )  # fmt: skip


def _left(period: Period, end: MonthEnd) -> NDArray[np.datetime64]:
    """The forecast days of a period."""
    last = np.datetime64(period.end, "D")
    return np.arange(last - end.days_left, last)


def _period(
    name: str, period: Period, end: MonthEnd, question: Question, planned: Sequence[PlannedCost]
) -> PeriodForecast:
    days = _left(period, end)
    changed = day_factors(question.scenarios, name, days)
    base = float(end.expected.sum())
    factor = 1.0 + (float(end.expected @ (changed - 1)) / base if base else 0.0)
    plain = daily_plan_cost(planned, days)
    extra = float((plain * changed).sum())
    spread = plan_spread(planned, days).times(extra / plain.sum() if plain.sum() else 1.0)
    fixed = end.settled_to_date + extra
    rests = (base, end.low - end.settled_to_date, end.high - end.settled_to_date)
    expected, low, high = (fixed + factor * rest for rest in rests)
    low, high = spread.widened(expected, low, high, question.level)
    return PeriodForecast(
        period, end.actual_to_date, end.settled_to_date, expected, low, high, end.landing, extra, factor,
        end.days_left, end.spread, end.backtest, plan_spread=spread,
    )  # fmt: skip


def _by_day(
    name: str,
    periods: Sequence[Period],
    ends: Sequence[MonthEnd],
    question: Question,
    planned: Sequence[PlannedCost],
) -> tuple[NDArray[np.datetime64], Floats]:
    """Expected cost of every forecast day, each from the first period that holds it."""
    by_day: dict[np.datetime64, float] = {}
    for period, end in zip(periods, ends, strict=True):
        for day, cost in zip(_left(period, end), end.expected, strict=True):
            by_day.setdefault(day, float(cost))
    days = np.array(sorted(by_day), dtype="datetime64[D]")
    cost = np.array([by_day[day] for day in days], dtype=float)
    changed = day_factors(question.scenarios, name, days)
    return days, (cost + daily_plan_cost(planned, days)) * changed


def _day(day: np.datetime64) -> date:
    return date.fromisoformat(str(day.astype("datetime64[D]")))
