"""From the chosen mix of workers to the `Plan`."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.candidates.filters import count_filters
from planner.candidates.plan_parts.frame import cash_of, moment_text, offer_line, plan_frame, unknown_options
from planner.candidates.plan_parts.warnings import plan_warnings
from planner.fleet.carbon import carbon_of, footprint_of_workers
from planner.fleet.chance import progress_of
from planner.fleet.stored import Lines as StoreLines
from planner.fleet.stored_plan import storage_of
from planner.fleet.waits import in_time
from planner.market.obtainable import instances_at_once
from planner.market.pricing import total_usd
from planner.plan.brief import Choice, Summary, SummaryPart
from planner.plan.ids import TimePartId
from planner.plan.launch import Launch
from planner.plan.model import (
    CostLine,
    Performance,
    Plan,
    PlanLine,
    Proof,
    Risk,
    Savings,
    TimePart,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.asked.model import Dates
    from planner.candidates.engine import Found
    from planner.candidates.model import Candidates
    from planner.fleet.mix import Mix
    from planner.fleet.search import FleetResult
    from planner.plan.model import CashMonth, Relaxation

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]


BASIS = "sized at the cautious end of the prediction; P: workers take each other's runs until the deadline"
_NOTE = "cheapest fleet of one on-demand offer, limits on shares ignored"
_Z80 = 1.2815515655446004  # standard normal quantile of 0.9: both tails of an 80 % interval


def fleet_costs(found: Found, mix: Mix) -> tuple[list[PlanLine], Decimal, tuple[CashMonth, ...]]:
    """Lines of the plan of a mix, what it costs in USD and when that is due: all that the search asks of it."""
    context = found.candidates.context
    lines = _lines(found.candidates, mix)
    total = total_usd([cost for line in lines for cost in line.costs])
    return lines, total, cash_of(context.dates, context.market, lines, _finish(context.dates, mix))


def _finish(dates: Dates, mix: Mix) -> datetime:
    return dates.start + timedelta(hours=mix.period)


def fleet_plan(found: Found, mix: Mix) -> Plan:
    """Build the plan of a mix: one line per offer, what a place costs once on its first line."""
    context = found.candidates.context
    lines, total, cash = fleet_costs(found, mix)
    finish = _finish(context.dates, mix)
    risk, launch = _risk(found, mix, total), _launch_of(found, mix, total)
    report = count_filters(found.candidates.all_bits())
    savings, chance = _savings(found, mix, total)
    return Plan(
        **plan_frame(context),
        status="planned",
        finish_expected=moment_text(finish),
        lines=tuple(lines),
        total_usd=total,
        hours=mix.period,
        timeline=_timeline(mix),
        performance=_performance(found, mix),
        risk=risk,
        savings=savings,
        cash=cash,
        alternatives=(),
        filters=report.counts,
        filter_pairs=report.pairs,
        relaxations=(),
        unknown_options=unknown_options(context.market, lines),
        proof=_proof(found, mix, total),
        warnings=plan_warnings(context, lines, risk),
        n_results=1,
        n_feasible=report.passed,
        launch=launch,
        choices=_choices(context.dates, risk, finish, savings.baseline, chance),
        carbon=carbon_of(found.candidates, mix),
        storage=storage_of(found.candidates, mix, lines),
    )


def _choices(
    dates: Dates, risk: Risk, finish: datetime, on_demand: Summary | None, chance: float | None
) -> tuple[Choice, ...]:
    """The plan, and the fleet of one on-demand offer with its chance of the deadline."""
    plan = Choice(("cheapest",), None, moment_text(finish), risk.p_meet_deadline)
    if on_demand is None:
        return (plan,)
    ends = moment_text(dates.start + timedelta(hours=on_demand.hours))
    return plan, Choice(("on_demand",), on_demand, ends, chance)


def _launch_of(found: Found, mix: Mix, total: Decimal) -> Launch | None:
    from planner.fleet.launch import fleet_launch

    return fleet_launch(found, mix, total)


def _lines(made: Candidates, mix: Mix) -> list[PlanLine]:
    """One line per offer; its throughput is its work over the whole plan's hours, so that lines add up to the work.

    What workers of a place share is on its first line: transfers and the copy of the data set.
    """
    asked, market = made.context.asked, made.context.market
    workers, out, opened = mix.workers, [], set()
    money = workers.price(market, mix.hours)
    stored, region = StoreLines(made, mix), market.region_of_offer[workers.rows]
    for at in np.argsort(market.id_rank[workers.rows], kind="stable").tolist():
        row, count = int(workers.rows[at]), int(mix.count[at])
        nodes = int(workers.nodes[at]) * count
        hours = round(float(money.instance_hours[at]) * count, 9)
        run = float(workers.lead_hours[at] + mix.hours[at])
        costs: list[CostLine] = market.costs.lines(
            row, hours, 0.0, 0.0, nodes, with_place=False, run_hours=run
        )
        place = int(region[at])
        copy = 0.0 if place in opened else float(money.dataset_gib_months[region == place].max())
        of_place = market.costs.place_lines(row, copy, float(money.checkpoint_gib_months[at]) * count)
        costs += [line for line in of_place if line.kind != "data_transfer" or place not in opened]
        costs += stored.of(at)
        opened.add(place)
        units = float(mix.units[at]) / mix.period / 3600.0
        billed = float(money.billed_hours[at])
        out.append(offer_line(asked, market, row, nodes, billed, units, tuple(costs), None, run))
    return out


def _timeline(mix: Mix) -> tuple[TimePart, ...]:
    """The course of the worker that ends last."""
    last = int(np.argmax(mix.ends_hours))
    fixed = float(mix.workers.fixed_hours[last])
    waiting = float(mix.workers.lead_hours[last]) - fixed
    parts = (
        TimePart(
            TimePartId.FLEET_LEAD,
            "data and provisioning",
            waiting,
            "default",
            "of the worker that ends last; not billed",
        ),
        TimePart(
            TimePartId.FLEET_FIXED, "image, warm-up, export", fixed, "default", "of the worker that ends last"
        ),
        TimePart(
            TimePartId.FLEET_WORK,
            "work",
            mix.period - waiting - fixed,
            "model",
            "at the cautious end of the prediction",
        ),
    )
    return tuple(part for part in parts if part.hours > 0)


def _performance(found: Found, mix: Mix) -> Performance:
    """Speed averaged over the whole plan, waits included."""
    context = found.candidates.context
    seconds = mix.period * 3600.0
    middle = mix.units * mix.workers.caution
    fast = middle * np.exp(found.candidates.sigma[mix.workers.at] * _Z80)
    return Performance(
        unit=context.asked.job.unit, throughput_per_s=float(middle.sum()) / seconds,
        throughput_low_per_s=float(mix.units.sum()) / seconds, throughput_high_per_s=float(fast.sum()) / seconds,
        step_time_s=None, mfu=None, memory_needed_gib=None, memory_available_gib=None,
        limited_by="see each instance type",
    )  # fmt: skip


def _risk(found: Found, mix: Mix, total: Decimal) -> Risk:
    made, at = found.candidates, mix.workers.at
    course = made.hours[at] - made.waiting_hours[at] - made.fixed_hours[at]
    runs = mix.count * mix.hours / course
    expected = mix.workers.lead_hours + mix.hours / mix.workers.caution
    deadline = made.context.dates.deadline_hours
    return Risk(
        p_meet_deadline=None if deadline is None else progress_of(found, mix).chance(deadline, mix.work),
        expected_interruptions=float(made.interruptions[at] @ runs),
        expected_lost_hours=float(made.lost_hours[at] @ runs),
        expected_hours=float(expected.max()),
        worst_hours=mix.period,
        expected_cost_usd=total,
        worst_cost_usd=total,
        basis=BASIS,
    )


def _savings(found: Found, mix: Mix, total: Decimal) -> tuple[Savings, float | None]:
    """Compare with the cheapest fleet of one on-demand offer in the same time; with its chance of the deadline."""
    context = found.candidates.context
    from planner.fleet.workers import build_with_storage

    workers, kept = build_with_storage(found.candidates, mix.limit_hours)
    on_demand = context.market.offer_set.offers.equals("purchase_option", "on_demand")
    workers = in_time(found.candidates, workers)
    alone = np.flatnonzero(on_demand[workers.rows] & (workers.hours_limit > 0))
    workers, kept = workers.take(alone), kept.take(alone)
    count = np.ceil(mix.work / (workers.units_per_hour * workers.hours_limit) - 1e-9)
    limits = context.asked.workload.constraints
    held = instances_at_once(context.market.offer_set, limits.obtainable)
    most = np.fmin(limits.max_nodes, held[workers.rows])
    allowed = np.flatnonzero(count * workers.nodes <= most)
    if not len(allowed):
        why = "no single on-demand offer can do the work in time within max_nodes"
        return Savings(None, None, None, why), None
    workers, kept, count = workers.take(allowed), kept.take(allowed), count[allowed]
    hours = mix.work / (workers.units_per_hour * count)
    money, stay = workers.price(context.market, hours), workers.lead_hours + hours
    shared = workers.place_usd + workers.copy_usd_per_hour * stay  # once, by all workers
    whole = (money.cost_usd - shared) * count + shared + kept.alone_usd + kept.alone_usd_per_hour * stay
    best = int(np.lexsort((context.market.id_rank[workers.rows], whole))[0])
    row, cost = int(workers.rows[best]), Decimal(repr(round(float(whole[best]), 6)))
    offers, types = context.market.offer_set.offers, context.market.offer_set.types
    kind = int(context.market.offer_set.type_of_offer[row])
    nodes = int(count[best] * workers.nodes[best])
    ends = float(workers.lead_hours[best] + hours[best])
    names = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
    named: dict[str, Any] = {name: str(offers[name][row]) for name in names}
    saved = cost - total
    drawn = footprint_of_workers(
        found.candidates, workers.take(np.asarray([best])), float(hours[best]), float(count[best])
    )
    baseline = Summary(
        label="", **named, accelerator=str(types["accelerator"][kind]),
        accelerators=nodes * float(types["accelerator_count"][kind]), nodes=nodes, hours=ends, cost_usd=cost,
        delta_cost_usd=saved, delta_hours=ends - mix.period, price_as_of=str(offers["as_of"][row]),
        parts=(SummaryPart(nodes, *(named[name] for name in ("purchase_option", "option_variant", "region", "zone"))),),
        **drawn._asdict(),
    )  # fmt: skip
    alone = np.asarray([best])
    firm = replace(mix, workers=workers.take(alone), count=count[alone], hours=hours[alone])
    deadline = context.dates.deadline_hours
    chance = None if deadline is None else progress_of(found, firm).chance(deadline, mix.work)
    return Savings(baseline, saved, float(saved / cost) if cost else 0.0, _NOTE), chance


def _proof(found: Found, mix: Mix, total: Decimal) -> Proof:
    context = found.candidates.context
    result = mix.proof
    bound = Decimal(repr(result.bound_usd)) if np.isfinite(result.bound_usd) else Decimal(0)
    bound = min(bound, total)
    gap = float((total - bound) / total) if total else 0.0
    note = f"{result.n_columns} ways to be a worker in the model"
    if gap > mix.gap:
        note += "; the bound is for hours as worked, at the least that they can cost: billing rounds them up"
    return Proof(
        method="MILP over whole workers and their hours",
        status="optimal" if gap <= mix.gap * (1 + 1e-6) else "feasible",
        solver=result.solver,
        objective_usd=total,
        bound_usd=bound,
        gap_ratio=gap,
        candidates=len(found.candidates.all_bits()),
        offers=context.market.offer_set.offers.n_rows,
        shapes=found.candidates.shapes.n_rows,
        seconds=mix.seconds,
        note=note,
        gap_exact_ratio=_exact_gap(result, total),
        gap_asked_ratio=mix.gap,
    )


def _exact_gap(result: FleetResult, total: Decimal) -> float | None:
    if not np.isfinite(result.exact_bound_usd) or not total:
        return None
    return max(0.0, float((total - Decimal(repr(result.exact_bound_usd))) / total))


def infeasible_fleet(found: Found, relaxations: tuple[Relaxation, ...], seconds: float) -> Plan:
    """Build the answer when no mix exists: filter counts, and the least set of limits to move."""
    from planner.candidates.plan_parts.infeasible import find_relaxations, infeasible_plan

    told = relaxations or tuple(
        replace(item, best=None, note=f"so that one run fits, all may need more: {item.note}")
        for item in find_relaxations(found)
    )
    return infeasible_plan(found, told, seconds)
