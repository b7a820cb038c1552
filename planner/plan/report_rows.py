"""The flat form of a plan: one row per chosen line, baseline, alternative and spot launch."""

from __future__ import annotations

from decimal import Decimal

from planner.plan.brief import Summary
from planner.plan.launch import Launch
from planner.plan.model import Plan, PlanLine
from planner.render.model import Cell

COLUMNS = (
    "row", "rank", "workload", "status", "provider", "region", "zone", "instance_type", "accelerator",
    "accelerators", "purchase_option", "option_variant", "nodes", "hours", "price_per_hour", "price_currency",
    "quoted_price_per_hour", "price_p10_per_hour", "price_p90_per_hour", "price_kind", "price_age_days", "cost_usd",
    "delta_cost_usd", "delta_hours", "throughput_per_s", "price_basis", "price_as_of", "price_source", "flags",
    "offer_id", "starts_in_hours", "p_meet_deadline", "p_meet_spot_only_ratio", "cost_p10_usd", "cost_p90_usd",
    "p10_hours", "p90_hours", "interruptions", "spot_hours", "on_demand_hours", "lost_hours",
    "checkpoint_interval_hours", "checkpoint_gib", "notice_s", "evidence", "energy_kwh", "operational_kgco2e",
    "confidence",
)  # fmt: skip


def flat_rows(plan: Plan) -> list[dict[str, Cell]]:
    """Rows under `COLUMNS`; an infeasible plan has those of its relaxations."""
    rows: list[dict[str, Cell]] = [
        _line(line, rank) | {"starts_in_hours": plan.starts_in_hours}
        for rank, line in enumerate(plan.lines, start=1)
    ]
    for row, used in zip(rows, () if plan.carbon is None else plan.carbon.lines, strict=False):
        row |= {"energy_kwh": used.energy_kwh, "operational_kgco2e": used.operational_kgco2e}
    if plan.savings is not None and plan.savings.baseline is not None:
        rows.append(_summary("baseline", None, plan.savings.baseline))
    rows += [_summary("alternative", rank, item) for rank, item in enumerate(plan.alternatives, start=2)]
    if plan.launch is not None:
        rows.append(_launch(plan.launch))
    rungs = [item.best for item in plan.sensitivity if item.best is not None]
    rows += [_summary("rung", rank, item) for rank, item in enumerate(rungs, start=1)]
    if plan.status == "infeasible":
        alternatives = [item.best for item in plan.relaxations if item.best is not None]
        rows += [_summary("relaxation", rank, item) for rank, item in enumerate(alternatives, start=1)]
        rows = rows or [{"row": "infeasible"}]
    for row in rows:
        row |= {"workload": plan.workload, "status": plan.status, "confidence": plan.confidence}
    return rows


def _line(line: PlanLine, rank: int) -> dict[str, Cell]:
    return {
        "row": "line",
        "rank": rank,
        "provider": line.provider,
        "region": line.region,
        "zone": line.zone,
        "instance_type": line.instance_type,
        "accelerator": line.accelerator,
        "accelerators": line.accelerators,
        "purchase_option": line.purchase_option,
        "option_variant": line.option_variant,
        "nodes": line.nodes,
        "hours": line.billed_hours,
        "price_per_hour": line.price_per_hour,
        "price_currency": line.currency,
        "quoted_price_per_hour": line.quoted_price_per_hour,
        "price_p10_per_hour": line.price_p10_per_hour,
        "price_p90_per_hour": line.price_p90_per_hour,
        "price_kind": line.price_kind,
        "price_age_days": line.price_age_days,
        "cost_usd": line.cost_usd,
        "delta_cost_usd": Decimal(0),
        "delta_hours": 0,
        "throughput_per_s": line.throughput_per_s,
        "price_basis": line.price_basis,
        "price_as_of": line.price_as_of,
        "price_source": line.price_source,
        "flags": ";".join(line.flags),
        "offer_id": line.offer_id,
    }


def _launch(launch: Launch) -> dict[str, Cell]:
    return {
        "row": "launch",
        "purchase_option": launch.strategy,
        "hours": launch.expected_hours,
        "cost_usd": launch.expected_cost_usd,
        "p_meet_deadline": launch.p_meet_deadline,
        "p_meet_spot_only_ratio": launch.p_meet_spot_only_ratio,
        "cost_p10_usd": launch.cost_p10_usd,
        "cost_p90_usd": launch.cost_p90_usd,
        "p10_hours": launch.p10_hours,
        "p90_hours": launch.p90_hours,
        "interruptions": launch.expected_interruptions,
        "spot_hours": launch.spot_hours,
        "on_demand_hours": launch.on_demand_hours,
        "lost_hours": launch.lost_hours,
        "checkpoint_interval_hours": launch.checkpoints.interval_hours,
        "checkpoint_gib": launch.checkpoints.size_gib,
        "notice_s": launch.checkpoints.notice_s,
        "evidence": "; ".join(dict.fromkeys(place.evidence for place in launch.places)),
    }


def _summary(kind: str, rank: int | None, item: Summary) -> dict[str, Cell]:
    return {
        "row": kind,
        "rank": rank,
        "provider": item.provider,
        "region": item.region,
        "zone": item.zone,
        "instance_type": item.instance_type,
        "accelerator": item.accelerator,
        "accelerators": item.accelerators,
        "purchase_option": item.purchase_option,
        "option_variant": item.option_variant,
        "nodes": item.nodes,
        "hours": item.hours,
        "cost_usd": item.cost_usd,
        "delta_cost_usd": item.delta_cost_usd,
        "delta_hours": item.delta_hours,
        "energy_kwh": item.energy_kwh,
        "operational_kgco2e": item.operational_kgco2e,
        "price_as_of": item.price_as_of,
        "flags": ";".join(item.flags),
    }
