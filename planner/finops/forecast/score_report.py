"""How saved forecasts did, as a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from planner.errors import InputError
from planner.finops.forecast.report import money
from planner.finops.forecast.score import accuracy
from planner.render import numbers
from planner.render.model import Answer, Column, Section, Value, table_section, versioned

if TYPE_CHECKING:
    from planner.finops.forecast.score import Accuracy, Score

_COLUMNS = (
    "scope", "vintage", "period", "days_ahead", "forecast", "low", "high", "actual", "error_ratio", "held",
)  # fmt: skip


def score_report(scores: Sequence[Score], currency: str) -> Answer:
    """Build the answer: single periods for programs, scopes and vintages for people.

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
    first = scopes[0]
    title = (
        f"{first.scope}: {first.count} forecast periods missed by {numbers.percent(first.error_ratio)} in all"
    )
    spent = sum(one.actual for one in scores if one.scope == first.scope)
    return Answer(
        "How forecasts did", title, (f"against {money(spent, currency)} that came",),
        (_table("scopes", "By scope", scopes), _table("vintages", "By vintage", vintages)), versioned(values),
        _COLUMNS, flat, currency=currency,
    )  # fmt: skip


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


def _table(key: str, title: str, taken: Sequence[Accuracy]) -> Section:
    rows: list[tuple[Value, ...]] = [
        (one.scope, one.vintage.isoformat() if one.vintage else "all", one.count, one.error_ratio,
         one.median_error_ratio, one.bias_ratio, one.held_ratio)
        for one in taken
    ]  # fmt: skip
    columns = (
        Column("scope", "scope", "text"), Column("vintage", "costs known to", "date"),
        Column("count", "periods", "count"), Column("error_ratio", "error", "ratio"),
        Column("median_error_ratio", "median", "ratio"), Column("bias_ratio", "bias", "ratio"),
        Column("held_ratio", "interval held", "ratio", 0),
    )  # fmt: skip
    return table_section(key, title, columns, rows)
