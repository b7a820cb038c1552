"""How good were earlier forecasts of the month?"""

from __future__ import annotations

from typing import Any

from planner.finops.review.inputs import Inputs, month_name
from planner.finops.review.model import Figure, Table
from planner.finops.review.parts import figure, percent, table

_DIMENSIONS = ("provider", "service", "project")


def scores(inputs: Inputs) -> list[Any]:
    """F's `Score` of each saved forecast of the month, oldest first; worked out once."""
    if "scores" not in inputs.answers:
        inputs.answers["scores"] = _scores(inputs) if inputs.forecasts else []
    found: list[Any] = inputs.answers["scores"]
    return found


def _scores(inputs: Inputs) -> list[Any]:
    from planner.finops.forecast.bill import TOTAL, daily_of_bill
    from planner.finops.forecast.score import score_forecasts

    wanted = {row["scope"] for one in inputs.forecasts for s in one["scopes"] for row in s["periods"]} - {
        TOTAL
    }
    actual = daily_of_bill(inputs.bill)
    for name in _DIMENSIONS:
        if wanted - actual.keys():
            actual = {**daily_of_bill(inputs.bill, name), **actual}
    month = f"{inputs.month:%Y-%m}"
    own = [s for s in score_forecasts(inputs.forecasts, actual) if s.period == month]
    return sorted(own, key=lambda s: (s.vintage, s.scope))


def figures(inputs: Inputs) -> list[Figure]:
    """Error, bias and hit rate over all of them."""
    found = scores(inputs)
    if not found:
        return []
    from planner.finops.forecast.score import accuracy

    newest = max((s for s in found), key=lambda s: (s.scope == "total", s.vintage))
    (whole,) = accuracy([s for s in found if s.scope == newest.scope])
    lacking = "nothing was spent"
    return [
        figure(inputs, "forecast_error_ratio", "Error of the newest earlier forecast", newest.error_ratio, "ratio",
               lacking=lacking),
        figure(inputs, "forecast_bias_ratio", "Bias of the earlier forecasts", whole.bias_ratio, "ratio",
               lacking=lacking),
        figure(inputs, "forecast_held_ratio", "Earlier intervals that held", whole.held_ratio, "ratio"),
    ]  # fmt: skip


def tables(inputs: Inputs) -> list[Table]:
    """Each forecast beside what came."""
    rows = [
        (s.vintage.isoformat(), s.scope, s.forecast, s.low, s.high, s.actual, s.error_ratio, "yes" if s.held else "no")
        for s in scores(inputs)
    ]  # fmt: skip
    if not rows:
        return []
    return [table(
        "forecast_accuracy", f"Earlier forecasts of {month_name(inputs.month)}", [("vintage", "Made with data to",
        "date"), ("scope", "Scope", "text"), ("forecast", "Forecast", "money"), ("low", "Low", "money"),
        ("high", "High", "money"), ("actual", "Actual", "money"), ("error", "Error", "ratio"),
        ("held", "Inside the interval", "text")], rows,
        "FinOps maturity: crawl about 20 %, walk 15 %, run at most 12 % off.",
    )]  # fmt: skip


def verdict_words(inputs: Inputs) -> str:
    """The total against its newest forecast, once the month is over."""
    total = [s for s in scores(inputs) if s.scope == "total" and s.forecast > 0]
    if not total or not inputs.is_complete:
        return ""
    gap = total[-1].actual / total[-1].forecast - 1
    side = "above" if gap > 0 else "below"
    return f"{percent(abs(gap))} {side} the forecast made with data to {total[-1].vintage:%-d %B}"
