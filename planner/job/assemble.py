"""From the chosen candidate to the `Plan`: lines in Decimal, risk, baseline, cash, alternatives, provenance."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.candidates.choose import Choice
from planner.candidates.filters import count_filters
from planner.candidates.model import IN_TURN
from planner.job.alternatives import alternatives_of
from planner.job.summary import find_savings, lines_by_part
from planner.job.timeline import performance_of, risk_of, timeline_of
from planner.job.warnings import memory_warnings, plan_warnings
from planner.market.pricing import exact, total_usd
from planner.market.quota import needed_quota
from planner.plan.cash import spread_months
from planner.plan.launch import Launch
from planner.plan.model import (
    Assumption,
    CashMonth,
    CatalogSource,
    CostLine,
    Layout,
    Plan,
    PlanLine,
    Proof,
    Relaxation,
)
from planner.version import __version__

if TYPE_CHECKING:
    from catalogs.model import Catalog
    from planner.candidates.context import Asked, Context, Dates, Market
    from planner.candidates.engine import Found
    from planner.candidates.model import Candidates

EXCLUDED = (
    "taxes",
    "support plans",
    "negotiated discounts that no overlay declares",
    "staff time",
    "capacity: a listed price is not availability",
)


def assemble_plan(found: Found, choice: Choice, proof: Proof) -> Plan:
    """Build the plan of the winning candidate.

    Args:
        found: all candidates.
        choice: winner and ranking.
        proof: how the choice was proven.
    """
    context = found.candidates.context
    candidates, at = found.candidates, choice.winner
    lines = plan_lines(candidates, at)
    total = total_usd([cost for line in lines for cost in line.costs])
    launch = _launch_of(candidates, at, total)
    risk = risk_of(candidates, at, total, launch)
    limit = context.asked.workload.preferences.max_results
    others, folded = alternatives_of(candidates, at, limit)
    report = count_filters(candidates.all_bits())
    hours, in_turn = float(candidates.hours[at]), bool(candidates.kind[at] == IN_TURN)
    return Plan(
        **plan_frame(context),
        status="planned",
        finish_expected=moment_text(context.dates.start + timedelta(hours=hours)),
        lines=tuple(lines),
        total_usd=total,
        hours=hours,
        timeline=timeline_of(candidates, at),
        performance=performance_of(candidates, at),
        risk=risk,
        savings=find_savings(found, at),
        cash=cash_of(context.dates, context.market, lines, context.dates.start + timedelta(hours=hours)),
        alternatives=others,
        filters=report.counts,
        filter_pairs=report.pairs,
        relaxations=(),
        unknown_options=unknown_options(context.market, lines),
        proof=proof,
        warnings=(
            *plan_warnings(context, lines, risk, in_turn=in_turn),
            *memory_warnings(candidates, at),
        ),
        n_results=len(others) + 1,
        n_feasible=choice.n_feasible,
        launch=launch,
        folded=folded,
    )


def _launch_of(candidates: Candidates, at: int, total: Decimal) -> Launch | None:
    context = candidates.context
    if not any(context.market.is_spot[part.row] for part in candidates.parts(at)):
        return None
    from planner.job.spot_launch import launch_of

    return launch_of(candidates, at, total)


def plan_frame(context: Context) -> dict[str, Any]:
    """Fields of the plan that do not depend on the choice."""
    return {
        "workload": context.asked.workload.name,
        "workload_sha256": context.asked.sha256,
        "kind": context.asked.workload.kind,
        "created_at": moment_text(context.dates.now),
        "planner_version": __version__,
        "start": moment_text(context.dates.start),
        "deadline": None if context.dates.deadline is None else moment_text(context.dates.deadline),
        "objective": context.asked.workload.preferences.objective,
        "assumptions": assumptions_of(context),
        "catalog": catalog_sources(context.market),
        "excluded": EXCLUDED,
    }


def moment_text(value: datetime) -> str:
    """ISO text of a moment, to the minute."""
    return value.isoformat(timespec="minutes")


def plan_lines(candidates: Candidates, at: int) -> list[PlanLine]:
    """Describe what candidate `at` buys: one line per part; the layout is that of all parts together."""
    context = candidates.context
    shape = candidates.shapes.row(int(candidates.shape[at]))
    layout = Layout(
        tensor_parallel=shape["tp"], pipeline_parallel=shape["pp"], context_parallel=shape["cp"],
        data_parallel=shape["dp"], zero_stage=shape["zero_stage"], micro_batch=shape["micro_batch"],
        grad_accumulation=shape["grad_accum"], recompute=shape["recompute"], expert_parallel=shape["ep"],
        interleave=shape["interleave"], sequence_parallel=bool(shape["sequence_parallel"]),
    )  # fmt: skip
    units = context.asked.job.units_per_step / shape["step_time_s"]
    parts, whole = candidates.parts(at), int(candidates.nodes[at])
    return [
        offer_line(
            context.asked, context.market, part.row, part.nodes, part.billed_hours, units * (part.nodes / whole),
            tuple(costs), layout,
        )
        for part, costs in zip(parts, lines_by_part(candidates, at), strict=True)
    ]  # fmt: skip


def offer_line(
    asked: Asked, market: Market, row: int, nodes: int, billed_hours: float, units_per_s: float,
    costs: tuple[CostLine, ...], layout: Layout | None,
) -> PlanLine:  # fmt: skip
    """Build the plan line of `nodes` instances of offer `row`."""
    offer_set = market.offer_set
    offers, kind = offer_set.offers, int(offer_set.type_of_offer[row])
    fx = offer_set.rates[int(offer_set.rate_of_offer[row])]
    text = {
        name: str(offers[name][row])
        for name in (
            "provider",
            "region",
            "zone",
            "instance_type",
            "purchase_option",
            "option_variant",
            "currency",
        )
    }
    vcpus = float(offer_set.types["vcpus"][kind])  # NaN: unknown
    return PlanLine(
        offer_id=offer_set.offer_id(row),
        **text,
        accelerator=str(offer_set.types["accelerator"][kind]),
        accelerators_per_node=float(offer_set.types["accelerator_count"][kind]),
        nodes=nodes,
        billed_hours=exact(billed_hours),
        price_per_hour=offer_set.price(row),
        usd_per_currency=fx.rate,
        throughput_per_s=units_per_s,
        costs=costs,
        price_basis=str(offers["basis"][row]),
        price_source=str(offers["source"][row]),
        price_as_of=str(offers["as_of"][row]),
        flags=tuple(flag for flag in str(offers["flags"][row]).split(";") if flag),
        quota=needed_quota(market.offer_set, market.tariffs, asked.workload.constraints.quota, row, nodes),
        layout=layout,
        family=str(offer_set.types["family"][kind]),
        accelerator_memory_gib=float(offer_set.types["accelerator_memory_gib"][kind]),
        vcpus_per_node=vcpus if vcpus > 0 else None,
    )


def cash_of(dates: Dates, market: Market, lines: list[PlanLine], finish: datetime) -> tuple[CashMonth, ...]:
    """Cash due by month: obligations in full, upfront parts at the start, the rest as it accrues."""
    owed: list[tuple[CostLine, datetime, datetime]] = []
    for line in lines:
        rule = market.tariffs.option_rule(line.provider, line.purchase_option, line.option_variant)
        until = dates.start + timedelta(hours=float(line.billed_hours)) if rule.whole_term else finish
        for cost in line.costs:
            at_once = cost.kind == "upfront" or (cost.kind == "compute" and rule.upfront_all)
            stop = dates.start if at_once else (until if cost.kind == "compute" else finish)
            owed.append((_in_full(cost, line), dates.start, stop))
    return spread_months(owed)


def _in_full(cost: CostLine, line: PlanLine) -> CostLine:
    """A shared new commitment is owed in full, whatever part of it this job carries; an owned one owes nothing."""
    whole = line.billed_hours * line.nodes
    if cost.kind != "compute" or not 0 < cost.quantity < whole:
        return cost
    return replace(cost, amount_usd=cost.amount_usd * whole / cost.quantity)


def assumptions_of(context: Context) -> tuple[Assumption, ...]:
    """Every value the plan rests on: the workload's own resolution first, then the planner's defaults."""
    defaults = [
        Assumption(key, f"{value:g}", unit, "workload" if origin == "workload" else "default", note)
        for key, value, unit, origin, note in context.asked.assumptions.rows()
    ]
    start = Assumption(
        "start",
        moment_text(context.dates.start),
        "",
        "workload" if context.asked.workload.start else "default",
    )
    notes = [
        Assumption("prices.overlays", str(note), "", "workload") for note in context.market.offer_set.notes
    ]
    return (*context.asked.job.assumptions, start, *notes, *defaults)


def catalog_sources(market: Market) -> tuple[CatalogSource, ...]:
    """Dates and hashes of the price snapshots used."""
    return sources_of(market.catalog)


def sources_of(catalog: Catalog) -> tuple[CatalogSource, ...]:
    """Dates and hashes of the price snapshots of a catalog."""
    return tuple(
        CatalogSource(m.provider, m.oldest_as_of, m.newest_as_of, m.sha256, m.n_offers)
        for m in catalog.manifests
    )


def unknown_options(market: Market, lines: list[PlanLine]) -> tuple[str, ...]:
    """Ways of buying the chosen instance types that exist but have no known price."""
    from catalogs.offers.derive import unknown_options as find

    out = []
    for provider, kind in dict.fromkeys((line.provider, line.instance_type) for line in lines):
        out += [f"{kind}: {option}" for option in find(market.catalog, provider, kind)]
    return tuple(out)


def infeasible_plan(found: Found, relaxations: tuple[Relaxation, ...], seconds: float) -> Plan:
    """Build the answer when nothing fits: counts per filter and the smallest relaxations."""
    context = found.candidates.context
    candidates = found.candidates
    report = count_filters(candidates.all_bits())
    proof = Proof(
        method="exact enumeration", status="infeasible", solver="numpy", objective_usd=Decimal(0), bound_usd=Decimal(0),
        gap_ratio=0.0, candidates=report.total, offers=context.market.offer_set.offers.n_rows,
        shapes=candidates.shapes.n_rows, seconds=seconds,
    )  # fmt: skip
    return Plan(
        **plan_frame(context), status="infeasible", finish_expected=None, lines=(), total_usd=Decimal(0), hours=0.0,
        timeline=(), performance=None, risk=None, savings=None, cash=(), alternatives=(), filters=report.counts,
        filter_pairs=report.pairs, relaxations=relaxations, unknown_options=(), proof=proof,
        warnings=plan_warnings(context, [], None),
    )  # fmt: skip
