"""From the chosen mix of workers to the `Plan`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.deadline import Unrecorded, leaves_out_fallbacks
from planner.candidates.filters import count_filters
from planner.candidates.plan_parts.ends import LEAST_CHANCE, outlasts
from planner.candidates.plan_parts.frame import cash_of, moment_text, plan_frame, unknown_options
from planner.candidates.plan_parts.warnings import plan_warnings
from planner.fleet.alone import broken_by, cheapest_on_demand, choice_of, summary_of
from planner.fleet.bill import lines_of
from planner.fleet.carbon import carbon_of
from planner.fleet.chance import progress_of
from planner.fleet.fallback import FALLBACKS_COMPARED, NOT_JUDGED, may_fall_back
from planner.fleet.spread import Spread, spread_of
from planner.fleet.stored_plan import storage_of
from planner.market.ends import owned_hours
from planner.market.pricing import total_usd
from planner.normal import Z80
from planner.normal.arrays import normal_cdf
from planner.plan.brief import Choice
from planner.plan.ids import TimePartId
from planner.plan.launch import Launch
from planner.plan.model import (
    FilterCount,
    Performance,
    Plan,
    Proof,
    Risk,
    Savings,
    TimePart,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from planner.candidates.engine import CandidateSearch
    from planner.fleet.alone import Alone
    from planner.fleet.mix import Mix
    from planner.fleet.question import FleetInput
    from planner.fleet.search import FleetResult
    from planner.fleet.workers import Workers
    from planner.plan.carbon import Carbon
    from planner.plan.model import PlanLine
    from planner.plan.relaxation import Relaxation
    from planner.plan.storage import StorageChoice


BASIS = "sized at the cautious end of the prediction; P: workers take each other's runs until the deadline"
_NOTE = "cheapest fleet of one on-demand offer, limits on shares ignored"


def fleet_plan(
    search: CandidateSearch, mix: Mix, alone: Alone, one: Alone | None, ask: Callable[[Workers], FleetInput],
    *, unjudged_usd: float = np.inf,
) -> Plan:  # fmt: skip
    """Build the plan of a mix: one line per offer, what a place costs once on its first line.

    Args:
        search: the candidates.
        mix: the workers.
        alone: fleets of each offer alone, of which the baseline is one.
        one: the cheapest sure one of these, a choice beside a mix of several offers.
        ask: makes the question about workers, whose limits the baseline may break.
        unjudged_usd: what fleets with a fall-back cost at least whose chance was not worked out.
    """
    lines = lines_of(search.candidates, mix)
    costs = [cost for line in lines for cost in line.costs]
    total = total_usd(costs)
    spread = spread_of(search, mix, total)
    risk, launch = _risk(search, mix, total, spread), _launch_of(search, mix, total, spread)
    savings, on_demand = savings_of(search, alone, total, mix.period, ask)
    single = one if len(mix.count) > 1 else None
    proof = _proof(search, mix, total, unjudged_usd)
    plan = plan_of(
        search, mix, lines, total=total, risk=risk, savings=savings, proof=proof, launch=launch,
        others=(*one_offer_choice(search, mix.period, single, total), *on_demand),
        carbon=carbon_of(search.candidates, mix), storage=storage_of(search.candidates, mix, lines),
    )  # fmt: skip
    return replace(plan, warnings=(*plan.warnings, *_outlasting(search, mix), *_unrecorded(plan.filters)))


def plan_of(
    search: CandidateSearch, mix: Mix, lines: list[PlanLine], *, total: Decimal, risk: Risk, savings: Savings,
    proof: Proof, launch: Launch | None, others: Sequence[Choice], carbon: Carbon, storage: tuple[StorageChoice, ...],
) -> Plan:  # fmt: skip
    """The plan of a fleet; `others`: choices beside it, of which those of the same machines become one."""
    context = search.candidates.context
    finish = context.dates.start + timedelta(hours=mix.period)
    report = count_filters(search.candidates.all_bits())
    itself = Choice(("cheapest",), None, moment_text(finish), risk.p_meet_deadline)
    return Plan(
        **plan_frame(context),
        status="planned",
        finish_expected=moment_text(finish),
        lines=tuple(lines),
        total_usd=total,
        hours=mix.period,
        timeline=timeline_of(mix),
        performance=performance_of(search, mix),
        risk=risk,
        savings=savings,
        cash=cash_of(context.dates, context.market, lines, finish),
        alternatives=(),
        filters=report.counts,
        filter_pairs=report.pairs,
        relaxations=(),
        unknown_options=unknown_options(context.market, lines),
        proof=proof,
        warnings=plan_warnings(context, lines, risk),
        n_results=1,
        n_feasible=report.passed,
        launch=launch,
        choices=_merged((itself, *others)),
        carbon=carbon,
        storage=storage,
    )


def _outlasting(search: CandidateSearch, mix: Mix) -> Iterator[str]:
    """Commitments that end before slow workers do."""
    candidates, workers = search.candidates, mix.workers
    left = owned_hours(search.context.market.offer_set, workers.rows, search.context.dates.start)
    room = (left - workers.lead_hours) / np.maximum(
        mix.shifts[1], 1e-12
    )  # some are there for their memory alone
    late = normal_cdf(-np.log(room) / np.maximum(workers.work_log_sd, 1e-12))
    for row, chance, hours in zip(
        workers.rows.tolist(), late.tolist(), mix.after_hours.tolist(), strict=True
    ):
        if row in search.context.market.offer_set.own_ends and chance >= LEAST_CHANCE:
            yield outlasts(candidates, row, chance, hours)


def _unrecorded(counts: Sequence[FilterCount]) -> tuple[str, ...]:
    """How to admit spot that only the lack of a record keeps out; it is often the cheapest."""
    kept_out = sum(item.removed_only_by_this for item in counts if item.name == Unrecorded.id)
    if not kept_out:
        return ()
    words = "spot without recorded interruptions is used only with a fall-back"
    return (f"{words} (offers: {kept_out:,}); spot.fallback: none allows it alone",)


def one_offer_choice(
    search: CandidateSearch, period: float, one: Alone | None, total: Decimal
) -> tuple[Choice, ...]:
    """The cheapest fleet of one offer, beside another that costs `total` and takes `period` hours."""
    if one is None:
        return ()
    cost = Decimal(repr(round(float(one.cost_usd(search)[0]), 6)))
    return (choice_of(search, one, summary_of(search, one, cost, total, period), "one_offer"),)


def _merged(choices: Sequence[Choice]) -> tuple[Choice, ...]:
    """Choices of the same machines as one, of both kinds."""
    out: dict[object, Choice] = {}
    for choice in choices:
        like = out.get(choice.best)
        out[choice.best] = choice if like is None else replace(like, kinds=like.kinds + choice.kinds)
    return tuple(out.values())


def _launch_of(search: CandidateSearch, mix: Mix, total: Decimal, spread: Spread) -> Launch | None:
    from planner.fleet.launch import fleet_launch

    return fleet_launch(search, mix, total, spread)


def timeline_of(mix: Mix) -> tuple[TimePart, ...]:
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
            "at the predicted speed",
        ),
    )
    return tuple(part for part in parts if part.hours > 0)


def performance_of(search: CandidateSearch, mix: Mix) -> Performance:
    """Speed averaged over the whole plan, waits included."""
    context = search.candidates.context
    seconds = mix.period * 3600.0
    faster = np.exp(search.candidates.sigma[mix.workers.at] * Z80)
    return Performance(
        unit=context.asked.job.unit, throughput_per_s=float(mix.units.sum()) / seconds,
        throughput_low_per_s=float((mix.units / faster).sum()) / seconds,
        throughput_high_per_s=float((mix.units * faster).sum()) / seconds,
        step_time_s=None, mfu=None, memory_needed_gib=None, memory_available_gib=None,
        limited_by="see each instance type",
    )  # fmt: skip


def _risk(search: CandidateSearch, mix: Mix, total: Decimal, spread: Spread) -> Risk:
    deadline = search.context.dates.deadline_hours
    interruptions, lost_hours = interruptions_of(search, mix)
    return Risk(
        p_meet_deadline=None if deadline is None else progress_of(search, mix).chance(deadline, mix.work),
        expected_interruptions=interruptions,
        expected_lost_hours=lost_hours,
        expected_hours=mix.period,
        worst_hours=spread.p90_hours,
        expected_cost_usd=total,
        worst_cost_usd=spread.p90_usd,
        basis=BASIS,
    )


def interruptions_of(search: CandidateSearch, mix: Mix) -> tuple[float, float]:
    """Interruptions to expect of a mix, and the hours that they lose, summed over its workers."""
    candidates, at = search.candidates, mix.workers.at
    runs = mix.runs(candidates.context.asked.job.total_units)
    return float(candidates.interruptions[at] @ runs), float(candidates.lost_hours[at] @ runs)


def savings_of(
    search: CandidateSearch, alone: Alone, total: Decimal, period: float, ask: Callable[[Workers], FleetInput]
) -> tuple[Savings, tuple[Choice, ...]]:
    """Compare with the cheapest fleet of one on-demand offer in the same time; that fleet as a choice."""
    on_demand = cheapest_on_demand(search, alone)
    if on_demand is None:
        why = "no single on-demand offer can do the work in time within max_nodes"
        return Savings(None, None, None, why), ()
    one, cost = on_demand
    baseline, saved = summary_of(search, one, cost, total, period), cost - total
    savings = Savings(baseline, saved, float(saved / cost) if cost else 0.0, _NOTE)
    aside = ("limits_aside",) if broken_by(ask(one.workers), one) else ()
    return savings, (choice_of(search, one, baseline, "on_demand", *aside),)


def _proof(search: CandidateSearch, mix: Mix, total: Decimal, unjudged_usd: float) -> Proof:
    context = search.candidates.context
    result = mix.proof
    assert result is not None
    bound = Decimal(repr(result.bound_usd)) if np.isfinite(result.bound_usd) else Decimal(0)
    bound = min(bound, total)
    if np.isfinite(unjudged_usd):
        bound = min(bound, Decimal(repr(unjudged_usd)))
    gap = float((total - bound) / total) if total else 0.0
    note = f"{result.n_columns} options for a worker in the model"
    if gap > mix.gap:
        note += "; the bound is for hours as worked, at the least that they can cost: billing rounds them up"
    if may_fall_back(search):
        note += f"; {FALLBACKS_COMPARED}"
    if np.isfinite(unjudged_usd):
        note += f"; {NOT_JUDGED}"
    if mix.note:
        note += f"; {mix.note}"
    return Proof(
        method="MILP over whole workers and their hours",
        status="optimal" if gap <= mix.gap * (1 + 1e-6) else "feasible",
        solver=result.solver,
        objective_usd=total,
        bound_usd=bound,
        gap_ratio=gap,
        candidates=len(search.candidates.all_bits()),
        offers=context.market.offer_set.offers.n_rows,
        shapes=search.candidates.shapes.n_rows,
        seconds=mix.seconds,
        fallback_left_out=leaves_out_fallbacks(context.asked.workload, context.dates.deadline_hours),
        note=note,
        gap_exact_ratio=_exact_gap(result, total),
        gap_asked_ratio=mix.gap,
    )


def _exact_gap(result: FleetResult, total: Decimal) -> float | None:
    if not np.isfinite(result.exact_bound_usd) or not total:
        return None
    return max(0.0, float((total - Decimal(repr(result.exact_bound_usd))) / total))


def infeasible_fleet(
    search: CandidateSearch, relaxations: tuple[Relaxation, ...], seconds: float, *, unproven: str = ""
) -> Plan:
    """Build the answer when no mix exists: filter counts, and the least set of limits to move.

    `unproven`: what was not found, where a search says that there is none and no proof.
    """
    from planner.candidates.plan_parts.infeasible import find_relaxations, infeasible_plan

    changes = relaxations or tuple(
        replace(item, best=None, note=f"so that one run fits, all may need more: {item.note}")
        for item in find_relaxations(search)
    )
    plan = infeasible_plan(search, changes, seconds)
    if not unproven or plan.proof is None:
        return plan
    return replace(plan, proof=replace(plan.proof, method="search over mixes of workers", note=unproven))
