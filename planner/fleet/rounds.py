"""Rounds of a fleet: the cheapest mix as billed, and how much is kept in reserve until it is sure enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.engine import CandidateSearch
from planner.candidates.ways.course import CONFIDENCE_SLIP
from planner.fleet.alone import NEAR
from planner.fleet.asking import Spread, question_of, spread_over
from planner.fleet.bill import bill_of
from planner.fleet.chance import progress_of, with_reserve
from planner.fleet.mix import Mix
from planner.fleet.moving_price import at_full_hours
from planner.fleet.own_ends import evenly
from planner.fleet.question import FleetInput
from planner.fleet.search import FleetResult
from planner.fleet.solve import solve_fleet
from planner.fleet.whole_runs import in_runs, model_cost, run_units
from planner.fleet.workers import Workers, in_granules
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Termination
from solvers.search.search import Clock

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.asked.model import Asked, Dates
    from planner.asked.options import Options


# Asked again in whole granules of billing where rounding hours up adds more than this part of the bill.
ROUNDING_RATIO = 1e-3
_NEARBY = 200  # offers asked about again, beside those used
_FEW = 1_000  # offers; so many are solved as one model, without a restricted one before it
_ROUNDS = 4  # times a mix is held against its bill, which rounds hours up
_FIRST_SHARE = 0.5  # of the reserve that a line needs by itself: asked for first, and added each time
Proven = tuple[FleetInput, FleetResult]  # a question, and the answer with its proof
_RESERVES = 6  # times more or less is kept in reserve
_RUNS_TIME_SHARE = 0.5  # of the time left, at most, for one mix in whole runs
_LEAST_S = 0.05  # for what must be tried
_ANYHOW = Spread()
# How the work is spread where the best mix is not sure, or lies further than this above the bound.
_SPREADS = ((Spread(4), NEAR), (Spread(2), 0.1), (Spread(spot_share=0.5), 0.1))


def confidence_of(asked: Asked, dates: Dates) -> float:
    """Least probability to meet the deadline, with room for rounding; 0 without a deadline."""
    if dates.deadline_hours is None:
        return 0.0
    return asked.workload.constraints.deadline_confidence - CONFIDENCE_SLIP


@dataclass(frozen=True, eq=False)
class Round:
    """A question about workers that leave some of their time in reserve.

    `first`: what was proven without any; `spread`: how the work is spread; `likely`: candidates among which a mix is
    looked for, as it needs no proof of its own: among all where there is none; `prove`: whether mixes are proven.
    """

    found: CandidateSearch
    workers: Workers
    limit: float
    work: float
    options: Options
    clock: Clock
    first: Proven | None = None
    spread: Spread = _ANYHOW
    likely: Ints | None = None
    prove: bool = True

    @property
    def left_s(self) -> float:
        """Seconds until the time limit."""
        return self.clock.left_s()

    @property
    def next_s(self) -> float:
        """Seconds that the next question may take: what is left, and a little where an answer needs it late."""
        return max(self.clock.for_next_s(), _LEAST_S)

    def ask(self, workers: Workers) -> FleetInput:
        """The question about workers without a reserve."""
        return question_of(self.found.context, workers, self.work)

    def among(self) -> Workers:
        """The workers that are likely, and those whose work is cheapest with their time in reserve."""
        if self.likely is None:
            return self.workers
        question = self.ask(self.workers)
        cheap = _cheapest_work(question)
        return self.workers.take(np.union1d(np.flatnonzero(np.isin(self.workers.at, self.likely)), cheap))

    def chance(self, mix: Mix | None) -> float:
        """Probability that a mix meets the deadline, 1 without one."""
        deadline = self.found.context.dates.deadline_hours
        if mix is None or deadline is None:
            return 1.0
        return progress_of(self.found, mix).chance(deadline, self.work)

    def is_sure(self, outcome: Outcome) -> bool:
        """Whether a mix meets the deadline with the confidence asked."""
        return outcome.chance >= confidence_of(self.found.context.asked, self.found.context.dates)

    def is_enough(self, outcome: Outcome) -> bool:
        """Whether a mix is sure, and as cheap as a mix can be or nearly."""
        return self.is_sure(outcome) and gap_of(outcome) <= max(self.options.gap, NEAR)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The cheapest mix of a round with its chance and cost; the last question and answer, and the first ones."""

    mix: Mix | None
    chance: float
    cost_usd: Decimal
    question: FleetInput
    result: FleetResult
    first: Proven


def sure_enough(asked: Round, mean: Outcome) -> Outcome:
    """The cheapest mix known that meets the deadline with the confidence asked, else the surest known.

    Workers of one offer share the level of its hazards, which no number of them evens out. Where the cheapest mix is
    neither sure nor near the bound, another gives no offer more than a quarter of the work; where that is not sure
    either, as where there are too few offers, or far from the bound, no more than a half, then all spot together.
    """
    best = _with_reserve(asked, mean, mean)
    for spread, gap in _SPREADS:
        done = asked.is_sure(best) and gap_of(best) <= max(asked.options.gap, gap)
        if asked.left_s <= 0 or done or best.mix is None:
            break
        best = _with_reserve(replace(asked, spread=spread), mean, best)
    return best


def _with_reserve(asked: Round, mean: Outcome, best: Outcome) -> Outcome:
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
        outcome = cheapest(replace(asked, workers=kept)) if len(kept.at) else None
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


def gap_of(outcome: Outcome) -> float:
    """How far the cost of a mix lies above what any fleet costs at the mean of spot."""
    return 1.0 - outcome.first[1].bound_usd / float(outcome.cost_usd) if outcome.cost_usd else 0.0


def _crowd(search: CandidateSearch, mix: Mix) -> float:
    """Spot workers of a mix, over whom chance evens out."""
    return max(float(mix.count[search.context.market.is_spot[mix.workers.rows]].sum()), 1.0)


def cheapest(asked: Round) -> Outcome:
    """The cheapest mix of the workers asked about: hours billed whole, within the budget."""
    found, options, work, workers = asked.found, asked.options, asked.work, asked.among()
    context = found.context
    units = run_units(context.asked)
    runs = round(work / units) if units else 1
    question = spread_over(question_of(context, workers, work), asked.spread, runs)
    # the proof of an answer is of its first question
    result = _solve(question, options, asked.next_s, exact=asked.first is None, prove=asked.prove)
    first, charged, spared = asked.first or (question, result), False, 0.0
    mixes: list[tuple[Decimal, Mix]] = []
    for _ in range(_ROUNDS):
        if not result.has_plan:
            break
        seconds = asked.clock.spent_s
        limit_s = max(asked.left_s * _RUNS_TIME_SHARE, _LEAST_S)
        whole = in_runs(
            evenly(_mix(workers, result, asked.limit, work), workers, units), question, units, limit_s
        )
        if whole is None:
            break
        mix = replace(whole, proof=first[1], gap=options.gap, seconds=seconds)
        cost, due = bill_of(found, mix)
        over = over_budget(context.asked, due)
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
        result = _solve(question, options, asked.next_s, exact=False, prove=asked.prove)
    if not mixes and asked.likely is not None and asked.left_s > 0:
        return cheapest(replace(asked, likely=None))
    least, best = min(mixes, key=lambda one: one[0]) if mixes else (Decimal(0), None)
    return Outcome(best, asked.chance(best), least, question, result, first)


def likely_of(workers: Workers, first: Outcome) -> Ints | None:
    """Candidates of the offers among which the first mix was found; None where it was looked for among all."""
    core = first.first[1].core
    return distinct_values(workers.at[np.asarray(core, dtype=np.int64)]) if core else None


def _cheapest_work(question: FleetInput) -> Ints:
    """Numbers of the offers whose work is cheapest, of spot and of the rest."""
    density = question.cost_usd / question.throughput
    rank = np.argsort(density, kind="stable")
    spot = question.is_spot[rank]
    return np.union1d(rank[spot][:_NEARBY], rank[~spot][:_NEARBY])


def _nearby(
    workers: Workers, question: FleetInput, mix: Mix, *, everything: bool
) -> tuple[Workers, Ints, Floats]:
    """Workers to ask again about, which of them the mix uses, and the hours those work.

    To save billed hours, those cheapest per work are enough beside the used ones; to keep the budget, all are asked.
    """
    density = question.cost_usd / question.throughput
    rank = np.argsort(density, kind="stable")
    numbers = np.arange(len(rank)) if everything else np.union1d(rank[:_NEARBY], mix.numbers)
    return workers.take(numbers), np.searchsorted(numbers, mix.numbers), mix.hours


def _mix(workers: Workers, result: FleetResult, limit: float, work: float) -> Mix:
    """The workers used and the hours that each of them works."""
    used = np.asarray(sorted(int(str(key)) for key in result.counts), dtype=np.int64)
    count = np.asarray([result.counts[number] for number in used.tolist()], dtype=np.int64)
    busy = np.asarray([result.busy[number] for number in used.tolist()], dtype=np.float64)
    chosen = workers.take(used)
    hours = np.minimum(busy / count, 1.0) * chosen.hours_limit
    return Mix(used, chosen, count, hours, limit, work, result)


def _solve(
    question: FleetInput, options: Options, time_limit_s: float, *, exact: bool, prove: bool
) -> FleetResult:
    wishes = SolveOptions(gap=options.gap, time_limit_s=time_limit_s, backend=options.backend)
    if len(question.keys) <= _FEW:
        wishes = replace(wishes, core_columns=0)
    return solve_fleet(question, wishes, exact=exact, prove=prove)


def over_budget(asked: Asked, due_usd: Decimal) -> float:
    """USD by which what falls due exceeds the budget; 0 or less where it does not."""
    budget = asked.workload.constraints.budget_usd
    return -np.inf if budget is None else float(due_usd - budget)
