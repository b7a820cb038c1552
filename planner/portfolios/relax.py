"""Why a portfolio does not fit: which limits must give way, by how much, and the plan that follows.

The amounts are computed in whole numbers from the choice that the softened model makes, whatever its solver did: the
limits raised by them hold that choice, so the plan solved with them exists in every case.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from catalogs.tables.table import Floats, Ints, distinct_values
from planner.portfolios.core import core_of, rank_of, sifting_of
from planner.portfolios.elastic import ElasticWeights, build_elastic, reduce_elastic
from planner.portfolios.greedy import Ledger
from planner.portfolios.reduce import Reduced
from planner.portfolios.shared_limits import MICRO, PortfolioInput
from planner.portfolios.solve import PortfolioOptions, PortfolioResult, solve_portfolio
from solvers.backends.registry import get_backend
from solvers.problem.options import SolveOptions
from solvers.problem.presolve import restrict
from solvers.problem.solution import relative_gap
from solvers.search.search import Search
from solvers.search.tighten import safe_bound

ELASTIC_GAP = 1e-3
ELASTIC_TIME_SHARE = 0.6  # of the time limit, at most, for the question what must give way
CORE_NODES = 1  # of branch and bound: a good set soon is worth more than the proof that it is the least
REPLAN_COLUMNS = 2_500  # of the restricted model for the plan within the moved limits, which is a proposal
REPLAN_EACH = 2  # of them per job, at least
REPLAN_GAP = 5e-3  # of that model: the plan's bound is 10 to 35 % away
CORE_EACH = 2  # candidates per job in the restricted model: four take three times as long, for 1 % less
IMPROVING_ROUNDS = 5


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The least that must give way.

    Attributes:
        raised: units more of each limit, shape `(n_limits,)`.
        late_hours: hours after its deadline that each job may end, shape `(n_jobs,)`.
        over_budget: micro-dollars more of the budget.
        weighted_usd: what giving way costs by the user's weights.
        bound_usd: no way of giving way costs less, as the solver claims; -inf without a claim.
        proven: the least within `ELASTIC_GAP`, as the solver claims.
        picks: the choice behind the amounts (a candidate per job).
        question: the portfolio with the limits raised; `kept` are its candidates' numbers in the original.
        plan: its solution.
        seconds: until the amounts were known.
    """

    raised: Ints
    late_hours: Floats
    over_budget: int
    weighted_usd: float
    bound_usd: float
    proven: bool
    picks: Ints
    question: PortfolioInput
    kept: Ints
    plan: PortfolioResult
    seconds: float

    @property
    def nothing(self) -> bool:
        """Whether nothing has to give way: then whoever called it infeasible was wrong."""
        return not self.raised.any() and not self.late_hours.any() and not self.over_budget

    @property
    def gap(self) -> float:
        """(weight - bound) / weight; inf without a bound."""
        return relative_gap(self.weighted_usd, self.bound_usd)


def relax_portfolio(
    question: PortfolioInput,
    late_hours: Floats,
    weights: ElasticWeights,
    usd_per_hour_late: float,
    options: PortfolioOptions,
) -> Relaxed:
    """Find the least set of limits to move, and the plan within the moved limits.

    Args:
        question: the portfolio with every candidate, also those that end late; each job has one at least.
        late_hours: hours after the deadline of each candidate, shape `(n_candidates,)`.
        weights: of limits.
        usd_per_hour_late: weight of lateness.
        options: how to solve; the time limit covers both steps.
    """
    began = time.perf_counter()
    late = np.rint(late_hours * usd_per_hour_late * MICRO).astype(np.int64)
    reduced = reduce_elastic(replace(question, objective=late))
    search = _least(reduced, weights, options)
    assert search.best is not None  # every job has a candidate
    found = _Choice(reduced.keep[search.best], search.bound, search.closed)
    return _with_plan(question, late_hours, late, weights, found, options, began)


def relax_budget(
    question: PortfolioInput, late_hours: Floats, weights: ElasticWeights, options: PortfolioOptions
) -> Relaxed | None:
    """The budget of the cheapest plan in time, where it is proven that nothing lighter can give way; else None.

    Whatever else gives way, every job costs at least its cheapest candidate, late ones included, so no set weighs less
    than the budget that all the cheapest need. By how much late ones are late does not matter.

    Args:
        question: as for `relax_portfolio`.
        late_hours: above 0 where a candidate is late, shape `(n_candidates,)`.
        weights: of limits.
        options: how to solve; the time limit covers both steps.
    """
    if question.budget is None or not question.over_budget:
        return None
    began = time.perf_counter()
    in_time = np.flatnonzero(late_hours <= 0)
    if len(distinct_values(question.job[in_time])) < question.n_jobs:
        return None
    nothing = np.zeros(question.n_candidates, dtype=np.int64)
    none = np.zeros(question.n_jobs)
    free, _ = _moved(
        replace(question, budget=None, objective=question.cost),
        late_hours,
        np.zeros_like(question.limit),
        none,
        0,
    )
    found = solve_portfolio(free, options)
    if found.picks is None:
        return None
    picks = in_time[found.picks]
    each = weights.usd_per_usd_over_budget / MICRO
    weighted = (int(question.cost[picks].sum()) - question.budget) * each
    bound = (question.least_cost - question.budget) * each
    if relative_gap(weighted, bound) > ELASTIC_GAP:
        return None
    return _with_plan(
        question, late_hours, nothing, weights, _Choice(picks, bound, proven=True), options, began
    )


class _Choice(NamedTuple):
    """A choice that breaks little (a candidate per job), a bound on what any breaks, USD, and whether that is all."""

    picks: Ints
    bound_usd: float
    proven: bool


def _with_plan(
    question: PortfolioInput,
    late_hours: Floats,
    late: Ints,
    weights: ElasticWeights,
    choice: _Choice,
    options: PortfolioOptions,
    began: float,
) -> Relaxed:
    """What a choice breaks, and the plan within the limits so moved; `late` weighs lateness in micro-dollars."""
    picks = choice.picks
    raised = np.maximum(question.used(picks) - question.limit, 0)
    over = 0 if question.budget is None else max(int(question.cost[picks].sum()) - question.budget, 0)
    weighted = _weighted(question, raised, weights) + over / MICRO * weights.usd_per_usd_over_budget
    weighted += float(late[picks].sum()) / MICRO
    seconds = time.perf_counter() - began
    allowed = late_hours[picks]
    moved, keep = _moved(question, late_hours, raised, allowed, over)
    left = max(options.time_limit_s - seconds, 0.05 * options.time_limit_s)
    position = np.cumsum(keep) - 1
    again = replace(options, time_limit_s=left)
    if options.mode != "full":  # the moved limits are a proposal, not the last word
        each = min(max(REPLAN_COLUMNS // question.n_jobs, REPLAN_EACH), options.core_each)
        again = replace(again, mode="fast", core_each=each, core_gap=REPLAN_GAP)
    plan = solve_portfolio(moved, again, start=position[picks])
    return Relaxed(
        raised=raised, late_hours=allowed, over_budget=over, weighted_usd=weighted,
        bound_usd=min(choice.bound_usd, weighted), proven=choice.proven, picks=picks, question=moved, plan=plan,
        kept=np.flatnonzero(keep), seconds=seconds,
    )  # fmt: skip


def _least(reduced: Reduced, weights: ElasticWeights, options: PortfolioOptions) -> Search[Ints]:
    """Search a choice (positions among the kept) that breaks little; its cost and bound are USD by the weights."""
    limit = ELASTIC_TIME_SHARE * options.time_limit_s
    search: Search[Ints] = Search(SolveOptions(ELASTIC_GAP, limit, options.backend, core_columns=0))
    worst = _Breaks(reduced, weights)
    search.raise_bound(worst.oversize_usd())

    def offer(picks: Ints) -> None:
        better = worst.improved(picks)
        search.offer(better, worst.of(better))

    offer(_without_solver(reduced))
    if not len(reduced.live) and reduced.source.budget is None:
        search.raise_bound(search.cost)  # only lateness counts, and each job has its least
    if search.done:
        return search
    model = build_elastic(reduced, weights)
    assert search.best is not None  # just offered
    sifting = sifting_of(reduced, model, worst.share_of_limits(), search.best)
    if sifting is not None:
        relaxation = search.relax(model, sifting=sifting)
    else:  # from a basis of slacks: presolve takes longer than it saves, as hardly a candidate is dominated
        relaxation = search.relax_again(get_backend(options.backend).linear(model), model)
    if relaxation is None or relaxation.x is None or relaxation.reduced_costs is None:
        return search
    search.raise_bound(safe_bound(relaxation))
    offer(_most_taken(reduced, relaxation.x))
    if search.done or search.best is None:
        return search
    count = len(reduced.keep)
    rank = rank_of(relaxation.x[:count], relaxation.reduced_costs[:count])
    columns = np.r_[core_of(reduced, rank, search.best, CORE_EACH), np.arange(count, model.n_columns)]
    found = search.solve(restrict(model, columns), isolate=False, most_nodes=CORE_NODES)
    if found is not None and found.has_point:
        chosen = [key for key, value in found.x.items() if isinstance(key, int) and value > 0.5]
        offer(np.searchsorted(reduced.keep, np.array(sorted(chosen), dtype=np.int64)))
        if len(columns) == model.n_columns:
            search.raise_bound(found.bound)
    return search


def _most_taken(reduced: Reduced, x: Floats) -> Ints:
    """Per job the candidate that the relaxation takes most of (positions among the kept)."""
    order = np.lexsort((-x[: len(reduced.keep)], reduced.job))
    return order[np.searchsorted(reduced.job[order], np.arange(reduced.source.n_jobs))]


class _Breaks:
    """What a choice breaks, and one that breaks less by letting jobs choose again, one at a time."""

    def __init__(self, reduced: Reduced, weights: ElasticWeights) -> None:
        source = reduced.source
        self._ledger = Ledger(reduced)
        self._late = source.objective[reduced.keep] / MICRO
        each = np.array([weights.usd_per_quota_unit, weights.usd_per_owned_node])
        self._weight = np.append(each[source.limit_kind[reduced.live]], 0.0)
        self._limit = np.append(source.limit[reduced.live], np.int64(0)).astype(np.float64)
        self._paid = source.cost[reduced.keep] / MICRO * (source.budget is not None)
        self._budget = np.inf if source.budget is None else source.budget / MICRO
        self._over = weights.usd_per_usd_over_budget

    def _used(self, picks: Ints) -> Floats:
        used = np.zeros(len(self._limit))
        np.add.at(used, self._ledger.rows[picks], self._ledger.units[picks])
        return used

    def of(self, picks: Ints) -> float:
        """What the choice breaks, USD by the weights."""
        over = np.maximum(self._used(picks) - self._limit, 0.0) @ self._weight
        paid = max(float(self._paid[picks].sum()) - self._budget, 0.0) * self._over
        return float(over + self._late[picks].sum() + paid)

    def share_of_limits(self) -> Floats:
        """The share that each candidate draws of its limits, in sum, shape `(n_kept,)`."""
        shares: Floats = self._ledger.units / np.maximum(self._limit, 1.0)[self._ledger.rows]
        return np.asarray(shares.sum(axis=1))

    def oversize_usd(self) -> float:
        """What every choice breaks at least: per job the least lateness and excess of one candidate alone."""
        excess = np.maximum(self._ledger.units - self._limit[self._ledger.rows], 0.0)
        alone = (excess * self._weight[self._ledger.rows]).sum(axis=1) + self._late
        return math.fsum(np.minimum.reduceat(alone, self._ledger.starts[:-1]))

    def improved(self, picks: Ints) -> Ints:
        """Let every job choose again, given the others, until nothing changes."""
        picks, used, paid = picks.copy(), self._used(picks), float(self._paid[picks].sum())
        rows, units = self._ledger.rows, self._ledger.units
        for _ in range(IMPROVING_ROUNDS):
            before = picks.copy()
            for job, pick in enumerate(before.tolist()):
                np.subtract.at(used, rows[pick], units[pick])
                paid -= self._paid[pick]
                own = slice(int(self._ledger.starts[job]), int(self._ledger.starts[job + 1]))
                there, limit = used[rows[own]], self._limit[rows[own]]
                more = np.maximum(there + units[own] - limit, 0.0) - np.maximum(there - limit, 0.0)
                breaks = (more * self._weight[rows[own]]).sum(axis=1) + self._late[own]
                breaks += np.maximum(paid + self._paid[own] - self._budget, 0.0) * self._over
                best = own.start + int(np.argmin(breaks))
                if breaks[best - own.start] >= breaks[pick - own.start] - 1e-9:
                    best = pick
                picks[job] = best
                np.add.at(used, rows[best], units[best])
                paid += self._paid[best]
            if (picks == before).all():
                break
        return picks


def _without_solver(reduced: Reduced) -> Ints:
    """Some choice at once (positions among the kept): per job the least late, then the cheapest."""
    source, keep = reduced.source, reduced.keep
    order = np.lexsort((source.cost[keep], source.objective[keep], reduced.job))
    return order[np.flatnonzero(np.r_[True, np.diff(reduced.job[order]) != 0])]


def _weighted(question: PortfolioInput, raised: Ints, weights: ElasticWeights) -> float:
    each = np.array([weights.usd_per_quota_unit, weights.usd_per_owned_node])
    return float((each[question.limit_kind] * raised).sum()) if len(raised) else 0.0


def _moved(
    question: PortfolioInput, late_hours: Floats, raised: Ints, allowed: Floats, over: int
) -> tuple[PortfolioInput, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """The portfolio with moved limits, and which candidates it has."""
    keep = late_hours <= allowed[question.job]
    position = np.cumsum(keep) - 1
    inside = keep[question.entry_candidate]
    moved = replace(
        question, job=question.job[keep], cost=question.cost[keep], objective=question.objective[keep],
        entry_candidate=position[question.entry_candidate[inside]], entry_limit=question.entry_limit[inside],
        entry_units=question.entry_units[inside], limit=question.limit + raised,
        budget=None if question.budget is None else question.budget + over,
    )  # fmt: skip
    return moved, keep
