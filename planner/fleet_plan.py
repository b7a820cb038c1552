"""From the chosen mix of workers to the `Plan`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.assemble import cash_of, moment_text, offer_line, plan_frame, unknown_options
from planner.filters import count_filters
from planner.plan import CostLine, Performance, Plan, PlanLine, Proof, Relaxation, Risk, Savings, TimePart
from planner.pricing import total_usd
from planner.warnings import plan_warnings
from solvers.solution import Status

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.context import Context
    from planner.formulation.fleet import FleetResult
    from planner.formulation.fleet_input import Excess
    from planner.search import Found

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]


_NOTE = "cheapest fleet of one on-demand offer, limits on shares ignored"


@dataclass(frozen=True, eq=False)
class Mix:
    """Workers per candidate position, the period they are used for, and the proof."""

    counts: dict[int, int]
    period: float
    result: FleetResult
    cautious: FloatArray
    seconds: float


def fleet_plan(context: Context, found: Found, mix: Mix) -> Plan:
    """Build the plan of a mix: one line per offer, what a place costs once on its first line."""
    lines = _lines(context, found, mix)
    costs = [cost for line in lines for cost in line.costs]
    total = total_usd(costs)
    finish = context.start + timedelta(hours=mix.period)
    risk = _risk(found, mix, total)
    report = count_filters(found.candidates.all_bits())
    return Plan(
        **plan_frame(context),
        status="planned",
        finish_expected=moment_text(finish),
        lines=tuple(lines),
        total_usd=total,
        hours=mix.period,
        timeline=_timeline(found, mix),
        performance=_performance(context, found, mix),
        risk=risk,
        savings=_savings(context, found, mix, total),
        cash=cash_of(context, lines, finish),
        alternatives=(),
        filters=report.counts,
        filter_pairs=report.pairs,
        relaxations=(),
        unknown_options=unknown_options(context, lines),
        proof=_proof(context, found, mix, total),
        warnings=plan_warnings(context, lines, risk),
        n_results=1,
        n_feasible=report.passed,
    )


def _lines(context: Context, found: Found, mix: Mix) -> list[PlanLine]:
    from planner.fleet import worker_hours, worker_units

    made, out, opened = found.candidates, [], set()
    for at, count in sorted(mix.counts.items(), key=lambda item: context.id_rank[made.offer[item[0]]]):
        one = np.asarray([at])
        row, nodes = int(made.offer[at]), int(made.nodes[at])
        paid = worker_hours(made, one, mix.period)
        money = context.costs.evaluate(made.offer[one], made.nodes[one], paid, np.asarray([mix.period]))
        hours = round(float(money.instance_hours[0]) * count, 9)
        costs: list[CostLine] = context.costs.lines(row, hours, 0.0, 0.0, nodes * count, with_place=False)
        place = (context.offer_set.offers["provider"][row], context.offer_set.offers["region"][row])
        if place not in opened:
            opened.add(place)
            kept = float(money.dataset_gib_months[0]), float(money.checkpoint_gib_months[0])
            costs += context.costs.place_lines(row, *kept)
        units = (
            float(worker_units(context, made, one, mix.period, cautious=True)[0])
            * count
            / mix.period
            / 3600.0
        )
        out.append(
            offer_line(context, row, nodes * count, float(money.billed_hours[0]), units, tuple(costs), None)
        )
    return out


def _timeline(found: Found, mix: Mix) -> tuple[TimePart, ...]:
    made, at = found.candidates, list(mix.counts)
    waiting = float(made.waiting_hours[at].max())
    fixed = float(made.fixed_hours[at].max())
    parts = (
        TimePart("data and provisioning", waiting, "default", "the slowest worker; not billed"),
        TimePart("image, warm-up, export", fixed, "default", "the slowest worker"),
        TimePart("work", mix.period - waiting - fixed, "model", "at the cautious end of the prediction"),
    )
    return tuple(part for part in parts if part.hours > 0)


def _performance(context: Context, found: Found, mix: Mix) -> Performance:
    from planner.fleet import worker_units

    at = np.asarray(list(mix.counts), dtype=np.int64)
    count = np.asarray(list(mix.counts.values()), dtype=np.float64)
    seconds = mix.period * 3600.0
    low = float(worker_units(context, found.candidates, at, mix.period, cautious=True) @ count) / seconds
    middle = worker_units(context, found.candidates, at, mix.period, cautious=False)
    fast = middle * np.exp(found.candidates.sigma[at] * 1.2815515655446004)
    return Performance(
        unit=context.job.unit, throughput_per_s=float(middle @ count) / seconds, throughput_low_per_s=low,
        throughput_high_per_s=float(fast @ count) / seconds, step_time_s=None, mfu=None, memory_needed_gib=None,
        memory_available_gib=None, limited_by="see each instance type",
    )  # fmt: skip


def _risk(found: Found, mix: Mix, total: Decimal) -> Risk:
    made = found.candidates
    at = np.asarray(list(mix.counts), dtype=np.int64)
    count = np.asarray(list(mix.counts.values()), dtype=np.float64)
    course = made.hours[at] - made.waiting_hours[at]
    runs = count * (mix.period - made.waiting_hours[at]) / course
    middle = float(np.average(mix.cautious[at], weights=count))
    busy = float((made.waiting_hours[at] + made.fixed_hours[at]).max())
    expected = busy + (mix.period - busy) / middle
    return Risk(
        p_meet_deadline=None,
        expected_interruptions=float(made.interruptions[at] @ runs),
        expected_lost_hours=float(made.lost_hours[at] @ runs),
        expected_hours=expected,
        worst_hours=mix.period,
        expected_cost_usd=total,
        worst_cost_usd=total,
        basis="sized at the cautious end of the prediction, for deadline_confidence; spot at its mean goodput",
    )


def _savings(context: Context, found: Found, mix: Mix, total: Decimal) -> Savings:
    """Compare with the cheapest fleet of one on-demand offer for the same period."""
    from planner.fleet import worker_hours, worker_units
    from planner.plan import Summary

    made = found.candidates
    on_demand = context.offer_set.offers.equals("purchase_option", "on_demand")
    at = np.flatnonzero((made.bits == 0) & on_demand[made.offer])
    units = worker_units(context, made, at, mix.period, cautious=True)
    at, units = at[units > 0], units[units > 0]
    if not len(at):
        return Savings(None, None, None, "no on-demand offer can do the work in the period")
    fleet = context.workload.fleet
    work = context.job.total_units * (1 if fleet is None else fleet.runs)
    count = np.ceil(work / units - 1e-9)
    allowed = count * made.nodes[at] <= np.minimum(
        context.workload.constraints.max_nodes, context.offer_set.capacity[made.offer[at]]
    )
    at, count = at[allowed], count[allowed]
    if not len(at):
        return Savings(None, None, None, "no single on-demand offer fits max_nodes")
    money = context.costs.evaluate(
        made.offer[at], made.nodes[at], worker_hours(made, at, mix.period), np.full(len(at), mix.period)
    )
    whole = money.worker_usd * count + (money.cost_usd - money.worker_usd)
    best = int(np.lexsort((context.id_rank[made.offer[at]], whole))[0])
    row, cost = int(made.offer[at[best]]), Decimal(repr(round(float(whole[best]), 6)))
    offers, types = context.offer_set.offers, context.offer_set.types
    kind = int(context.offer_set.type_of_offer[row])
    nodes = int(count[best] * made.nodes[at[best]])
    names = ("provider", "region", "zone", "instance_type", "purchase_option", "option_variant")
    named: dict[str, Any] = {name: str(offers[name][row]) for name in names}
    baseline = Summary(
        label="", **named, accelerator=str(types["accelerator"][kind]),
        accelerators=nodes * float(types["accelerator_count"][kind]), nodes=nodes, hours=mix.period, cost_usd=cost,
        delta_cost_usd=cost - total, delta_hours=0.0, price_as_of=str(offers["as_of"][row]),
    )  # fmt: skip
    saved = cost - total
    return Savings(
        baseline,
        saved,
        float(saved / cost) if cost else 0.0,
        "cheapest fleet of one on-demand offer, limits on shares ignored",
    )


def _proof(context: Context, found: Found, mix: Mix, total: Decimal) -> Proof:
    result = mix.result
    bound = Decimal(repr(result.bound_usd)) if np.isfinite(result.bound_usd) else Decimal(0)
    optimal = result.status is Status.OPTIMAL
    return Proof(
        method="MILP over the mix for a fixed period",
        status="optimal" if optimal else "feasible",
        solver=result.solver,
        objective_usd=total,
        bound_usd=bound,
        gap_ratio=max(0.0, result.gap),
        candidates=len(found.candidates.all_bits()),
        offers=context.offer_set.offers.n_rows,
        shapes=found.candidates.shapes.n_rows,
        seconds=mix.seconds,
        note=f"{result.n_columns} offers in the model; the bound holds for the period of {mix.period:,.1f} h",
    )


def infeasible_fleet(context: Context, found: Found, reasons: list[Excess], seconds: float) -> Plan:
    """Build the answer when no mix exists: filter counts, and the least set of limits to move."""
    from planner.assemble import infeasible_plan
    from planner.explain import find_relaxations

    told = tuple(
        Relaxation(
            item.limit_name, f"{item.limit_name} {item.limit:,.6g}", f"{item.used:,.6g}", None, item.member
        )
        for item in reasons
    )
    return infeasible_plan(context, found, told or find_relaxations(context, found), seconds)
