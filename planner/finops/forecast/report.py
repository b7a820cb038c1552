"""A forecast as a report."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.finops.forecast.answer import TOTAL
from planner.finops.forecast.planned_report import planned_sections, planned_values, planned_words
from planner.finops.forecast.screen import forecast_screen, known_amount, known_cells
from planner.render import numbers
from planner.render.model import Answer, Chart, Column, Section, Table, Value, table_section, versioned
from planner.render.screen import on_screen

if TYPE_CHECKING:
    from collections.abc import Collection

    from planner.finops.forecast.answer import ForecastAnswer, PeriodForecast, ScopeForecast
    from planner.finops.forecast.model import Backtest

_COLUMNS = (
    "scope", "period", "start", "end", "currency", "actual_to_date", "expected", "low", "high", "level_ratio", "base",
    "planned", "scenario_factor", "days_left", "backtest_windows", "backtest_median_error_ratio",
    "backtest_within_12_ratio", "backtest_coverage_ratio",
)  # fmt: skip
_MANY = 8  # scopes: more of them show only their first period


def forecast_report(answer: ForecastAnswer, *, details: Collection[str] = ()) -> Answer:
    """Build the answer in the shape that every format is made of.

    Args:
        answer: the answer.
        details: keys of sections to show in place of the screen, or `all`.
    """
    rows = [_period_values(answer, scope, one) for scope in answer.scopes for one in scope.periods]
    values: dict[str, Any] = {
        "forecast": answer.by, "currency": answer.currency, "last_day": answer.last_day.isoformat(),
        "dropped_days": answer.dropped_days, "level_ratio": answer.level,
        "scenarios": [one.text for one in answer.scenarios],
        "plans": planned_values(answer),
        "scopes": [_scope_values(answer, scope) for scope in answer.scopes],
        "skipped": [{"scope": scope, "reason": reason} for scope, reason in answer.skipped],
    }  # fmt: skip
    flat = [{name: _flat(row, name) for name in _COLUMNS} for row in rows]
    title, summary = _said(answer)
    notes = _notes(answer)
    whole = Answer(
        f"Forecast by {answer.by}", title, summary,
        (_periods(answer), _record(answer), *planned_sections(answer), *notes),
        versioned(values), _COLUMNS, flat, currency=answer.currency, focus=lambda: _focus(answer),
    )  # fmt: skip
    said = [sentence for section in notes for sentence in section.sentences]
    return on_screen(whole, forecast_screen(answer, summary, said), details)


def _focus(answer: ForecastAnswer) -> str:
    from planner.finops.focus_out import focus_csv, forecast_to_focus

    return focus_csv(forecast_to_focus(answer))


def money(value: float, currency: str) -> str:
    """Format an amount: `$1,234.50`, `EUR 1,234.50`; `1,234.50` where the currency is not known."""
    exact = Decimal(repr(round(value, 2)))
    if currency == "USD":
        return numbers.usd(exact)
    return numbers.amount(exact) if currency == "XXX" else f"{currency} {numbers.amount(exact)}"


def _scope_values(answer: ForecastAnswer, scope: ScopeForecast) -> dict[str, Any]:
    return {
        "scope": scope.scope, "first_day": scope.first_day.isoformat(), "last_day": scope.last_day.isoformat(),
        "filled_days": scope.filled_days, "weights": dict(scope.weights),
        "days": [
            {"date": str(day), "expected": float(cost)} for day, cost in zip(scope.days, scope.expected, strict=True)
        ],
        "periods": [_period_values(answer, scope, one) for one in scope.periods],
    }  # fmt: skip


def _period_values(answer: ForecastAnswer, scope: ScopeForecast, one: PeriodForecast) -> dict[str, Any]:
    return {
        "scope": scope.scope, "period": one.period.label, "start": one.period.start.isoformat(),
        "end": one.period.end.isoformat(), "currency": answer.currency, "actual_to_date": one.actual,
        "expected": one.expected, "low": one.low, "high": one.high, "level_ratio": answer.level, "base": one.base,
        "planned": one.planned, "scenario_factor": one.factor, "scenario_shift": one.shift, "days_left": one.days_left,
        "backtest": _backtest_values(one.backtest),
    }  # fmt: skip


def _backtest_values(record: Backtest) -> dict[str, Any]:
    return {
        "windows": record.windows, "horizon_days": record.horizon_days,
        "median_error_ratio": record.median_error_ratio, "p90_error_ratio": record.p90_error_ratio,
        "bias_ratio": record.bias_ratio, "within_12_ratio": record.within_12_ratio,
        "coverage_ratio": record.coverage_ratio,
    }  # fmt: skip


def _flat(row: dict[str, Any], name: str) -> Any:
    value = row["backtest"][name.removeprefix("backtest_")] if name.startswith("backtest_") else row[name]
    return round(value, 6) if isinstance(value, float) else value


def _said(answer: ForecastAnswer) -> tuple[str, tuple[str, ...]]:
    """The verdict and what it rests on."""
    scope = answer.scopes[0]
    first = scope.periods[0]
    headline = (
        f"{scope.scope}: {first.period.label} lands at {_known(answer, first, first.expected)}, "
        f"{_range(answer, first)}"
    )
    summary = [f"cost known to {answer.last_day}" + _dropped(answer)]
    if answer.scenarios:
        summary.append("scenario: " + ", ".join(one.text for one in answer.scenarios))
    if answer.planned:
        inside = sum(one.planned for one in scope.periods if not one.period.is_horizon)
        summary.append(f"{planned_words(answer)}, {money(inside, answer.currency)} of it in these periods")
    return headline, tuple(summary)


def _dropped(answer: ForecastAnswer) -> str:
    if not answer.dropped_days:
        return ""
    days, taken = f"{answer.dropped_days} days are", "them as they are"
    if answer.dropped_days == 1:
        days, taken = "day is", "it as it is"
    return f"; the last {days} left out: the bill is not complete (--drop-days 0 takes {taken})"


def _range(answer: ForecastAnswer, one: PeriodForecast) -> str:
    between = f"{_known(answer, one, one.low)} to {_known(answer, one, one.high)}"
    if one.days_left and one.backtest.is_rough:
        return f"roughly {between}" if one.backtest.windows else "too little history for a range"
    return f"{between} in {numbers.percent(answer.level, 0)} of cases"


def _known(answer: ForecastAnswer, one: PeriodForecast, value: float) -> str:
    """An amount of a period in the digits that its interval leaves."""
    text = known_amount(value, one)
    if answer.currency == "XXX":
        return text
    return f"${text}".replace("$-", "-$") if answer.currency == "USD" else f"{answer.currency} {text}"


def _periods(answer: ForecastAnswer) -> Section:
    many = len(answer.scopes) > _MANY
    rows: list[tuple[Value, ...]] = []
    for scope in answer.scopes:
        shown = scope.periods[:1] if many and scope.scope != TOTAL else scope.periods
        for at, one in enumerate(shown):
            changed = one.planned or one.shift or one.factor != 1
            rows.append((
                "" if at else scope.scope, one.period.label, one.actual or "", *known_cells(one), one.planned or "",
                one.base if changed else "",
            ))  # fmt: skip
    low, high = (1 - answer.level) / 2, (1 + answer.level) / 2
    columns = (
        Column("scope", "scope", "text"), Column("period", "period", "text"),
        Column("actual_to_date", "to date", "money"), Column("expected", "landing", "money"),
        Column("low", f"P{100 * low:.0f}", "money"), Column("high", f"P{100 * high:.0f}", "money"),
        Column("planned", "of it planned", "money"), Column("base", "without changes", "money"),
    )  # fmt: skip
    notes = ("of scopes but the total only the first period is shown; -o csv has all",) if many else ()
    charts = _charts(answer.scopes[0])
    return table_section("forecast", "Forecast", columns, rows, notes, charts=charts)


def _charts(scope: ScopeForecast) -> tuple[Chart, ...]:
    """The periods with their ranges, and the days ahead."""
    names = tuple(one.period.label for one in scope.periods)
    cells = [
        [value if isinstance(value, float) else None for value in known_cells(one)] for one in scope.periods
    ]
    ends = tuple(zip(("landing", "landing low", "landing high"), zip(*cells, strict=True), strict=True))
    days, costs = tuple(str(day) for day in scope.days), tuple(float(cost) for cost in scope.expected)
    periods = Chart(
        "periods", f"Where {scope.scope} lands", "dots", names, ends, "money", "", drawn_only=True
    )
    daily = Chart(
        "days", "Expected cost a day", "lines", days, (("expected", costs),), "money", "", drawn_only=True
    )
    return (periods, daily) if len(days) > 1 else (periods,)


def _record(answer: ForecastAnswer) -> Section:
    """How the method did on each scope's own past."""
    rows: list[tuple[Value, ...]] = []
    for scope in answer.scopes:
        one = scope.periods[-1].backtest
        if one.windows:
            rows.append((
                scope.scope, f"{one.windows:,} of {one.horizon_days} d", one.median_error_ratio, one.within_12_ratio,
                one.coverage_ratio, one.bias_ratio,
            ))  # fmt: skip
        else:
            rows.append((scope.scope, "none: history too short", "", "", "", ""))
    columns = (
        Column("scope", "scope", "text"), Column("windows", "windows", "text"),
        Column("median_error_ratio", "median error", "ratio"), Column("within_12_ratio", "within 12 %", "ratio", 0),
        Column("coverage_ratio", f"{answer.level:.0%} held", "ratio", 0), Column("bias_ratio", "bias", "ratio"),
    )  # fmt: skip
    record = Table("record", "", columns, tuple(rows), shown=len(rows))
    return Section("record", "Record on the past", tables=(record,))


def _notes(answer: ForecastAnswer) -> list[Section]:
    items = [f"{scope}: no forecast: {reason}" for scope, reason in answer.skipped]
    if answer.gap:
        items.append("no day between {} and {} has a cost; is one of these dates wrong?".format(*answer.gap))
    total = answer.scopes[0]
    short = [one.period.label for one in total.periods if one.period.start < total.first_day]
    items += [f"{label}: cost before {total.first_day} is not known and not counted" for label in short]
    one = total.periods[-1]
    if one.days_left and one.backtest.is_rough:
        items.append(
            f"the history is short: past windows of {one.days_left} days that do not overlap: "
            f"{one.backtest.windows_apart}; take the intervals as a rough guide"
        )
    filled = max(scope.filled_days for scope in answer.scopes)
    if filled:
        items.append(
            f"days without a row, at most {filled} of a scope, were filled in from the same weekdays"
        )
    return [Section("notes", "Notes", tuple(items), warning=True)] if items else []
