"""The plan of one synchronous job: the best of all candidates, proven by enumeration and, if asked, by a MILP."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.candidates.choose import choose
from planner.candidates.constraints.deadline import leaves_out_fallbacks
from planner.candidates.decisions import count_near_ties
from planner.candidates.engine import CandidateSearch, Engine, build
from planner.candidates.model import IN_TURN, MIXED
from planner.candidates.plan_parts.infeasible import MOST_RELAXATIONS, find_remedies, infeasible_plan
from planner.candidates.plan_parts.summary import lines_of
from planner.errors import InputError
from planner.job.assemble import assemble_plan
from planner.market.pricing import total_usd
from planner.plan.model import Plan, Proof

if TYPE_CHECKING:
    from planner.asked.options import Options
    from planner.candidates.choose import Choice
    from planner.candidates.context import Context


def plan_job(context: Context, options: Options) -> tuple[Plan, CandidateSearch]:
    """Find the best candidate of a job and describe it, with all candidates looked at.

    Args:
        context: the planning run.
        options: solver, backend, replays, level of the quote.

    Raises:
        InputError: the MILP was asked for the least carbon.
        BackendError: the backend asked for is unknown or absent.
        PlannerError: enumeration and MILP disagree.
    """
    if context.asked.workload.preferences.objective == "carbon" and options.solver != "enumerate":
        raise InputError("--solver: the MILP compares cost or hours; `--solver enumerate` finds least carbon")
    begin = time.perf_counter()
    if options.brief:
        from planner.candidates.cheapest import build_cheapest

        engine, found = None, build_cheapest(context)
    else:
        engine = Engine(context)
        found = engine.at(context.dates.deadline)
    choice = choose(found.candidates, context.asked.workload.preferences.objective)
    if choice is None:
        return _explain_empty(found, begin)
    if options.solver == "milp":
        from planner.job.milp import choose_by_milp

        proof = choose_by_milp(found, choice, options, begin)
    else:
        proof = _enumeration_proof(found, choice, time.perf_counter() - begin)
        if options.solver == "both":
            from planner.job.milp import agreed_by_milp

            proof = agreed_by_milp(found, choice, options, proof, begin)
    plan = assemble_plan(found, choice, proof, brief=options.brief)
    if engine is not None and context.asked.workload.preferences.objective == "cost":
        from planner.job.later_deadline import cheaper_later

        later = cheaper_later(engine, plan, context.dates.deadline_hours)
        plan = replace(plan, relaxations=(*plan.relaxations, *later))
    if options.replays and plan.launch is not None:
        from planner.job.spot_replay import replay_of

        replay = replay_of(found.candidates, choice.winner, plan, options.replays)
        plan = replace(plan, launch=replace(plan.launch, replay=replay))
    if options.quote is not None:
        from planner.candidates.plan_parts.quote import quote_of

        plan = replace(plan, quote=quote_of(found.candidates, choice.winner, plan.total_usd, options.quote))
    return plan, found


def _explain_empty(search: CandidateSearch, begin: float) -> tuple[Plan, CandidateSearch]:
    """When nothing fits, look for another batch or precision, for less memory, and beyond the node limit."""
    from planner.job.batch import other_batch
    from planner.job.later_deadline import with_later_deadline
    from planner.job.least_budget import with_least_budget
    from planner.job.less_memory import with_less_memory
    from planner.job.memory_room import other_confidence
    from planner.job.precision import other_precision

    context = search.candidates.context
    of_training = (*other_batch(search), *other_precision(search))
    of_training += (*with_less_memory(search), *other_confidence(search))
    if context.asked.workload.constraints.max_nodes < 128:
        search = build(context, max_nodes=128)
    found = with_later_deadline(search, with_least_budget(search, find_remedies(search)))
    relaxations = (*of_training, *found)[:MOST_RELAXATIONS]
    return infeasible_plan(search, relaxations, time.perf_counter() - begin), search


def _enumeration_proof(search: CandidateSearch, choice: Choice, seconds: float) -> Proof:
    context = search.candidates.context
    candidates = search.candidates
    cost = total_usd(lines_of(candidates, choice.winner))
    counts = search.node_counts
    note = f"node counts {counts[0]}..{counts[-1]}: {len(counts)} sizes for all hardware"
    note += (
        f", all sizes for the {search.refined_hardware} that could do better between"
        if search.refined_hardware
        else ""
    )
    if candidates.mixes is not None:
        note += f"; {candidates.count(MIXED):,} clusters bought in parts"
    if candidates.turns is not None:
        note += f"; {candidates.count(IN_TURN):,} combinations of spot with a fall-back or several zones"
    return Proof(
        method="exact enumeration",
        status="optimal",
        solver="numpy",
        objective_usd=cost,
        bound_usd=cost,
        gap_ratio=0.0,
        candidates=len(candidates.all_bits()),
        offers=context.market.offer_set.offers.n_rows,
        shapes=candidates.shapes.n_rows,
        seconds=seconds,
        near_ties=count_near_ties(candidates),
        fallback_left_out=leaves_out_fallbacks(context.asked.workload, context.dates.deadline_hours),
        note=note,
    )
