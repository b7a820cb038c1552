"""Divisible work: a mix of offers, chosen by the MILP, for `kind: fleet`.

A worker is `fleet.nodes_per_run` instances of one offer. Workers share the work; each is paid for its fixed hours and
for the hours that it works, and a later deadline only lets it work longer: the least cost never rises with it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.engine import CandidateSearch, Engine
from planner.candidates.wanted import Wanted
from planner.errors import PlannerError, TimeLimitError
from planner.fleet.alone import NEAR, cheapest_sure, fleets_of_one_offer
from planner.fleet.asking import check_asked, limit_hours_of, question_of
from planner.fleet.bill import bill_of
from planner.fleet.fallback_mix import bill_of_fallback, mix_of_fallback
from planner.fleet.fallback_plan import fallback_plan
from planner.fleet.fallback_search import MOST_JUDGED, cheapest_with_fallback
from planner.fleet.fewer_at_once import with_fewer_at_once
from planner.fleet.kept import work_units
from planner.fleet.known_places import with_known_places
from planner.fleet.limits import relaxations_of, unsure
from planner.fleet.moving_price import at_least, at_most, at_their_dearest
from planner.fleet.parts import bill_of_parts, cheapest_in_parts
from planner.fleet.parts_plan import plan_in_parts
from planner.fleet.plan import fleet_plan, infeasible_fleet
from planner.fleet.question import Excess, FleetInput
from planner.fleet.rounds import (
    Outcome,
    Proven,
    Round,
    cheapest,
    confidence_of,
    gap_of,
    likely_of,
    over_budget,
    sure_enough,
)
from planner.fleet.search import FleetResult
from planner.fleet.waits import in_time
from planner.fleet.whole_runs import run_units
from planner.fleet.workers import Workers, build_workers, in_whole_runs
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from solvers.search.search import Clock

if TYPE_CHECKING:
    from planner.asked.model import Asked
    from planner.asked.options import Options
    from planner.candidates.context import Context
    from planner.fleet.alone import Alone
    from planner.fleet.fallback_search import Cheapest
    from planner.fleet.mix import Mix
    from planner.inputs.load import LoadedWorkload
    from planner.plan.model import Plan


_NONE_SURE = (
    "no mix found that meets the deadline with the required probability; this is not proven impossible"
)
_NONE_JUDGED = (
    "no fleet found that meets the deadline with the required probability, which was computed for only "
    f"{MOST_JUDGED} fleets with a fall-back; this is not proven impossible"
)
_BEFORE_WHOLE = "if runs could be split; whole runs may need more"
_NONE_WHOLE = "no division into whole runs found that meets every limit; this is not proven impossible"
# Another set of limits than more budget is looked for only where it may weigh less by this share.
WORTH = 0.05


def plan_fleet(loaded: LoadedWorkload, context: Context, options: Options) -> tuple[Plan, Proven | None]:
    """Find the cheapest mix of workers, with the model and solution that its proof is about (None: not one model).

    Args:
        loaded: the file, for places in messages.
        context: the workload, offers and assumptions.
        options: gap, time limit, backend.

    Raises:
        InputError: the workload asks what a fleet cannot answer.
        BackendError: the backend asked for is unknown or absent.
        TimeLimitError: no mix, or none that is sure enough, was found within the time limit, and none was proven
            impossible.
    """
    check_asked(loaded, context.asked.workload)
    plan, proven = _plan(context, options)

    def ask(asked: Asked, rest: Options) -> Plan:
        return _plan(context.with_asked(asked), rest, explained=False)[0]

    plan = with_fewer_at_once(plan, context.asked, options, ask)
    return with_known_places(plan, context.market, options, ask), proven


def _plan(context: Context, options: Options, *, explained: bool = True) -> tuple[Plan, Proven | None]:
    """The plan and what its proof is about; `explained`: where there is none, with what would be enough."""
    clock = Clock(options.time_limit_s)
    clock.left_s()  # it runs from here on: candidates count
    found = _candidates(context)
    context = found.context
    limit, work = limit_hours_of(context.asked, context.dates), work_units(context.asked)
    market, units = context.market, run_units(context.asked)
    whole = build_workers(found.candidates, limit)
    workers = at_least(_with_time(in_whole_runs(whole, units)), market, work)
    rounds = Round(found, workers, limit, work, options, clock)
    if not len(workers.at):
        fallen = cheapest_with_fallback(rounds, np.inf)
        if fallen.fleet is not None:
            alone = fleets_of_one_offer(found, limit, work)
            return fallback_plan(rounds, fallen, alone, None, None), None
        return infeasible_fleet(found, (), clock.spent_s, unproven=_unjudged(fallen)), None
    first = cheapest(rounds)
    punctual = at_least(_with_time(in_whole_runs(in_time(found.candidates, whole), units)), market, work)
    rounds = replace(rounds, workers=punctual, first=first.first, likely=likely_of(workers, first))
    sure = sure_enough(rounds, first)
    alone, one = _of_one_offer(rounds)
    mix = _answer(rounds, sure, first, one)
    least = np.inf if mix is None else float(bill_of(found, mix)[0])
    fallen = cheapest_with_fallback(rounds, least)
    parts = cheapest_in_parts(
        rounds, least if fallen.fleet is None else float(fallen.fleet.cost_usd(found)[0])
    )
    unjudged = min(fallen.unjudged_usd, parts.unjudged_usd)
    if parts.parts is not None:
        return plan_in_parts(rounds, replace(parts, unjudged_usd=unjudged), alone, one, first), None
    fallen = replace(fallen, unjudged_usd=unjudged)
    if fallen.fleet is not None:
        return fallback_plan(rounds, fallen, alone, one, first), None
    proven = first.first if first.result.has_plan else None
    if mix is not None:
        return fleet_plan(found, mix, alone, one, rounds.ask, unjudged_usd=fallen.unjudged_usd), proven
    enough = _whatever_the_budget(rounds, replace(rounds, workers=workers), first, alone)
    due = None if enough is None else bill_of(found, enough)[1]
    may_fit = first.first[1].has_plan  # a later question holds some of the budget back
    if enough is not None and due is not None and may_fit and over_budget(context.asked, due) <= 0:
        mix = replace(enough, gap=options.gap, seconds=clock.spent_s)
        return fleet_plan(found, mix, alone, one, rounds.ask, unjudged_usd=fallen.unjudged_usd), proven
    due_usd = None if due is None else float(due)
    unjudged_words = _unjudged(fallen)
    return _none(rounds, workers, sure, first, due_usd, unjudged_words, explained=explained), proven


def _none(
    asked: Round,
    workers: Workers,
    sure: Outcome,
    first: Outcome,
    enough_usd: float | None,
    unjudged: str,
    *,
    explained: bool,
) -> Plan:
    """The answer where no fleet is likely enough, or none is possible.

    Args:
        asked: the question about workers that are in time.
        workers: all, whatever the luck.
        sure: the surest mix.
        first: the cheapest mix at spot's mean.
        enough_usd: a budget with which a plan is known, None where none is.
        unjudged: what is said of fleets with a fall-back whose chance was not worked out; empty without any.
        explained: also say which limits must give way.
    """
    found, options = asked.found, asked.options
    if sure.mix is not None:
        if asked.left_s <= 0:
            message = (
                f"no fleet likely enough to meet its deadline was found within {options.time_limit_s:g} s"
            )
            raise TimeLimitError(f"{message}; raise --time-limit")
        spent, enough = asked.clock.spent_s, unsure(found, sure.mix)
        return infeasible_fleet(found, enough, spent, unproven=unjudged or _NONE_SURE)
    if first.result.status is Status.NO_SOLUTION:
        raise TimeLimitError(f"no fleet found within {options.time_limit_s:g} s; raise --time-limit")
    if not explained:
        return infeasible_fleet(found, (), asked.clock.spent_s, unproven=unjudged)
    context = found.context
    dear = at_most(workers, context.market)
    question = question_of(context, dear, asked.work, kept_hours=asked.limit)
    wishes = SolveOptions(time_limit_s=asked.next_s, backend=options.backend)
    broken = _reasons(at_their_dearest(first.question, question), first.result, wishes, enough_usd)
    budget = context.asked.workload.constraints.budget_usd
    if (
        enough_usd is not None
        and budget is not None
        and all(one.limit_name == "budget_usd" for one in broken)
    ):
        broken = [Excess("budget_usd", "", enough_usd, float(budget))]  # with less no plan is known
    beyond = _beyond_budget(asked)
    if beyond and [one.limit_name for one in broken] == [beyond[0].limit_name]:
        broken, beyond = [min(*broken, *beyond, key=lambda one: one.used)], []
    reasons = relaxations_of(beyond, context.asked) + relaxations_of(broken, context.asked)
    in_runs = bool(run_units(context.asked))
    unproven = _NONE_WHOLE if in_runs and first.result.has_plan and not reasons else ""
    by_plan = enough_usd is not None and [one.limit_name for one in broken] == ["budget_usd"]
    if in_runs and not by_plan:  # they are what a mix needs whose work divides freely
        reasons = tuple(replace(one, note=f"{_BEFORE_WHOLE}: {one.note}") for one in reasons)
    return infeasible_fleet(found, reasons, asked.clock.spent_s, unproven=unjudged or unproven)


def _unjudged(fallen: Cheapest) -> str:
    """What is said where the chance of some fleets with a fall-back was not worked out; empty without any."""
    return "" if np.isinf(fallen.unjudged_usd) else _NONE_JUDGED


def _whatever_the_budget(asked: Round, anyhow: Round, first: Outcome, alone: Alone) -> Mix | None:
    """The fleet found that is sure enough and of which least falls due, budget aside; None where none is.

    It may be within the budget: a search that is held to the budget looks elsewhere.

    Args:
        asked: the question about workers that are in time.
        anyhow: the same about all workers, whatever the luck.
        first: the cheapest mix at spot's mean.
        alone: fleets of one offer.
    """
    found, context = asked.found, asked.found.context
    if context.asked.workload.constraints.budget_usd is None or asked.left_s <= 0:
        return None
    limits = context.asked.workload.constraints.model_copy(update={"budget_usd": None})
    workload = context.asked.workload.model_copy(update={"constraints": limits})
    found = replace(found, context=replace(context, asked=replace(context.asked, workload=workload)))
    free = replace(asked, found=found, likely=None, prove=False)
    mixes = []
    one = cheapest_sure(found, alone, free.ask, confidence_of(context.asked, context.dates))
    if one is not None:
        mixes.append(one.mix(asked.limit, first.first[1]))
    mean = cheapest(replace(free, workers=anyhow.workers, first=first.first))
    sure = sure_enough(free, mean)
    if sure.mix is not None and asked.is_sure(sure):
        mixes.append(sure.mix)
    return min(mixes, key=lambda mix: bill_of(found, mix)[1], default=None)


def _beyond_budget(asked: Round) -> list[Excess]:
    """The budget that the cheapest fleet in which workers fall back needs, where that keeps all other limits."""
    budget = asked.found.context.asked.workload.constraints.budget_usd
    if budget is None:
        return []
    one = cheapest_with_fallback(asked, np.inf, within_budget=False).fleet
    parts = cheapest_in_parts(asked, np.inf, within_budget=False).parts
    due = [] if one is None else [bill_of_fallback(asked.found, mix_of_fallback(asked, one))[1]]
    due += [] if parts is None else [bill_of_parts(parts)[1]]
    return [Excess("budget_usd", "", float(min(due)), float(budget))] if due else []


def _with_time(workers: Workers) -> Workers:
    """Those that have time for any work."""
    return workers.take(np.flatnonzero(workers.hours_limit > 0))


def _answer(asked: Round, sure: Outcome, mean: Outcome, one: Alone | None) -> Mix | None:
    """The mix, or one offer where a mix saves less than is known of it, or less than is worth its trouble.

    The cheapest fleet of one offer that is sure enough, where no mix found is; None where there is none either.
    """
    found = asked.found
    wanted = confidence_of(found.context.asked, found.context.dates)
    if sure.mix is None or not asked.is_sure(sure):
        if one is None or not mean.result.has_plan:
            return None
        mix = one.mix(asked.limit, mean.first[1])
        return replace(mix, gap=asked.options.gap, seconds=asked.clock.spent_s)
    mix, proof = sure.mix, sure.first[1]
    if mean.chance < wanted:
        note = f"the cheapest at spot's mean is in time with {mean.chance:.0%} only: what {wanted:.0%} costs"
        mix = replace(mix, note=f"{note} beyond it is part of the gap")
    if one is not None:
        single = replace(one.mix(asked.limit, proof), gap=mix.gap, seconds=mix.seconds)
        usd, _ = bill_of(found, single)
        most = proof.bound_usd / (1.0 - asked.options.gap)
        saved = float((usd - sure.cost_usd) / usd) if usd else 0.0
        several = len(mix.count) > 1 and (float(usd) <= most or saved <= min(gap_of(sure), NEAR))
        if saved <= 0 or several:
            words = f"{len(mix.count)} offers together cost USD {usd - sure.cost_usd:,.2f} less"
            mix = replace(single, note="; ".join(filter(None, (mix.note, words if saved > 0 else ""))))
    return mix


def _of_one_offer(asked: Round) -> tuple[Alone, Alone | None]:
    """Fleets of each offer alone; the cheapest that is sure enough, where it is within the budget."""
    context = asked.found.context
    alone = fleets_of_one_offer(asked.found, asked.limit, asked.work)
    one = cheapest_sure(asked.found, alone, asked.ask, confidence_of(context.asked, context.dates))
    if one is not None and over_budget(context.asked, bill_of(asked.found, one.mix(asked.limit))[1]) > 0:
        one = None
    return alone, one


def _candidates(context: Context) -> CandidateSearch:
    """Ways to do one run on one offer: what a worker can be."""
    fleet = context.asked.workload.fleet
    engine = Engine(context, sizes=(1 if fleet is None else fleet.nodes_per_run,))
    return engine.at(context.dates.deadline, Wanted(one_offer=True))


def _reasons(
    question: FleetInput, result: FleetResult, wishes: SolveOptions, enough_usd: float | None
) -> list[Excess]:
    """A set of limits that must give way, and by how much; it may be up to `WORTH` heavier than the lightest.

    `wishes`: how to solve, and the time left; `enough_usd`: a budget with which a plan is known.

    Raises:
        PlannerError: none need give way, though the solver said that nothing fits.
    """
    from planner.fleet.relaxation import explain_infeasible_fleet

    if not question.n_options:
        return []
    fleet_explanation = explain_infeasible_fleet(question, options=wishes, worth=WORTH, enough_usd=enough_usd)
    if fleet_explanation.solver_fault and result.status is Status.INFEASIBLE:
        raise PlannerError(
            f"solver fault: {result.solver} says that no fleet fits, yet one meets every limit; "
            "please report it, and try another --backend"
        )
    return list(fleet_explanation.relaxations)


__all__ = ["plan_fleet", "work_units"]
