"""Divisible work: a mix of offers, chosen by the MILP, for `kind: fleet`.

A worker is `fleet.nodes_per_run` instances of one offer. Workers share the work; each is paid for its fixed hours and
for the hours that it works, and a later deadline only lets it work longer: the least cost never rises with it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.engine import CandidateSearch, Engine
from planner.candidates.wanted import Wanted
from planner.candidates.ways.course import CONFIDENCE_SLIP
from planner.errors import InputError, PlannerError, TimeLimitError
from planner.fleet.alone import NEAR, cheapest_sure, fleets_of_one_offer
from planner.fleet.asking import Spread, check_asked, limit_hours_of, question_of, spread_over
from planner.fleet.bill import bill_of
from planner.fleet.chance import progress_of, with_reserve
from planner.fleet.kept import work_units
from planner.fleet.limits import relaxations_of, unsure
from planner.fleet.mix import Mix
from planner.fleet.moving_price import at_full_hours, at_least, at_most, at_their_dearest
from planner.fleet.plan import fleet_plan, infeasible_fleet
from planner.fleet.question import FleetInput
from planner.fleet.search import FleetResult
from planner.fleet.solve import solve_fleet
from planner.fleet.waits import in_time
from planner.fleet.whole_runs import in_runs, model_cost, run_units
from planner.fleet.workers import Workers, build_workers, in_granules, in_whole_runs
from solvers.problem.errors import BackendError
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status, Termination

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.asked.model import Asked, Dates
    from planner.asked.options import Options
    from planner.candidates.context import Context
    from planner.fleet.alone import Alone
    from planner.fleet.question import Excess
    from planner.inputs.load import LoadedWorkload
    from planner.plan.model import Plan

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]

# Asked again in whole granules of billing where rounding hours up adds more than this part of the bill.
ROUNDING_RATIO = 1e-3
_NEARBY = 200  # offers asked about again, beside those used
_ROUNDS = 4  # times a mix is held against its bill, which rounds hours up
_FIRST_SHARE = 0.5  # of the reserve that a line needs by itself: asked for first, and added each time
_NONE_SURE = "no mix was found that is likely enough to meet its deadline; this is not proven impossible"
_NONE_WHOLE = "no division into whole runs that meets every limit was found; this is not proven impossible"
_Proven = tuple[FleetInput, FleetResult]  # a question, and the answer with its proof
_RESERVES = 6  # times more or less is kept in reserve
_ANYHOW = Spread()
# How the work is spread where the best mix is not sure, or lies further than this above the bound.
_SPREADS = ((Spread(4), NEAR), (Spread(2), 0.1), (Spread(spot_share=0.5), 0.1))


def plan_fleet(
    loaded: LoadedWorkload,
    context: Context,
    options: Options,
    proven: list[_Proven] | None = None,
) -> Plan:
    """Find the cheapest mix of workers.

    Args:
        loaded: the file, for places in messages.
        context: the workload, offers and assumptions.
        options: gap, time limit, backend.
        proven: takes the question and answer that the plan's proof is about, where wanted.

    Raises:
        InputError: the workload asks what a fleet cannot answer, or the backend cannot be used.
        TimeLimitError: no mix, or none that is sure enough, was found within the time limit, and none was proven
            impossible.
    """
    check_asked(loaded, context.asked.workload)
    try:
        return _plan(context, options, proven)
    except BackendError as error:
        raise InputError(f"--backend: {error}") from error


def _plan(context: Context, options: Options, proven: list[_Proven] | None) -> Plan:
    begin = time.perf_counter()
    found = _candidates(context)
    context = found.context
    limit, work = limit_hours_of(context.asked, context.dates), work_units(context.asked)
    candidates, market = found.candidates, context.market
    units = run_units(context.asked)
    whole = build_workers(candidates, limit)
    workers = at_least(_with_time(in_whole_runs(whole, units)), market, work)
    if not len(workers.at):
        return infeasible_fleet(found, (), time.perf_counter() - begin)
    first = _cheapest(_Round(found, workers, limit, work, options, begin))
    if proven is not None and first.result.has_plan:
        proven.append(first.first)
    punctual = at_least(_with_time(in_whole_runs(in_time(candidates, whole), units)), market, work)
    rounds = _Round(found, punctual, limit, work, options, begin, first.first)
    sure = _sure_enough(rounds, first)
    if sure.mix is not None and rounds.is_sure(sure):
        return _answer(rounds, sure, first)
    if first.result.has_plan and (plan := _answer_of_one_offer(rounds, first)) is not None:
        return plan
    if sure.mix is not None:
        if rounds.left_s <= 0:
            message = (
                f"no fleet likely enough to meet its deadline was found within {options.time_limit_s:g} s"
            )
            raise TimeLimitError(f"{message}; raise --time-limit")
        spent, enough = time.perf_counter() - begin, unsure(found, sure.mix)
        return infeasible_fleet(found, enough, spent, unproven=_NONE_SURE)
    if first.result.status is Status.NO_SOLUTION:
        raise TimeLimitError(f"no fleet found within {options.time_limit_s:g} s; raise --time-limit")
    dear = at_most(workers, market)
    asked = at_their_dearest(first.question, question_of(context, dear, work, kept_hours=limit))
    reasons = relaxations_of(_reasons(asked, first.result), context.asked)
    unproven = _NONE_WHOLE if units and first.result.has_plan and not reasons else ""
    return infeasible_fleet(found, reasons, time.perf_counter() - begin, unproven=unproven)


def _with_time(workers: Workers) -> Workers:
    """Those that have time for any work."""
    return workers.take(np.flatnonzero(workers.hours_limit > 0))


def _answer(asked: _Round, sure: _Outcome, mean: _Outcome) -> Plan:
    """The mix, or one offer where a mix saves less than is known of it, or less than is worth its trouble."""
    found = asked.found
    wanted = _confidence(found.context.asked, found.context.dates)
    alone, one = _of_one_offer(asked)
    assert sure.mix is not None
    mix, proof = sure.mix, sure.first[1]
    if mean.chance < wanted:
        note = f"the cheapest at spot's mean is in time with {mean.chance:.0%} only: what {wanted:.0%} costs"
        mix = replace(mix, note=f"{note} beyond it is part of the gap")
    if one is not None:
        single = replace(one.mix(asked.limit, proof), gap=mix.gap, seconds=mix.seconds)
        usd, _ = bill_of(found, single)
        most = proof.bound_usd / (1.0 - asked.options.gap)
        saved = float((usd - sure.cost_usd) / usd) if usd else 0.0
        several = len(mix.count) > 1 and (float(usd) <= most or saved <= min(_gap_of(sure), NEAR))
        if saved <= 0 or several:
            words = f"{len(mix.count)} offers together cost USD {usd - sure.cost_usd:,.2f} less"
            mix = replace(single, note="; ".join(filter(None, (mix.note, words if saved > 0 else ""))))
    return fleet_plan(found, mix, alone, one, asked.ask)


def _answer_of_one_offer(asked: _Round, mean: _Outcome) -> Plan | None:
    """The cheapest fleet of one offer that is sure enough, where no mix found is; None where there is none either."""
    alone, one = _of_one_offer(asked)
    if one is None:
        return None
    mix = one.mix(asked.limit, mean.first[1])
    seconds = time.perf_counter() - asked.begin
    return fleet_plan(
        asked.found, replace(mix, gap=asked.options.gap, seconds=seconds), alone, one, asked.ask
    )


def _of_one_offer(asked: _Round) -> tuple[Alone, Alone | None]:
    """Fleets of each offer alone; the cheapest that is sure enough, where it is within the budget."""
    context = asked.found.context
    alone = fleets_of_one_offer(asked.found, asked.limit, asked.work)
    one = cheapest_sure(asked.found, alone, asked.ask, _confidence(context.asked, context.dates))
    if one is not None and _over_budget(context.asked, bill_of(asked.found, one.mix(asked.limit))[1]) > 0:
        one = None
    return alone, one


def _confidence(asked: Asked, dates: Dates) -> float:
    """Least probability to meet the deadline, with room for rounding; 0 without a deadline."""
    if dates.deadline_hours is None:
        return 0.0
    return asked.workload.constraints.deadline_confidence - CONFIDENCE_SLIP


@dataclass(frozen=True, eq=False)
class _Round:
    """A question about workers that leave some of their time in reserve.

    `first`: what was proven without any; `spread`: how the work is spread.
    """

    found: CandidateSearch
    workers: Workers
    limit: float
    work: float
    options: Options
    begin: float
    first: _Proven | None = None
    spread: Spread = _ANYHOW

    @property
    def left_s(self) -> float:
        """Seconds until the time limit."""
        return self.options.time_limit_s - (time.perf_counter() - self.begin)

    def ask(self, workers: Workers) -> FleetInput:
        """The question about workers without a reserve."""
        return question_of(self.found.context, workers, self.work)

    def chance(self, mix: Mix | None) -> float:
        """Probability that a mix meets the deadline, 1 without one."""
        deadline = self.found.context.dates.deadline_hours
        if mix is None or deadline is None:
            return 1.0
        return progress_of(self.found, mix).chance(deadline, self.work)

    def is_sure(self, outcome: _Outcome) -> bool:
        """Whether a mix meets the deadline with the confidence asked."""
        return outcome.chance >= _confidence(self.found.context.asked, self.found.context.dates)

    def is_enough(self, outcome: _Outcome) -> bool:
        """Whether a mix is sure, and as cheap as a mix can be or nearly."""
        return self.is_sure(outcome) and _gap_of(outcome) <= max(self.options.gap, NEAR)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """The cheapest mix of a round with its chance and cost; the last question and answer, and the first ones."""

    mix: Mix | None
    chance: float
    cost_usd: Decimal
    question: FleetInput
    result: FleetResult
    first: _Proven


def _sure_enough(asked: _Round, mean: _Outcome) -> _Outcome:
    """The cheapest mix known that meets the deadline with the confidence asked, else the surest known.

    Workers of one offer share the level of its hazards, which no number of them evens out. Where the cheapest mix is
    neither sure nor near the bound, another gives no offer more than a quarter of the work; where that is not sure
    either, as where there are too few offers, or far from the bound, no more than a half, then all spot together.
    """
    best = _with_reserve(asked, mean, mean)
    for spread, gap in _SPREADS:
        done = asked.is_sure(best) and _gap_of(best) <= max(asked.options.gap, gap)
        if asked.left_s <= 0 or done or best.mix is None:
            break
        best = _with_reserve(replace(asked, spread=spread), mean, best)
    return best


def _with_reserve(asked: _Round, mean: _Outcome, best: _Outcome) -> _Outcome:
    """`best`, or a better mix whose workers keep time in reserve.

    Workers that are not spot leave time for their wait, spot workers some of their time in reserve: the least share, by
    bisection, with which the whole mix is sure.
    """
    spot = asked.found.context.market.is_spot
    # what is not spot may need no more than time for its wait
    needs = mean.mix is not None and spot[mean.mix.workers.rows].any() and asked.spread == _ANYHOW
    low, high = 0.0 if needs else -_FIRST_SHARE, math.inf
    for _ in range(_RESERVES):
        late = asked.left_s <= 0 and (asked.is_sure(best) or low > 0)
        if best.mix is None or (asked.is_sure(best) and best is mean) or late or high <= 0:
            break
        if asked.is_enough(best):
            break
        share = low + _FIRST_SHARE if math.isinf(high) else (low + high) / 2.0
        crowd = _crowd(asked.found, best.mix)
        kept = with_reserve(asked.found.candidates, asked.workers, share, crowd, asked.spread.offers)
        outcome = _cheapest(replace(asked, workers=kept)) if len(kept.at) else None
        if outcome is None or outcome.mix is None:
            high = share
            continue
        low, high = (low, share) if asked.is_sure(outcome) else (share, high)
        if asked.is_sure(outcome):
            better = not asked.is_sure(best) or outcome.cost_usd < best.cost_usd
        else:
            better = not asked.is_sure(best) and outcome.chance > best.chance
        best = outcome if better else best
    return best


def _gap_of(outcome: _Outcome) -> float:
    """How far the cost of a mix lies above what any fleet costs at the mean of spot."""
    return 1.0 - outcome.first[1].bound_usd / float(outcome.cost_usd) if outcome.cost_usd else 0.0


def _crowd(search: CandidateSearch, mix: Mix) -> float:
    """Spot workers of a mix, over whom chance evens out."""
    return max(float(mix.count[search.context.market.is_spot[mix.workers.rows]].sum()), 1.0)


def _cheapest(asked: _Round) -> _Outcome:
    """The cheapest mix of the workers asked about: hours billed whole, within the budget."""
    found, options, work, workers = asked.found, asked.options, asked.work, asked.workers
    context = found.context
    units = run_units(context.asked)
    runs = round(work / units) if units else 1
    question = spread_over(question_of(context, workers, work), asked.spread, runs)
    # the proof of an answer is of its first question
    result = _solve(question, options, max(asked.left_s, 1.0), exact=asked.first is None)
    first, charged, spared = asked.first or (question, result), False, 0.0
    mixes: list[tuple[Decimal, Mix]] = []
    for _ in range(_ROUNDS):
        if not result.has_plan:
            break
        seconds = time.perf_counter() - asked.begin
        whole = in_runs(_mix(workers, result, asked.limit, work), question, units)
        if whole is None:
            break
        mix = replace(whole, proof=first[1], gap=options.gap, seconds=seconds)
        cost, due = bill_of(found, mix)
        over = _over_budget(context.asked, due)
        mixes += [(cost, mix)] if over <= 0 else []
        rounding = float(cost) - (model_cost(mix, question) if units else result.objective_usd)
        if over <= 0 and (charged or rounding <= ROUNDING_RATIO * float(cost)):
            break
        if mixes and result.termination is Termination.INTERRUPTED:
            break
        if charged:  # obligations may exceed what the job carries of them
            spared += over * (1 + 1e-6)
        else:
            near, used, hours = _nearby(workers, question, mix, everything=over > 0)
            workers = in_granules(at_full_hours(near, context.market, units), used, hours, work, units)
            charged = True
        if mixes and asked.left_s <= 0:
            break
        question = spread_over(question_of(context, workers, work, spared, mix.period), asked.spread, runs)
        result = _solve(question, options, max(asked.left_s, 1.0), exact=False)
    least, best = min(mixes, key=lambda one: one[0]) if mixes else (Decimal(0), None)
    return _Outcome(best, asked.chance(best), least, question, result, first)


def _nearby(
    workers: Workers, question: FleetInput, mix: Mix, *, everything: bool
) -> tuple[Workers, IntArray, FloatArray]:
    """Workers to ask again about, which of them the mix uses, and the hours those work.

    To save billed hours, those cheapest per work are enough beside the used ones; to keep the budget, all are asked.
    """
    density = question.cost_usd / question.throughput
    rank = np.argsort(density, kind="stable")
    numbers = np.arange(len(rank)) if everything else np.union1d(rank[:_NEARBY], mix.numbers)
    return workers.take(numbers), np.searchsorted(numbers, mix.numbers), mix.hours


def _candidates(context: Context) -> CandidateSearch:
    """Ways to do one run on one offer: what a worker can be."""
    fleet = context.asked.workload.fleet
    engine = Engine(context, sizes=(1 if fleet is None else fleet.nodes_per_run,))
    return engine.at(context.dates.deadline, Wanted(one_offer=True))


def _mix(workers: Workers, result: FleetResult, limit: float, work: float) -> Mix:
    """The workers used and the hours that each of them works."""
    used = np.asarray(sorted(int(str(key)) for key in result.counts), dtype=np.int64)
    count = np.asarray([result.counts[number] for number in used.tolist()], dtype=np.int64)
    busy = np.asarray([result.busy[number] for number in used.tolist()], dtype=np.float64)
    chosen = workers.take(used)
    hours = np.minimum(busy / count, 1.0) * chosen.hours_limit
    return Mix(used, chosen, count, hours, limit, work, result)


def _solve(question: FleetInput, options: Options, time_limit_s: float, *, exact: bool) -> FleetResult:
    wishes = SolveOptions(gap=options.gap, time_limit_s=time_limit_s, backend=options.backend)
    return solve_fleet(question, wishes, exact=exact)


def _over_budget(asked: Asked, due_usd: Decimal) -> float:
    """USD by which what falls due exceeds the budget; 0 or less where it does not."""
    budget = asked.workload.constraints.budget_usd
    return -np.inf if budget is None else float(due_usd - budget)


def _reasons(question: FleetInput, result: FleetResult) -> list[Excess]:
    """The least set of limits that must give way, and by how much.

    Raises:
        PlannerError: none need give way, though the solver said that nothing fits.
    """
    from planner.fleet.relaxation import explain_infeasible_fleet

    if not question.n_options:
        return []
    fleet_explanation = explain_infeasible_fleet(question)
    if fleet_explanation.solver_fault and result.status is Status.INFEASIBLE:
        raise PlannerError(
            f"solver fault: {result.solver} says that no fleet fits, yet one meets every limit; "
            "please report it, and try another --backend"
        )
    return list(fleet_explanation.relaxations)


__all__ = ["plan_fleet", "work_units"]
