"""Whole plans as `planner optimize -o json` saves them, made by hand so that no test waits for a search."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from planner.plan.ids import CostId
from planner.plan.model import CatalogSource, CostLine, Plan, PlanLine, QuotaNeed

START = "2026-03-02T08:00+00:00"


def plan_line(nodes: int = 2, hours: float = 10.0, price: float = 1.0, **changes: Any) -> PlanLine:
    """Machines at `price` USD an hour for `hours` each, and nothing besides."""
    line = PlanLine(
        offer_id="", provider="aws", region="us-east-2", zone="", instance_type="p3.2xlarge",
        accelerator="v100-16gb-sxm",
        accelerators_per_node=1.0, purchase_option="spot", option_variant="", nodes=nodes,
        billed_hours=Decimal(repr(hours)), price_per_hour=Decimal(repr(price)), currency="USD",
        usd_per_currency=Decimal(1), throughput_per_s=100.0, costs=(), price_basis="list",
        price_source="https://example.com/prices", price_as_of="2026-03-01", flags=(),
        quota=QuotaNeed("unknown quota", "", "aws", "instances", float(nodes), None, "not checked"),
    )  # fmt: skip
    line = replace(line, **changes)
    names = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
    return replace(
        line, offer_id="/".join(getattr(line, name) or "-" for name in names), costs=(_compute(line),)
    )


def _compute(line: PlanLine) -> CostLine:
    hours = line.billed_hours * line.nodes
    return CostLine(
        CostId.COMPUTE, "compute", f"{line.instance_type} {line.purchase_option}", hours, "instance-hour",
        line.price_per_hour, line.currency, line.usd_per_currency, hours * line.price_per_hour * line.usd_per_currency,
        line.price_basis, line.price_source, line.price_as_of,
    )  # fmt: skip


def saved_plan(*lines: PlanLine, **changes: Any) -> Plan:
    """A plan of these lines (an infeasible answer without any) with nothing optional."""
    plan = Plan(
        status="planned" if lines else "infeasible", workload="small", workload_sha256="1" * 64, kind="training",
        created_at=START, planner_version="0.1.0", start=START, deadline=None, finish_expected=None, objective="cost",
        lines=lines, total_usd=sum((line.cost_usd for line in lines), Decimal(0)),
        hours=max((float(line.billed_hours) for line in lines), default=0.0), timeline=(), performance=None, risk=None,
        savings=None, cash=(), alternatives=(), assumptions=(), filters=(), filter_pairs=(), relaxations=(),
        unknown_options=(), proof=None, catalog=(CatalogSource("aws", "2026-03-01", "2026-03-01", "0" * 64, 1),),
        warnings=(), excluded=(),
    )  # fmt: skip
    return replace(plan, **changes)
