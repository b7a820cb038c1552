"""Where will cost go, was the budget kept, and how good were earlier forecasts?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from planner.errors import InputError
from planner.finops.bought_once import bought_once, once_by_day, once_words
from planner.finops.monthly_fees import fees_to_come
from planner.finops.provider_days import lost_words
from planner.finops.review.inputs import Inputs, month_end, month_name
from planner.finops.review.model import Chart, Figure, Section
from planner.finops.review.parts import figure, flagged, money, nothing, percent
from planner.finops.review.sections import earlier
from planner.finops.review.sections.budgets import budget_figures, budget_table, budget_words
from planner.finops.review.sections.things import least_amount
from planner.records import record
from planner.render.currency import UNKNOWN_CURRENCY, with_currency
from planner.render.precision import figure as in_places
from planner.render.precision import known_places

TITLE = "Where will cost go?"
LEVEL = 0.8
PAST_DAYS = 60
EFFECTIVE = "forecast_effective_money"  # the gate's name for what the forecast is made from
ENOUGH_WINDOWS = (
    5  # that do not overlap: with fewer, what share of them an interval held says next to nothing
)
_TOO_WIDE = "its range is too wide to be of use"
_SHORT = "the history is too short to try the method on it"
_NO_ERROR_RATIO = 0.0005  # reads as 0.0 %
_NO_RANGE = "the totals were met, so the range has no width"
_JUDGED_DAYS = 14  # as many days are needed to see that the last ones are late


@record(frozen=True, eq=False)
class Outlook:
    """The forecast of the review: the rest of the month if it is not over, else the month after.

    Attributes:
        month_end: F's `MonthEnd` of the month that is forecast.
        daily: F's `DailyForecast` of the days up to its end.
        name: the month that is forecast.
    """

    month_end: Any
    daily: Any
    name: str


def outlook(inputs: Inputs) -> Outlook | str:
    """The forecast, or why there is none; worked out once."""
    if "outlook" not in inputs.answers:
        inputs.answers["outlook"] = _outlook(inputs)
    answer: Outlook | str = inputs.answers["outlook"]
    return answer


def _outlook(inputs: Inputs) -> Outlook | str:
    from planner.finops.forecast.completion import late_days
    from planner.finops.forecast.daily import DailyCost
    from planner.finops.forecast.model import forecast_daily, forecast_month_end

    if not inputs.with_forecast:
        return "No forecast was requested."
    status, reason = inputs.gate.status(EFFECTIVE)
    if status == "withheld":
        return f"No forecast can be made: {reason}."
    days, cost = inputs.series()
    target = inputs.month
    keep = days < np.datetime64(inputs.end)  # a review of an old month does not look ahead of it
    days, cost = days[keep], cost[keep]
    late = None if inputs.is_complete else inputs.completion
    if not inputs.is_complete and late is None and len(days) > _JUDGED_DAYS:
        # the last days of an open month may be reported in part
        kept = days <= days[-1] - late_days(DailyCost(days, cost, _used(inputs, days)))
        days, cost = days[kept], cost[kept]
    if inputs.is_complete:
        target = month_end(inputs.month)
    ahead = int((np.datetime64(month_end(target)) - days[-1]).astype(int)) - 1 if len(days) else 1
    given = {
        "used": _used(inputs, days),
        "once": _once(inputs, days, "cost"),
        "level": LEVEL,
        "completion": late,
    }
    try:
        landing = forecast_month_end(days, cost, month=target, **given)
        daily = forecast_daily(days, cost, horizon_days=ahead, **given)
    except InputError as error:
        return f"No forecast can be made: {error}."
    return Outlook(landing, daily, month_name(target))


def _used(inputs: Inputs, days: Any) -> Any:
    """Cost of use alone on these days: fees and credits of single days say nothing of how late a bill is."""
    use = inputs.daily[inputs.daily["charge_category"] == "Usage"]
    sums = use.groupby(use["day"].to_numpy().astype("datetime64[D]"))["effective_cost"].sum()
    return sums.reindex(days, fill_value=0.0).to_numpy(dtype=float) - _once(inputs, days, "used")


def _once(inputs: Inputs, days: Any, column: str) -> Any:
    """What was bought once, or of it what is charged as use, on these days."""
    if "once" not in inputs.answers:
        inputs.answers["once"] = once_by_day(inputs.bill, "''", end=inputs.end)
    frame = inputs.answers["once"]
    sums = frame.groupby(frame["x_day"].to_numpy().astype("datetime64[D]"))[column].sum()
    return sums.reindex(days, fill_value=0.0).to_numpy(dtype=float)


def build(inputs: Inputs) -> Section:
    """The fan with its record, budgets, and the score of earlier forecasts."""
    ahead = outlook(inputs)
    budgets = budget_table(inputs)
    extra = [*([budgets] if budgets else []), *earlier.tables(inputs)]
    past = [*budget_figures(inputs), *earlier.figures(inputs)]
    if isinstance(ahead, str):
        if not extra:
            return nothing("forecast", TITLE, ahead)
        return Section("forecast", TITLE, (ahead, *budget_words(inputs)), tuple(past), tuple(extra))
    end, currency = ahead.month_end, inputs.bill.currency
    test, known = end.backtest, bool(end.backtest.windows or not end.days_left)
    said = [
        f"{ahead.name} is expected to cost {known_money(end, end.landing, currency)}{_between(end, currency)}.",
        *_once_words(inputs),
        *(f"{words}." for words in lost_words(inputs.gate.providers, inputs.month, inputs.bill.currency)),
        *([] if inputs.is_complete else _fees(inputs)),
        _record(test),
        *budget_words(inputs),
    ]
    figures = [
        _landing(inputs, "forecast_landing_money", f"{ahead.name}, expected", end.landing, end),
        _rough(_landing(inputs, "forecast_low_money", "Low", end.low if known else None, end), end),
        _rough(_landing(inputs, "forecast_high_money", "High", end.high if known else None, end), end),
        figure(inputs, "forecast_days_count", "Days that are forecast", end.days_left, "days"),
        *_test(inputs, test),
        *past,
    ]
    return Section("forecast", TITLE, tuple(said), tuple(figures), tuple(extra), (_fan(inputs, ahead),))


def _once_words(inputs: Inputs) -> list[str]:
    """What was bought once, which the forecast does not expect again."""
    if inputs.answers["once"].empty:
        return []
    words = once_words(bought_once(inputs.bill, end=inputs.end), least_amount(inputs), inputs.bill.currency)
    return [f"{words[0].upper()}{words[1:]}."] if words else []


def _fees(inputs: Inputs) -> list[str]:
    """Monthly fees that the forecast of the running month leaves out."""
    words = fees_to_come(inputs.bill, inputs.last_day)
    return [f"{words}."] if words else []


def _test(inputs: Inputs, test: Any) -> list[Figure]:
    lacking = _SHORT
    return [
        figure(inputs, "forecast_windows_count", "Earlier periods tried", test.windows, "count"),
        figure(inputs, "forecast_median_error_ratio", "Median error on them", test.median_error_ratio,
               "ratio", lacking=lacking),
        figure(inputs, "forecast_within_12_ratio", "Periods missed by at most 12 %", test.within_12_ratio, "ratio",
               lacking=lacking),
        figure(inputs, "forecast_hit_ratio", f"Periods inside the {percent(LEVEL, 0)} range", _held(test),
               "ratio", lacking=lacking if test.coverage_ratio is None else _NO_RANGE),
    ]  # fmt: skip


def _landing(inputs: Inputs, key: str, label: str, value: float | None, end: Any) -> Figure:
    """A figure of the forecast, which people read in the digits that are known."""
    made = figure(inputs, key, label, value, "money", lacking=_SHORT)
    words = "" if made.value is None or value is None else known_money(end, value, inputs.bill.currency)
    return replace(made, words=words)


def known_money(end: Any, value: float, currency: str) -> str:
    """An amount of the month's forecast in the digits that its interval leaves: `175,000 EUR`; all once it is over."""
    if not end.days_left:
        return money(value, currency)
    half = (end.high - end.low) / 2 if end.backtest.windows else 0.0
    # of next to nothing between wide bounds no digit is known but what the bounds show
    size = end.landing if abs(end.landing) >= half else max(abs(end.low), abs(end.high))
    places = min(known_places(size, half), 2 if abs(size) < 100 else 0)
    return with_currency(in_places(value, places), currency)


def _is_rough(end: Any) -> bool:
    return bool(end.days_left) and end.backtest.is_rough


def _rough(figure: Figure, end: Any) -> Figure:
    return flagged(figure, "the history is short: a rough guide") if _is_rough(end) else figure


def range_words(outlook: Outlook) -> str:
    """The interval for the verdict, and how far it can be believed."""
    end = outlook.month_end
    if end.days_left and not end.backtest.windows:
        return "too little history for a range"
    if end.low < 0 < end.landing:
        return _TOO_WIDE
    return _likely(end, UNKNOWN_CURRENCY)


def _between(end: Any, currency: str) -> str:
    if end.days_left and not end.backtest.windows:
        return ""
    if end.low < 0 < end.landing:
        return f" ({_TOO_WIDE})"
    return f", {_likely(end, currency)}"


def _likely(end: Any, currency: str) -> str:
    sure = "roughly" if _is_rough(end) else f"{percent(LEVEL, 0)} likely"
    low, high = (known_money(end, one, currency) for one in (end.low, end.high))
    if low == high:
        return "with next to no error on earlier periods"
    return f"{sure} between {low} and {high}"


def _held(test: Any) -> float | None:
    """The share of earlier totals inside the range; None where it has no width: there a rounded cent is outside."""
    no_error = test.p90_error_ratio is not None and test.p90_error_ratio < _NO_ERROR_RATIO
    return None if no_error else test.coverage_ratio


def _record(test: Any) -> str:
    if not test.windows or test.median_error_ratio is None:
        return f"{_SHORT.capitalize()}."
    error = percent(test.median_error_ratio) if test.median_error_ratio <= 1 else "more than 100 %"
    share = _held(test)
    held = (
        "" if share is None else f"; {percent(share, 0)} of the totals lay in its {percent(LEVEL, 0)} range"
    )
    said = (
        f"Tried on {test.windows} earlier periods of {test.horizon_days} days of this bill, the same method missed the "
        f"total by {error} in the median{held}."
    )
    if not test.is_rough:
        return said
    apart = f"only {test.windows_apart} independent one{'s' * (test.windows_apart != 1)}"
    return f"{said} The periods overlap and count as {apart}: too few to judge by."


def _fan(inputs: Inputs, outlook: Outlook) -> Chart:
    days, cost = inputs.series()
    keep = days < np.datetime64(inputs.end)
    days, cost = days[keep][-PAST_DAYS:], cost[keep][-PAST_DAYS:]
    daily = outlook.daily
    shown = outlook.month_end.backtest.windows > 0
    labels = tuple(str(d) for d in [*days, *daily.days])
    past, ahead = (None,) * len(days), (None,) * len(daily.days)
    # the interval of one day: what the cumulative interval grows by, seen from the expected day
    low = _per_day(daily.cumulative_low, daily.expected)
    high = _per_day(daily.cumulative_high, daily.expected)
    series = (
        ("actual", (*map(float, cost), *ahead)), ("expected", (*past, *map(float, daily.expected))),
        ("low", (*past, *(float(v) if shown else None for v in np.minimum(low, daily.expected)))),
        ("high", (*past, *(float(v) if shown else None for v in np.maximum(high, daily.expected)))),
    )  # fmt: skip
    end = outlook.month_end
    said = f"{outlook.name} is expected at {known_money(end, end.landing, inputs.bill.currency)}."
    return Chart("forecast_fan", "Cost per day and its forecast", "fan", labels, series, "money", said)


def _per_day(cumulative: Any, expected: Any) -> Any:
    """The expected day moved by the mean daily width of the interval of the total up to it."""
    width = cumulative - np.cumsum(expected)
    return expected + width / np.arange(1, len(width) + 1)
