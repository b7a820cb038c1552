"""FinOps: reading bills, the monthly review, the forecast, the budget, and plan against bill.

What notebooks and programs use stands here; each name is imported when it is first used:

    from planner import finops

    with finops.open_bill(["bill/"]) as bill:
        review = finops.review_bill(bill)
    print(finops.render_review(review, "table"))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.finops.budget.answer import check_budgets
    from planner.finops.forecast.answer import Question, forecast_scopes
    from planner.finops.forecast.daily import load_daily, total_of
    from planner.finops.forecast.model import forecast_daily, forecast_month_end
    from planner.finops.forecast.scenarios import parse_scenario
    from planner.finops.forecast.source import read_costs
    from planner.finops.plan_vs_actual import load_plans
    from planner.finops.read import open_bill
    from planner.finops.read.mapping import read_mapping
    from planner.finops.read.rates import load_rates
    from planner.finops.review.answer import review_bill
    from planner.finops.review.model import Chart, Column, Figure, Review, Section, Table
    from planner.finops.review.report import render_review
    from planner.finops.usage.read import load_usage
    from planner.finops.utilisation import load_utilisation
    from planner.inputs.budget_load import load_budgets
    from planner.render.notebook import show

_MODEL = "planner.finops.review.model"
_PLACES = {
    "Chart": _MODEL,
    "Column": _MODEL,
    "Figure": _MODEL,
    "Question": "planner.finops.forecast.answer",
    "Review": _MODEL,
    "Section": _MODEL,
    "Table": _MODEL,
    "check_budgets": "planner.finops.budget.answer",
    "forecast_daily": "planner.finops.forecast.model",
    "forecast_month_end": "planner.finops.forecast.model",
    "forecast_scopes": "planner.finops.forecast.answer",
    "load_budgets": "planner.inputs.budget_load",
    "load_daily": "planner.finops.forecast.daily",
    "load_plans": "planner.finops.plan_vs_actual",
    "load_rates": "planner.finops.read.rates",
    "load_usage": "planner.finops.usage.read",
    "load_utilisation": "planner.finops.utilisation",
    "open_bill": "planner.finops.read",
    "parse_scenario": "planner.finops.forecast.scenarios",
    "read_costs": "planner.finops.forecast.source",
    "read_mapping": "planner.finops.read.mapping",
    "render_review": "planner.finops.review.report",
    "review_bill": "planner.finops.review.answer",
    "show": "planner.render.notebook",
    "total_of": "planner.finops.forecast.daily",
}
__all__ = [
    "Chart",
    "Column",
    "Figure",
    "Question",
    "Review",
    "Section",
    "Table",
    "check_budgets",
    "forecast_daily",
    "forecast_month_end",
    "forecast_scopes",
    "load_budgets",
    "load_daily",
    "load_plans",
    "load_rates",
    "load_usage",
    "load_utilisation",
    "open_bill",
    "parse_scenario",
    "read_costs",
    "read_mapping",
    "render_review",
    "review_bill",
    "show",
    "total_of",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is used."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted({*globals(), *__all__})
