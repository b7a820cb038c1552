"""From the chosen candidate to the `Plan`: lines in Decimal, risk, baseline, cash, alternatives, provenance."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from planner.candidates.choose import Choice
from planner.candidates.filters import count_filters
from planner.candidates.model import IN_TURN
from planner.candidates.plan_parts.carbon import carbon_of
from planner.candidates.plan_parts.division import division_warnings
from planner.candidates.plan_parts.ends import end_warnings
from planner.candidates.plan_parts.frame import (
    cash_of,
    moment_text,
    offer_line,
    plan_frame,
    unknown_options,
)
from planner.candidates.plan_parts.infeasible import find_better
from planner.candidates.plan_parts.layouts import layout_of, phases_of
from planner.candidates.plan_parts.loading import loading_of
from planner.candidates.plan_parts.storage import storage_of
from planner.candidates.plan_parts.summary import best_on_known_prices, find_savings, lines_by_part
from planner.candidates.plan_parts.timeline import performance_of, risk_of, timeline_of
from planner.candidates.plan_parts.warnings import memory_warnings, plan_warnings
from planner.job.alternatives import alternatives_of, choices_of
from planner.market.pricing import total_usd
from planner.plan.launch import Launch
from planner.plan.model import Plan, PlanLine, Proof

if TYPE_CHECKING:
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Workload
    from planner.plan.model import Savings

_NOTHING_BESIDE: dict[str, Any] = {
    "n_results": 1, "alternatives": (), "filters": (), "filter_pairs": (), "relaxations": (),
}  # fmt: skip


def assemble_plan(search: CandidateSearch, choice: Choice, proof: Proof, *, brief: bool = False) -> Plan:
    """Build the plan of the winning candidate.

    Args:
        search: all candidates.
        choice: winner and ranking.
        proof: how the choice was proven.
        brief: leave out what stands beside the plan and the reasons for its launch.
    """
    context = search.candidates.context
    candidates, at = search.candidates, choice.winner
    lines = plan_lines(candidates, at)
    total = total_usd([cost for line in lines for cost in line.costs])
    launch = _launch_of(candidates, at, total, with_reasons=not brief)
    risk = risk_of(candidates, at, total, launch)
    hours, in_turn = float(candidates.hours[at]), bool(candidates.kind[at] == IN_TURN)
    savings = find_savings(search, at)
    return Plan(
        **plan_frame(context),
        **(_NOTHING_BESIDE if brief else _beside(search, at, lines, total)),
        status="planned",
        finish_expected=moment_text(context.dates.start + timedelta(hours=hours)),
        lines=tuple(lines),
        total_usd=total,
        hours=hours,
        timeline=timeline_of(candidates, at),
        performance=performance_of(candidates, at),
        risk=risk,
        savings=savings,
        cash=cash_of(context.dates, context.market, lines, context.dates.start + timedelta(hours=hours)),
        unknown_options=unknown_options(context.market, lines),
        proof=proof,
        warnings=(
            *plan_warnings(context, lines, risk, in_turn=in_turn),
            *end_warnings(candidates, at),
            *memory_warnings(candidates, at),
            *(() if brief else division_warnings(candidates, at)),
            *(() if brief or launch is None else _of_spot(candidates, at)),
            *_unknown_baseline(context.asked.workload, savings),
        ),
        n_feasible=choice.n_feasible,
        launch=launch,
        checkpoint_interval_hours=float(candidates.interval_hours[at]),
        carbon=carbon_of(candidates, at),
        **phases_of(candidates, at),
    )


def _of_spot(candidates: Candidates, at: int) -> list[str]:
    from planner.candidates.plan_parts.launch import spot_warnings  # as below: where there is spot alone

    return spot_warnings(candidates, at)


def _unknown_baseline(workload: Workload, savings: Savings) -> list[str]:
    """Why the cluster that the workload names as its baseline is not compared."""
    named = workload.baseline is not None and savings.baseline is None
    return [savings.note] if named else []


def _beside(search: CandidateSearch, at: int, lines: list[PlanLine], total: Decimal) -> dict[str, Any]:
    """Fields of the plan of candidate `at` that stand beside it: what else could be bought, and what it rests on."""
    candidates = search.candidates
    limit = candidates.context.asked.workload.preferences.max_results
    others, folded = alternatives_of(candidates, at, limit)
    report = count_filters(candidates.all_bits())
    return {
        "alternatives": others,
        "folded": folded,
        "n_results": len(others) + 1,
        "choices": choices_of(candidates, at),
        "on_known_prices": best_on_known_prices(candidates, at),
        "filters": report.counts,
        "filter_pairs": report.pairs,
        "relaxations": find_better(search, at),
        "storage": storage_of(candidates, at, lines),
        "loading": loading_of(candidates, at, total),
    }


def _launch_of(candidates: Candidates, at: int, total: Decimal, *, with_reasons: bool) -> Launch | None:
    context = candidates.context
    if not any(context.market.is_spot[part.row] for part in candidates.parts(at)):
        return None
    from planner.candidates.plan_parts.launch import launch_of

    return launch_of(candidates, at, total, with_reasons=with_reasons)


def plan_lines(candidates: Candidates, at: int) -> list[PlanLine]:
    """Describe what candidate `at` buys: one line per part; the layout is that of all parts together."""
    context = candidates.context
    layout = layout_of(candidates, at)
    step_s = float(candidates.shapes["step_time_s"][candidates.shape[at]])
    units = context.asked.job.units_per_step / step_s
    parts, whole = candidates.parts(at), int(candidates.nodes[at])
    return [
        offer_line(
            context.asked, context.market, part.row, part.nodes, part.billed_hours, units * (part.nodes / whole),
            tuple(costs), layout, float(candidates.hours[at]),
        )
        for part, costs in zip(parts, lines_by_part(candidates, at), strict=True)
    ]  # fmt: skip
