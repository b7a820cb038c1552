"""Plans and forecasts in the shape of FOCUS 1.4 CostAndUsage, so that they sit beside actuals in any FOCUS tool.

Every row says in `ChargeDescription` that it is no charge, carries `x_row_kind` (`forecast` or `plan`) and its range in
`x_low_cost` and `x_high_cost`; tags carry `run_id`. Columns that a forecast cannot know are empty, as FOCUS asks for
values that do not exist.
"""

from __future__ import annotations

import csv
import functools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from planner.errors import InputError
from planner.plan.ids import CostId
from planner.render.csv import csv_text
from planner.render.currency import UNKNOWN_CURRENCY

if TYPE_CHECKING:
    from planner.finops.forecast.answer import ForecastAnswer, ScopeForecast
    from planner.plan.model import CostLine, Plan, PlanLine
    from planner.render.model import Answer

Row = dict[str, str]
EXTRA = ("x_row_kind", "x_low_cost", "x_high_cost", "x_scope", "x_period")
_DATASET, _VERSION = "CostAndUsage", "1.4"
_DATA = Path(__file__).parent / "data" / "focus_columns.csv"
_MOST_HOURS = 100 * 366 * 24.0  # a century: what a date still has room for


@functools.cache
def focus_names() -> tuple[str, ...]:
    """The columns of FOCUS 1.4 CostAndUsage, in the order of the data file."""
    with _DATA.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return tuple(row["column"] for row in rows if row["dataset"] == _DATASET and not row["until"])


def focus_csv(rows: Iterable[Mapping[str, str]]) -> str:
    """FOCUS rows as CSV: all columns of 1.4, then ours."""
    return csv_text((*focus_names(), *EXTRA), rows)


def forecast_to_focus(answer: ForecastAnswer) -> list[Row]:
    """One row per scope and day; the interval stands on each period's first forecast day.

    Where there are scopes besides the total, the total is left out: rows must add up.

    Raises:
        InputError: the currency is not known.
    """
    from planner.finops.forecast.answer import TOTAL

    if answer.currency == UNKNOWN_CURRENCY:
        raise InputError("-o focus: the currency is not known; name it with --currency")
    scopes = [one for one in answer.scopes if one.scope != TOTAL] or list(answer.scopes)
    return [row for scope in scopes for row in _scope_rows(answer, scope)]


def plan_to_focus(plan: Plan) -> list[Row]:
    """One row per line and cost of a plan, with the cost in the worst case beside it; an infeasible answer has none."""
    start = _moment(plan.start)
    hours = plan.hours if math.isfinite(plan.hours) else _MOST_HOURS
    end = start + timedelta(hours=min(max(hours, 1 / 60), _MOST_HOURS))
    total = float(plan.total_usd)
    worst = total if plan.risk is None else float(plan.risk.worst_cost_usd)
    return [
        _plan_row(plan, line, cost, start, end, worst / total if total else 0.0)
        for line in plan.lines
        for cost in line.costs
    ]


def with_focus(answer: Answer, plan: Plan) -> Answer:
    """The answer of a plan with its rows of FOCUS."""
    return replace(answer, focus=lambda: focus_csv(plan_to_focus(plan)))


def _scope_rows(answer: ForecastAnswer, scope: ScopeForecast) -> list[Row]:
    rows: list[Row] = []
    bounds: dict[str, tuple[str, float, float]] = {}
    for one in scope.periods:
        if one.days_left and not one.period.is_horizon:
            first = max(one.period.start, answer.last_day + timedelta(days=1)).isoformat()
            bounds[first] = (one.period.label, one.low - one.actual, one.high - one.actual)
    for day, cost in zip(scope.days, scope.expected, strict=True):
        start = _moment(str(day))
        label, low, high = bounds.get(str(day), ("", None, None))
        row = _row(start, start + timedelta(days=1), float(cost), answer.currency)
        description = f"forecast of {scope.scope}, made with costs to {answer.last_day}"
        row |= {
            "ChargeDescription": description, "ChargeCategory": "Usage", "ServiceName": "Forecast",
            "ServiceCategory": "Other", "ServiceSubcategory": "Other (Other)", "x_row_kind": "forecast",
            "x_scope": scope.scope, "x_period": label, "Tags": json.dumps(_scope_tags(answer.by, scope.scope)),
            "x_low_cost": "" if low is None else _number(low), "x_high_cost": "" if high is None else _number(high),
        }  # fmt: skip
        rows.append(row | _dimension(answer.by, scope.scope))
    return rows


def _scope_tags(by: str, scope: str) -> dict[str, str]:
    kind, _, key = by.partition(":")
    return {key: scope} if kind == "tag" and scope != "(none)" else {}


def _dimension(by: str, scope: str) -> Row:
    """The FOCUS column that a scope is a value of."""
    from planner.finops.forecast.bill import DIMENSIONS

    if by not in DIMENSIONS or scope in ("(none)", "(others)"):
        return {}
    return {DIMENSIONS[by]: scope}


def _plan_row(
    plan: Plan, line: PlanLine, cost: CostLine, start: datetime, end: datetime, worst_ratio: float
) -> Row:
    """One cost of a line; `worst_ratio` is the plan's worst case over its expected cost."""
    compute, spot = cost.id == CostId.COMPUTE, line.purchase_option == "spot"
    quantity, amount = _number(float(cost.quantity)), float(cost.amount_usd)
    tags = {"workload": plan.workload, "run_id": plan.run_id}
    row = _row(start, end, amount, plan.currency)
    return row | {
        "ChargeDescription": f"plan, not charged: {cost.label} for {plan.workload}",
        "ChargeCategory": "Usage",
        "PricingCategory": "Dynamic" if compute and spot else "Standard",
        "PricingQuantity": quantity,
        "PricingUnit": cost.unit,
        "ListUnitPrice": _number(float(cost.unit_price) * float(cost.usd_per_currency)),
        "ConsumedQuantity": quantity,
        "ConsumedUnit": cost.unit,
        "ServiceProviderName": line.provider,
        "HostProviderName": line.provider,
        "InvoiceIssuerName": line.provider,
        "RegionId": line.region,
        "RegionName": line.region,
        "AvailabilityZone": line.zone,
        "ResourceType": line.instance_type,
        "ServiceName": "Compute" if compute else cost.kind.capitalize(),
        "ServiceCategory": "Compute" if compute else "Other",
        "ServiceSubcategory": "Virtual Machines" if compute else "Other (Other)",
        "SkuId": line.offer_id,
        "Tags": json.dumps({key: value for key, value in tags.items() if value}),
        "x_row_kind": "plan",
        "x_low_cost": _number(amount),
        "x_high_cost": _number(max(amount * worst_ratio, amount)),
        "x_scope": plan.workload,
    }  # fmt: skip


def _row(start: datetime, end: datetime, cost: float, currency: str) -> Row:
    """The columns that every row has."""
    month = start.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (month + timedelta(days=32)).replace(day=1)
    amount = _number(cost)
    return dict.fromkeys(focus_names(), "") | {
        "BilledCost": amount, "EffectiveCost": amount, "ListCost": amount, "ContractedCost": amount,
        "BillingAccountId": "planner", "BillingAccountName": "planner", "BillingAccountType": "planner",
        "BillingCurrency": currency, "BillingPeriodStart": _text(month), "BillingPeriodEnd": _text(following),
        "ChargePeriodStart": _text(start), "ChargePeriodEnd": _text(end), "ChargeFrequency": "Usage-Based",
        "PricingCategory": "Standard", "InvoiceIssuerName": "planner", "ServiceProviderName": "planner",
        "HostProviderName": "planner",
    }  # fmt: skip


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _number(value: float) -> str:
    return f"{value:.10g}"


__all__: Sequence[str] = ("focus_csv", "focus_names", "forecast_to_focus", "plan_to_focus", "with_focus")
