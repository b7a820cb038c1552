"""What plans of every question share: provenance, dates, lines of offers, cash by month."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.market.pricing import exact
from planner.market.quota import needed_quota
from planner.market.spot_prices import KINDS
from planner.plan.cash import spread_months
from planner.plan.ids import WAITED
from planner.plan.layout import Layout
from planner.plan.model import Assumption, CashMonth, CostLine, PlanLine, sources_of
from planner.plan.run import Goal, Recurring, Run
from planner.version import __version__

if TYPE_CHECKING:
    from planner.asked.model import Asked, Dates
    from planner.candidates.context import Context
    from planner.market.model import Market

EXCLUDED = (
    "taxes",
    "support plans",
    "negotiated discounts that no overlay declares",
    "staff time",
    "capacity: a listed price is not availability",
)


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
        "catalog": sources_of(context.market.catalog),
        "excluded": EXCLUDED,
        "goal": goal_of(context.asked, context.dates),
        "run": run_of(context.asked),
        "recurrence": recurrence_of(context.asked),
    }


def goal_of(asked: Asked, dates: Dates) -> Goal:
    """What the workload asks for: its work in all, and its limits in time and money."""
    workload, job = asked.workload, asked.job
    runs = 1 if workload.fleet is None else workload.fleet.runs
    limits = workload.constraints
    return Goal(
        units=float(job.total_units * runs), unit=job.unit,
        deadline_confidence_ratio=None if dates.deadline is None else float(limits.deadline_confidence),
        budget_usd=None if limits.budget_usd is None else Decimal(str(limits.budget_usd)),
    )  # fmt: skip


def run_of(asked: Asked) -> Run:
    """What the workload starts on the machines, and how it is tagged."""
    workload, given = asked.workload, asked.workload.run
    fleet = workload.fleet
    return Run(
        image=given.image or "", command=given.command or "", setup=given.setup or "", env=dict(given.env),
        secrets=tuple(given.secrets), data=given.data or "", data_location=workload.data.location or "",
        checkpoints=given.checkpoints or "", outputs=given.outputs or "", team=workload.team or "",
        runs=1 if fleet is None else fleet.runs,
        nodes_per_run=fleet.nodes_per_run if fleet is not None else 1 if workload.kind == "inference" else None,
        tags=dict(workload.tags),
    )  # fmt: skip


def recurrence_of(asked: Asked) -> Recurring | None:
    """How often the run comes again, None where it does not."""
    again = asked.workload.recurrence
    return None if again is None else Recurring(again.every.total_seconds() / 3600.0, again.times)


def moment_text(value: datetime) -> str:
    """ISO text of a moment, to the minute."""
    return value.isoformat(timespec="minutes")


def offer_line(
    asked: Asked, market: Market, row: int, nodes: int, billed_hours: float, units_per_s: float,
    costs: tuple[CostLine, ...], layout: Layout | None, run_hours: float = 0.0,
) -> PlanLine:  # fmt: skip
    """Build the plan line of `nodes` instances of offer `row`, used in a run of `run_hours` from its start."""
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
    book, quote = offer_set.book, offer_set.quote(row)
    age, own = float(book.age_days[row]), offer_set.own_costs.get(row)
    return PlanLine(
        offer_id=offer_set.offer_id(row),
        **text,
        accelerator=str(offer_set.types["accelerator"][kind]),
        accelerators_per_node=float(offer_set.types["accelerator_count"][kind]),
        nodes=nodes,
        billed_hours=exact(billed_hours),
        price_per_hour=offer_set.price_during(row, run_hours),
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
        quoted_price_per_hour=quote,
        price_p10_per_hour=offer_set.price_during(row, run_hours, "p10_ratio"),
        price_p90_per_hour=offer_set.price_during(row, run_hours, "p90_ratio"),
        price_kind=KINDS[int(book.kind[row])],
        price_age_days=None if np.isnan(age) else age,
        marginal_usd_per_hour=None if own is None else own.marginal_usd_per_hour,
        full_usd_per_hour=None if own is None else own.full_usd_per_hour,
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
            owed.append((_in_full(_due(cost, line), line), dates.start, stop))
    return spread_months(owed)


def _due(cost: CostLine, line: PlanLine) -> CostLine:
    """Of an own machine power and hosting fall due, its purchase never does."""
    paid = line.marginal_usd_per_hour
    if cost.kind != "compute" or paid is None or paid == line.price_per_hour:
        return cost
    return replace(cost, amount_usd=cost.quantity * paid)


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
    # what was asked of clouds rests on no workload, so it is a warning only
    unkeyed = [note for note in context.market.offer_set.notes if not note.key]
    notes = [Assumption("prices.overlays", str(note), "", "workload") for note in unkeyed]
    seen = context.asked.workload.constraints.waited
    if seen:
        said = f"{len(seen)} requests, {sum(one.came for one in seen)} came"
        notes.append(Assumption(WAITED, said, "", "workload"))
    return (*(Assumption(*item) for item in context.asked.job.assumptions), start, *notes, *defaults)


def unknown_options(market: Market, lines: list[PlanLine]) -> tuple[str, ...]:
    """Ways of buying the chosen instance types that exist but have no known price."""
    from catalogs.offers.derive import unknown_options as find

    out = []
    for provider, kind in dict.fromkeys((line.provider, line.instance_type) for line in lines):
        out += [f"{kind}: {option}" for option in find(market.catalog, provider, kind)]
    return tuple(out)
