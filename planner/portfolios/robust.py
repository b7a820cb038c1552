"""A portfolio by expected cost and its worst outcomes: the portfolio's model with the tail of common scenarios.

The plan by expected cost comes first. With U its objective with risk and L the exact bound on expected cost, a
candidate of job j that costs more than mu_j + (U - L) is in no better plan, since CVaR is at least the mean: such
candidates need no scenarios. The others' costs vary with the scenarios (`planner.candidates.plan_parts.scenarios`);
candidates that were sized elsewhere are certain, and delay counts by expected hours.
"""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Bools, Floats, Ints
from planner.candidates.plan_parts.scenarios import Draws, ScenarioCosts
from planner.plan.robust import FRESH, FRESH_SEED, MOST_PRICED, Outcome, Robust, Terms
from planner.portfolios.bound import beta_share
from planner.portfolios.copies import Copies, for_all_copies
from planner.portfolios.model.families import build_portfolio
from planner.portfolios.question import restricted
from planner.portfolios.reduce import reduce_portfolio
from planner.portfolios.shared_limits import MICRO
from solvers.problem.options import SolveOptions
from solvers.problem.presolve import part_of
from solvers.problem.tail import tail_point, with_tail
from solvers.search.search import Clock, Search
from solvers.search.tail_reduce import not_replaced, within_reach
from solvers.search.tighten import safe_bound

if TYPE_CHECKING:
    from planner.candidates.plan_parts.bought import Source
    from planner.portfolios.gather import Gathered
    from planner.portfolios.question import Question
    from planner.portfolios.solve import PortfolioOptions, PortfolioResult
    from planner.portfolios.table import CandidateTable
    from solvers.problem.milp import Milp

PRICED_SHARE = 0.6  # of the time left: a search among few candidates is soon done
TRIED, LEAST_GAIN = 20, 1e-9  # ways of a job that limits may refuse before the next job; a gain that counts


def choose_robust(
    gathered: Gathered, question: Question, result: PortfolioResult, terms: Terms, options: PortfolioOptions,
    is_whole: bool = True,
) -> tuple[PortfolioResult, Robust]:  # fmt: skip
    """The choice of least expected cost and worst outcomes.

    Args:
        gathered: what the numbers mean.
        question: the candidates in time.
        result: the plan by expected cost.
        terms: what is minimised.
        options: gap, backend, and the time left, of which `PRICED_SHARE` at most prices candidates in the scenarios.
        is_whole: whether candidates that others replace in cost, but not in risk, were gathered too.

    Returns:
        The result with the robust plan in place of the plain one, under the bound on expected cost, and what robustness
        costs and gives.
    """
    clock = Clock(options.time_limit_s)
    began = time.perf_counter() - clock.spent_s
    plain = result.picks
    assert plain is not None
    run = _Run(gathered, question, terms)
    tail = run.costs.deviations(run.keys(plain)).sum(axis=0)
    first = Outcome.of(run.expected_usd(plain), tail, terms)
    picks, bound, considered, solver = plain, (result.exact_bound or 0) / MICRO, len(question.table), ""
    partial = not is_whole
    if terms.averse:
        near, left = run.worth_considering(result, first.objective_usd, clock)
        considered, partial = int(near.sum()), partial or left > 0
        wishes = SolveOptions(options.gap, clock.for_next_s(), options.backend)
        search = run.solve(near, plain, first.objective_usd, wishes)
        bound, solver = max(bound, search.bound), search.solver
        picks = plain if search.best is None else search.best
    if run.expected_usd(picks) < first.expected_usd:
        plain = picks  # cheaper by expected cost too, within the gap of the plan that came first
    chosen_cost, plain_cost = run.outcomes(picks), run.outcomes(plain)
    robust = Robust(
        terms, chosen_cost[0], plain_cost[0], chosen_cost[1], plain_cost[1], chosen_cost[2], plain_cost[2],
        min(bound, chosen_cost[0].objective_usd), considered, len(question.table), run.differing(picks, plain), solver,
        time.perf_counter() - began, partial=partial,
    )  # fmt: skip
    return _with_picks(result, picks), robust


def objective_with_risk(
    gathered: Gathered, question: Question, result: PortfolioResult, terms: Terms
) -> float:
    """What the plan by expected cost counts with risk, USD: no better plan counts more.

    Args:
        gathered: what the numbers mean.
        question: the candidates in time.
        result: the plan by expected cost.
        terms: what is minimised.
    """
    assert result.picks is not None
    return _Run(gathered, question, terms).outcomes(result.picks)[0].objective_usd


class _Run:
    """One choice: candidates and what they cost in the scenarios."""

    def __init__(self, gathered: Gathered, question: Question, terms: Terms) -> None:
        self._gathered, self._question, self._terms = gathered, question, terms
        self.costs = ScenarioCosts(Draws(terms.scenarios, terms.seed))
        self._fresh = ScenarioCosts(Draws(FRESH, terms.seed + FRESH_SEED))

    def keys(self, at: Ints) -> list[tuple[Source | None, int]]:
        """Source and row of the candidates `at`."""
        table, sources = self._question.table, self._gathered.sources
        return [
            (None if number < 0 else sources[number], row)
            for number, row in zip(table.source[at].tolist(), table.row[at].tolist(), strict=True)
        ]

    def expected_usd(self, picks: Ints) -> float:
        return int(self._question.numbers.objective[picks].sum()) / MICRO

    def outcomes(self, picks: Ints) -> tuple[Outcome, Outcome, Floats]:
        """In the scenarios of the choice, in fresh ones, and the cost in each of the former."""
        expected, keys = self.expected_usd(picks), self.keys(picks)
        tail, fresh = (costs.deviations(keys).sum(axis=0) for costs in (self.costs, self._fresh))
        return (
            Outcome.of(expected, tail, self._terms),
            Outcome.of(expected, fresh, self._terms),
            expected + tail,
        )

    def worth_considering(self, result: PortfolioResult, most_usd: float, clock: Clock) -> tuple[Bools, int]:
        """Candidates that a plan of a lower objective may have, each priced in the scenarios.

        The dearest are left out where they are too many, or more than can be priced in time: how many comes second.
        """
        numbers, table = self._question.numbers, self._question.table
        above = np.zeros(len(table), dtype=np.int64)
        keep = np.ones(len(table), dtype=np.bool_)
        if result.prices is not None and result.exact_bound is not None:
            above = numbers.objective - result.prices.mu[numbers.job]
            if result.prices.beta:
                above = above + beta_share(result.prices.beta, numbers.cost)
            keep = above <= round(most_usd * MICRO) - result.exact_bound
        kept, known = np.zeros(len(table), dtype=np.bool_), set[tuple[int, int]]()
        assert result.picks is not None
        order = np.argsort(above, kind="stable")
        for number, at in enumerate([*result.picks.tolist(), *order[keep[order]].tolist()]):
            key = (int(table.source[at]), int(table.row[at]))
            if key[0] >= 0 and key not in known:
                has_room = len(known) < MOST_PRICED and clock.left_s(PRICED_SHARE) > 0
                if number >= len(result.picks) and not has_room:
                    continue
                known.add(key)
                self.costs.deviation(self._gathered.sources[key[0]], key[1])
            kept[at] = True
        return kept, int((keep & ~kept).sum())

    def solve(self, near: Bools, plain: Ints, objective_usd: float, options: SolveOptions) -> Search[Ints]:
        """The best choice among the candidates `near`, `plain` if there is no better one."""
        search: Search[Ints] = Search(options)
        search.offer(plain, objective_usd)
        table, kinds = self._question.table, self._gathered.kinds
        near = for_all_copies(near, table, kinds)
        small, at = restricted(self._question, near), np.flatnonzero(near)
        reduced = reduce_portfolio(small.numbers, drop_dominated=False)
        kept = at[reduced.keep]
        deviation = self.costs.deviations(self.keys(kept))
        better = self._improved(np.searchsorted(kept, plain), kept, deviation)
        search.offer(*self._weighed(better))
        copies = Copies(table, kinds, kept)
        start, led = copies.point(better, reduced.keep), np.flatnonzero(copies.led)
        usd = self._question.numbers.objective[kept[led], None] / MICRO + deviation[led]
        wanted = not_replaced(usd, reduced.draws[led], reduced.job[led])
        known = np.asarray([key in start for key in reduced.keep[led].tolist()])
        wanted |= known
        start |= tail_point(self.costs.deviations(self.keys(better)).sum(axis=0), self._terms.level)
        counts = copies.model(build_portfolio(reduced))
        most, found = search.cost, None
        with search.interruptible():
            relaxation = search.relax(self._with_tail(counts, deviation[led], wanted))
            bound = -np.inf if relaxation is None else safe_bound(relaxation)
            search.raise_bound(bound)
            wanted[wanted] = within_reach(relaxation, int(wanted.sum()), bound, most)
            wanted |= known
            found = search.solve(self._with_tail(counts, deviation[led], wanted), start=start)
        if found is None:
            return search
        search.raise_bound(min(found.bound, most))
        if found.has_point:
            picks = copies.picks(found.x, reduced.keep)
            if not self._question.numbers.faults(picks):
                search.offer(*self._weighed(picks))
        return search

    def _with_tail(self, counts: Milp, deviation: Floats, wanted: Bools) -> Milp:
        """The model of the candidates `wanted`, with what they deviate by in the scenarios."""
        part = part_of(counts, wanted, np.ones(counts.n_rows, dtype=np.bool_))
        columns = np.arange(part.n_columns)
        return with_tail(part, columns, deviation[wanted], self._terms.weight, self._terms.level)

    def _weighed(self, picks: Ints) -> tuple[Ints, float]:
        """A choice and what is minimised."""
        tail = self.costs.deviations(self.keys(picks)).sum(axis=0)
        return picks, Outcome.of(self.expected_usd(picks), tail, self._terms).objective_usd

    def _improved(self, chosen: Ints, candidates: Ints, deviation: Floats) -> Ints:
        """A choice made better job by job, within the limits, until no job alone makes it better.

        Args:
            chosen: positions among `candidates`, shape `(n_jobs,)`.
            candidates: in the question, by job, shape `(n,)`.
            deviation: of each, shape `(n, S)`.
        """
        numbers, terms, chosen = self._question.numbers, self._terms, chosen.copy()
        usd, job = numbers.objective[candidates] / MICRO, numbers.job[candidates]
        first = np.searchsorted(job, np.arange(numbers.n_jobs + 1))
        count = deviation.shape[1]
        share = np.clip(
            count * (1.0 - terms.level) - np.arange(count), 0.0, 1.0
        )  # of the worst, the worst first
        share /= share.sum()
        moved = True
        while moved:
            moved = False
            for at in range(numbers.n_jobs):
                own = np.arange(first[at], first[at + 1])
                others = deviation[chosen].sum(axis=0) - deviation[chosen[at]]
                worst = -np.sort(-(others + deviation[own]), axis=1) @ share
                value = usd[own] + terms.weight * worst
                now = float(value[chosen[at] - first[at]])
                for other in own[np.argsort(value, kind="stable")[:TRIED]].tolist():
                    if not value[other - first[at]] < now - LEAST_GAIN * max(now, 1.0):
                        break
                    trial = chosen.copy()
                    trial[at] = other
                    if not numbers.faults(candidates[trial]):
                        chosen, moved = trial, True
                        break
        return np.asarray(candidates[chosen], dtype=np.int64)

    def differing(self, picks: Ints, other: Ints) -> int:
        """Jobs that two choices run in different ways."""
        one, two = (_ways(self._question.table, at) for at in (picks, other))
        return sum(a != b for a, b in zip(one, two, strict=True))


def _ways(table: CandidateTable, picks: Ints) -> list[tuple[object, ...]]:
    rows = table.take(picks)
    return [
        (*way, *nodes, start)
        for way, nodes, start in zip(
            rows.way.tolist(), rows.nodes.tolist(), rows.start_hours.tolist(), strict=True
        )
    ]


def _with_picks(result: PortfolioResult, picks: Ints) -> PortfolioResult:
    """The result with another plan, under the same bounds on expected cost."""
    search = copy.copy(result.search)
    search.best = picks
    search.cost = int(result.reduced.source.objective[picks].sum())
    return replace(result, search=search)
