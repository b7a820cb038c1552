"""How saved forecasts did, as a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.finops.forecast.report import money
from planner.finops.forecast.score import accuracy
from planner.render import numbers
from planner.render.document import Document, Grid
from planner.render.report import Report

if TYPE_CHECKING:
    from planner.finops.forecast.score import Accuracy, Score

_COLUMNS = (
    "scope", "vintage", "period", "days_ahead", "forecast", "low", "high", "actual", "error_ratio", "held",
)  # fmt: skip


def score_report(scores: Sequence[Score], currency: str) -> Report:
    """Build the report: single periods for programs, scopes and vintages for people.

    Raises:
        InputError: no forecast period is over.
    """
    if not scores:
        raise InputError(
            "--score: no period of the saved forecasts is over, or their scopes have no cost here"
        )
    rows = [_values(one) for one in scores]
    scopes, vintages = accuracy(scores), accuracy(scores, by_vintage=True)
    values: dict[str, Any] = {
        "currency": currency, "scores": rows, "scopes": [_taken(one) for one in scopes],
        "vintages": [_taken(one) for one in vintages],
    }  # fmt: skip
    flat = [row | {"held": "yes" if row["held"] else "no"} for row in rows]
    return Report(_document(scores, scopes, vintages, currency), values, _COLUMNS, flat)


def _values(one: Score) -> dict[str, Any]:
    return {
        "scope": one.scope, "vintage": one.vintage.isoformat(), "period": one.period, "days_ahead": one.days_ahead,
        "forecast": one.forecast, "low": one.low, "high": one.high, "actual": one.actual,
        "error_ratio": one.error_ratio, "held": one.held,
    }  # fmt: skip


def _taken(one: Accuracy) -> dict[str, Any]:
    return {
        "scope": one.scope, "vintage": one.vintage.isoformat() if one.vintage else None, "count": one.count,
        "error_ratio": one.error_ratio, "median_error_ratio": one.median_error_ratio, "bias_ratio": one.bias_ratio,
        "held_ratio": one.held_ratio,
    }  # fmt: skip


def _document(
    scores: Sequence[Score], scopes: Sequence[Accuracy], vintages: Sequence[Accuracy], currency: str
) -> Document:
    first = scopes[0]
    headline = (
        f"{first.scope}: {first.count} forecast periods missed by {numbers.percent(first.error_ratio)} in all"
    )
    spent = sum(one.actual for one in scores if one.scope == first.scope)
    return Document(
        headline, (f"against {money(spent, currency)} that came",),
        (_grid("By scope", scopes), _grid("By vintage", vintages)), True,
    )  # fmt: skip


def _grid(title: str, rows: Sequence[Accuracy]) -> Grid:
    cells = [
        (one.scope, one.vintage.isoformat() if one.vintage else "all", f"{one.count:,}",
         numbers.percent(one.error_ratio), numbers.percent(one.median_error_ratio), numbers.percent(one.bias_ratio),
         numbers.percent(one.held_ratio, 0))
        for one in rows
    ]  # fmt: skip
    header = ("scope", "costs known to", "periods", "error", "median", "bias", "interval held")
    return Grid(title, header, tuple(cells), "llrrrrr")
