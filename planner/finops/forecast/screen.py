"""The screen of a forecast: where the running period lands, what follows it, and how good the method was before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.render.model import Column, Section, Value, table_section
from planner.render.numbers import percent
from planner.render.precision import figure, known_places, rounded
from planner.render.screen import Row, Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.finops.forecast.answer import ForecastAnswer, PeriodForecast

NEXT = ("forecast --focus BILL -o json --out forecast.json", "budget BUDGETS --focus BILL")
NEXT_DAILY = ("forecast --daily COSTS -o json --out forecast.json", "budget BUDGETS --daily COSTS")
_OF_DAILY = (
    "scope"  # what scopes of a file of daily costs are called; those of a bill have their dimension's name
)
_MOST_SCOPES = 12
_WHOLE_FROM = 100  # amounts that are known are in whole units from here on


def forecast_screen(answer: ForecastAnswer, known: Sequence[str], notes: Sequence[str]) -> Screen:
    """Return the screen.

    Args:
        answer: the answer.
        known: until when cost is known, and what scenarios and plans change.
        notes: what the reader must know.
    """
    total = answer.scopes[0]
    currency = "no currency stated" if answer.currency == "XXX" else answer.currency
    asked = f"{total.scope} by {answer.by}, {currency}: {known[0]}" if answer.by != total.scope else (
        f"{total.scope}, {currency}: {known[0]}"
    )  # fmt: skip
    rows: list[Row] = [
        (
            f"period_{at}",
            "lands" if not at else ("then" if at == 1 else ""),
            one.expected,
            "money",
            _said(answer, one),
        )
        for at, one in enumerate(total.periods)
    ]
    rows += [
        (f"known_{at}", "with" if not at else "", text, "text", text) for at, text in enumerate(known[1:])
    ]
    following = NEXT_DAILY if answer.by == _OF_DAILY else NEXT
    return Screen(asked, rows, _table(answer), notes, _record(answer), following, "Before you rely on it")


def known_amount(value: float, one: PeriodForecast) -> str:
    """An amount of a period in the digits that its interval leaves."""
    return figure(value, _places(one))


def _places(one: PeriodForecast) -> int:
    """Decimals to which the end of a period is known; once it is over that of what was reported."""
    if not one.days_left:
        return _exact_places(one.expected)
    half = (one.high - one.low) / 2.0
    # of next to nothing between wide bounds no digit is known but what the bounds show
    size = one.expected if abs(one.expected) >= half else max(abs(one.low), abs(one.high))
    return min(known_places(size, half), 2)


def _exact_places(value: float) -> int:
    return 0 if abs(value) >= _WHOLE_FROM else 2


def _said(answer: ForecastAnswer, one: PeriodForecast) -> str:
    text = f"{one.period.label} at {known_amount(one.expected, one)}"
    between = f"{known_amount(one.low, one)} to {known_amount(one.high, one)}"
    if not one.days_left:
        text += "; it is over"
    elif one.backtest.is_rough:
        text += f"; roughly {between}" if one.backtest.windows else "; too little history for a range"
    else:
        text += f"; {percent(answer.level, 0)}: {between}"
    if one.actual and one.days_left:
        text += f"; {figure(one.actual, _exact_places(one.actual))} spent so far"
    return text


def _table(answer: ForecastAnswer) -> Section | None:
    """One row a scope: the running period and the next; nothing where the total is all there is."""
    scopes = answer.scopes[1:]
    if not scopes:
        return None
    columns = [Column("scope", answer.by, "text"), Column("actual_to_date", "to date", "number", 6)]
    labels = [one.period.label for one in answer.scopes[0].periods[:2]]
    for at, label in enumerate(labels):
        columns += [
            Column(f"expected_{at}", label, "number", 6),
            Column(f"low_{at}", "P10", "number", 6), Column(f"high_{at}", "P90", "number", 6),
        ]  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for scope in scopes:
        spent = scope.periods[0].actual
        row: list[Value] = [scope.scope, float(rounded(spent, _exact_places(spent)))]
        for one in scope.periods[: len(labels)]:
            row += known_cells(one)
        rows.append(tuple(row))
    return table_section("scopes", "By scope", columns, rows, shown=_MOST_SCOPES)


def known_cells(one: PeriodForecast) -> tuple[Value, Value, Value]:
    """What a period is expected at, and its range, in the digits that are known; no range where none was tried."""
    has_range = one.backtest.windows or not one.days_left
    expected, low, high = (float(rounded(value, _places(one))) for value in (one.expected, one.low, one.high))
    return (expected, low, high) if has_range else (expected, "", "")


def _record(answer: ForecastAnswer) -> str:
    one = answer.scopes[0].periods[-1].backtest
    if not one.windows:
        return "Not tested: the history is too short for a window of the past."
    return (
        f"Tested on {one.windows:,} past windows of {one.horizon_days} days: median error "
        f"{percent(one.median_error_ratio)}, {percent(one.coverage_ratio, 0)} of them inside the "
        f"{percent(answer.level, 0)} interval."
    )
