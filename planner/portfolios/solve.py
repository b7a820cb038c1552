"""Solve a portfolio: a plan at once, an exact bound soon, a near-optimal plan next, and the whole model if asked.

1. Exact reductions, then a greedy plan.
2. The linear relaxation; its duals, rounded, give the exact bound (`planner.portfolios.bound`).
3. *Fast mode* ends with the MILP over each job's candidates of least reduced cost.
4. *Full mode* solves the whole MILP, in a child process with its own deadline. In `auto`, only where the exact gap is
   larger than the gap asked for.

Whatever happens (time limit, Ctrl-C), the answer is the best plan with the best bound. Plans are checked, and priced,
in whole numbers; the solver's own bound is kept apart from the exact one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from catalogs.tables.table import Floats, Ints
from planner.portfolios.bound import (
    Homes,
    Prices,
    choose_homes,
    exact_bound,
    prices_from_duals,
    reduced_costs,
)
from planner.portfolios.core import SMALL, core_of, rank_of, sifting_of
from planner.portfolios.cuts import Cover, Covers, with_covers
from planner.portfolios.greedy import ROUNDS, greedy_plan, polished
from planner.portfolios.model.families import build_portfolio
from planner.portfolios.reduce import Reduced, reduce_portfolio
from planner.portfolios.shared_limits import MICRO, PortfolioInput
from solvers.backends.base import Relaxation
from solvers.problem.milp import Milp
from solvers.problem.options import SolveOptions
from solvers.problem.presolve import restrict
from solvers.problem.solution import Status, Termination
from solvers.search.search import Search

CORE_EACH = 8  # candidates per job in the restricted model: more costs seconds and gains little (measured)
FAST_GAP = 1e-3  # of the restricted model: less costs seconds, and the bound is further away than that
CORE_NODES = 200  # of branch and bound in restricted models; nearly all need one
CUT_ROUNDS = 4  # linear programs of the core with ever more cuts; the first two bring nearly all
# times the gap asked: so near, a core LARGER times as large mostly proves it without the whole model
NEAR = 3.0
LARGER, LARGER_TIME_SHARE = 2, 0.6  # of the time limit, at most, until it must have helped


@dataclass(frozen=True)
class PortfolioOptions:
    """How to solve.

    Attributes:
        gap: relative gap at which a plan counts as optimal.
        time_limit_s: wall-clock limit for everything.
        backend: solver, or `auto` for the fastest one present.
        mode: `fast`, `full`, or `auto` (fast, then full where the gap is still larger than asked).
        drop_dominated: use the dominance reduction (off only to test it).
        core_each: candidates per job in the restricted model.
        core_gap: gap of the restricted model, if not less than `gap`.
    """

    gap: float = 1e-3
    time_limit_s: float = 60.0
    backend: str = "auto"
    mode: str = "auto"
    drop_dominated: bool = True
    core_each: int = CORE_EACH
    core_gap: float = FAST_GAP


@dataclass(eq=False)
class PortfolioResult:
    """The best plan and the best bounds; all money in micro-dollars.

    Attributes:
        reduced: the question after the exact reductions.
        search: the best plan (a candidate's number in the question per job), what is proven, and the clock.
        prices: behind the exact bound, with `homes`.
        seconds: wall-clock seconds.
    """

    reduced: Reduced
    search: Search[Ints]
    prices: Prices | None = None
    homes: Homes | None = None
    seconds: float = 0.0

    @property
    def status(self) -> Status:
        """What the answer is worth."""
        return self.search.status

    @property
    def picks(self) -> Ints | None:
        """Candidate (its number in the question) per job, None without a plan."""
        return self.search.best

    @property
    def objective(self) -> int | None:
        """Of the plan, exact; None without one."""
        return None if self.search.best is None else int(self.search.cost)

    @property
    def exact_bound(self) -> int | None:
        """No plan has a lower objective; proven in whole numbers, None where nothing is (or that there is no plan)."""
        bound = self.search.exact_bound
        return int(bound) if math.isfinite(bound) else None

    @property
    def solver_bound(self) -> float:
        """The same, as the solver claims it in floating point, -inf without a claim."""
        return self.search.claimed_bound

    @property
    def stages(self) -> list[tuple[str, float, int | None, float]]:
        """(name, seconds since the start, objective, best bound) as they ended."""
        return [
            (name, at, None if math.isnan(cost) else int(cost), bound)
            for name, at, cost, bound in self.search.stages
        ]

    @property
    def solver(self) -> str:
        """Backend used, empty where none was needed."""
        return self.search.solver

    @property
    def message(self) -> str:
        """The last words of the last stage."""
        return self.search.message

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it."""
        return self.search.interrupted

    @property
    def exact_gap(self) -> float:
        """Gap proven in whole numbers; inf without plan or bound."""
        return _gap(self.objective, self.exact_bound)

    @property
    def solver_gap(self) -> float:
        """Gap by the solver's own bound; inf without plan or claim."""
        return _gap(self.objective, self.solver_bound)

    @property
    def gap(self) -> float:
        """The smaller of the two gaps."""
        return min(self.exact_gap, self.solver_gap)

    def offer(self, picks: Ints) -> bool:
        """Take `picks` if they are a plan, and a better one; say whether they are a plan."""
        question = self.reduced.source
        if question.faults(picks):
            return False
        self.search.offer(picks, int(question.objective[picks].sum()))
        return True


def _gap(objective: int | None, bound: float | None) -> float:
    if objective is None or bound is None or math.isinf(bound):
        return math.inf
    if objective <= bound:
        return 0.0
    return (objective - bound) / objective if objective else math.inf


Progress = Callable[[str, PortfolioResult], None]


def solve_portfolio(
    question: PortfolioInput,
    options: PortfolioOptions | None = None,
    *,
    start: Ints | None = None,
    progress: Progress | None = None,
) -> PortfolioResult:
    """Find the cheapest plan, within the time limit + 10 %.

    Args:
        question: the portfolio.
        options: how to solve.
        start: a plan that is known (a candidate per job).
        progress: called after each stage.

    Raises:
        ModelError: numbers that no solver may see.
        BackendError: the backend asked for is unknown or absent.
    """
    run = _Run(question, options or PortfolioOptions(), progress)
    with run.search.interruptible():
        if start is not None and not question.faults(start):
            run.begin_with(start)
        run.all_stages()
    return run.finish()


class _Run:
    """One solve: the stages in order, all on one clock."""

    def __init__(
        self, question: PortfolioInput, options: PortfolioOptions, progress: Progress | None
    ) -> None:
        wish = SolveOptions(options.gap, options.time_limit_s, options.backend, core_columns=0)
        self.search: Search[Ints] = Search(wish)
        self.options = options
        self.reduced = reduce_portfolio(question, drop_dominated=options.drop_dominated)
        self.result = PortfolioResult(self.reduced, self.search)
        self.covers: list[Cover] = []
        self._orders, self._progress = ROUNDS, progress

    def report(self, stage: str) -> None:
        self.search.note(stage)
        if self._progress is not None:
            self._progress(stage, self.result)

    def begin_with(self, picks: Ints) -> None:
        """Take a known plan by candidates that the reductions keep, equal costs included: stages look them up."""
        keep, by, kept = self.reduced.keep, self.reduced.dominator, picks
        while (by[kept] >= 0).any():
            kept = np.where(by[kept] >= 0, by[kept], kept)
        self.result.offer(keep[polished(self.reduced, np.searchsorted(keep, kept))])
        self.result.offer(picks)
        self._orders = 1  # a plan is known, whatever the first order comes to
        self.report("start")

    def all_stages(self) -> None:
        if not self.reduced.source.n_jobs:
            return
        if len(self.reduced.empty_jobs()):
            self.search.end(Termination.INFEASIBLE, "a job has no candidate within the limits")
            return
        self._first_bound()
        worth = self.reduced.source.objective[self.reduced.keep].astype(np.float64)
        self._try_greedy(worth)
        self.report("greedy")
        if self.search.done:
            return
        model = build_portfolio(self.reduced)
        relaxation = self._relax(model)
        if relaxation is None or self.search.done:
            return
        # `auto` goes through all of `fast` first, so that it never ends with less
        if self.options.mode != "full" or model.n_columns > SMALL:
            self._restricted(model, relaxation)
        if self.options.mode == "fast" or self.search.done:
            return
        self._full(model)

    def _first_bound(self) -> None:
        """Every job at its cheapest: a bound before any solver, kept where no solver gets to answer."""
        cheapest = np.full(self.reduced.source.n_jobs, np.iinfo(np.int64).max)
        np.minimum.at(cheapest, self.reduced.job, self.reduced.source.objective[self.reduced.keep])
        free = np.zeros(len(self.reduced.live), dtype=np.int64)
        homes, free = choose_homes(self.reduced, free)
        self._keep(Prices(cheapest, free), homes)

    def _try_greedy(self, score: Floats) -> None:
        picks = greedy_plan(self.reduced, score, self._orders)
        if picks is not None:
            self.result.offer(self.reduced.keep[picks])

    def _relax(self, model: Milp) -> Relaxation | None:
        known, worth = self._known(), self.reduced.source.objective[self.reduced.keep]
        sifting = None if known is None else sifting_of(self.reduced, model, worth, known)
        if (relaxation := self.search.relax(model, sifting=sifting)) is None:
            return None
        self.search.message = relaxation.message
        if relaxation.termination is Termination.INFEASIBLE:
            self.search.end(Termination.INFEASIBLE, relaxation.message)
        if relaxation.duals is None or relaxation.reduced_costs is None:
            return None
        self._take_prices(model, relaxation.duals)
        self._try_greedy(np.maximum(relaxation.reduced_costs, 0.0))
        self.report("relaxation")
        return relaxation

    def _restricted(self, model: Milp, relaxation: Relaxation) -> None:
        """Solve cores: the columns of least reduced cost. In `auto`, a larger one where that may save the whole."""
        assert relaxation.x is not None and relaxation.reduced_costs is not None
        rank = rank_of(relaxation.x, relaxation.reduced_costs)
        gap = max(self.options.gap, self.options.core_gap)
        rank = self._solve_core(model, rank, self.options.core_each, gap, "restricted")
        near = self.result.exact_gap <= NEAR * self.options.gap
        if self.options.mode == "auto" and near and not self.search.done:
            self._solve_core(model, rank, LARGER * self.options.core_each, self.options.gap / 2, "larger")

    def _solve_core(self, model: Milp, rank: Floats, each: int, gap: float, stage: str) -> Floats:
        """Tighten the bound on the core by `rank`, then solve the core that follows from it; return its ranks."""
        rank = self._tighten(model, core_of(self.reduced, rank, self._known(), each))
        self._try_greedy(np.maximum(rank, 0.0))
        if self.search.done:
            return rank
        core = core_of(self.reduced, rank, self._known(), each)
        # the larger one is a gamble: mostly quick, at times as long as the whole model
        limit = self.search.left_s(LARGER_TIME_SHARE) if stage == "larger" else math.inf
        small = with_covers(restrict(model, core), core, self.covers)
        claimed = self._solve(small, gap, limit, isolate=False, most_nodes=CORE_NODES)
        if len(core) == model.n_columns:
            self.search.raise_bound(claimed)
        self.report(stage)
        return rank

    def _known(self) -> Ints | None:
        """The best plan as positions among the kept, None without one."""
        picks = self.result.picks
        return None if picks is None else np.searchsorted(self.reduced.keep, picks)

    def _tighten(self, model: Milp, core: Ints) -> Floats:
        """Lift the exact bound by prices that know cover cuts; found on the core, proven on everything.

        Returns:
            Reduced cost of every candidate at the last prices, those of the last point first; shape `(n_kept,)`.
        """
        rank = np.zeros(model.n_columns)
        small, separator = restrict(model, core), Covers(self.reduced)
        covers, proving = list(self.covers), True
        for _ in range(CUT_ROUNDS):
            if self.search.done:
                break
            found = self.search.relax(with_covers(small, core, covers))
            if found is None or found.x is None or found.duals is None:
                break
            if covers and proving:  # prices that prove less than others are followed by such
                proving = self._take_prices(model, found.duals)
            x = np.zeros(model.n_columns)
            x[core] = found.x
            rank = rank_of(x, reduced_costs(model, found.duals))
            new = list(separator.violated_by(x))
            if not new:
                break
            covers += new
        self.covers = covers
        self.report("cuts")
        return rank

    def _take_prices(self, model: Milp, duals: Floats) -> bool:
        """Keep the prices if they prove more; say whether they do."""
        return self._keep(*prices_from_duals(self.reduced, model, duals))

    def _keep(self, prices: Prices, homes: Homes) -> bool:
        bound = exact_bound(self.reduced, prices, homes)
        more = bound > self.search.exact_bound
        if more:
            self.result.prices, self.result.homes = prices, homes
            self.search.raise_bound(bound, exact=True)
        return more

    def _full(self, model: Milp) -> None:
        whole = with_covers(model, np.arange(model.n_columns), self.covers) if self.covers else model
        self.search.raise_bound(
            self._solve(whole, self.options.gap, math.inf, isolate=model.n_columns > SMALL)
        )
        self.report("full")

    def _solve(
        self, model: Milp, gap: float, limit_s: float, *, isolate: bool, most_nodes: int | None = None
    ) -> float:
        """Solve `model`, take its plan, and return its bound in micro-dollars."""
        found = self.search.solve(
            model, limit_s, gap=gap, isolate=isolate, start=self._start(), most_nodes=most_nodes
        )
        if found is None:
            return -math.inf
        if found.has_point and not self._offer(found.x):
            self._retry_under_budget(model, gap)
        if found.status is Status.INFEASIBLE and model.n_columns == len(self.reduced.keep):
            self.search.end(Termination.INFEASIBLE, found.report.message)
        return found.bound * MICRO if math.isfinite(found.bound) else -math.inf

    def _offer(self, x: Mapping[Hashable, float]) -> bool:
        chosen = np.array([key for key, value in x.items() if value > 0.5], dtype=np.int64)
        return self.result.offer(np.sort(chosen))

    def _retry_under_budget(self, model: Milp, gap: float) -> None:
        """Ask again for a little less than the budget, which holds within the solver's tolerance only."""
        block = model.row_block("budget")
        if block is None:
            return
        upper = model.row_hi.copy()
        upper[block.indices] -= 1e-6 * np.abs(upper[block.indices]) + 1e-6
        found = self.search.solve(replace(model, row_hi=upper), gap=gap)
        if found is not None and found.has_point:
            self._offer(found.x)

    def _start(self) -> dict[Hashable, float]:
        picks = self.result.picks
        return {} if picks is None else dict.fromkeys(picks.tolist(), 1.0)

    def finish(self) -> PortfolioResult:
        self.search.settle()
        if self.search.status is Status.ERROR and self.search.best is not None:
            self.search.message = "the solver denies a plan that is there"
        self.result.seconds = self.search.elapsed_s
        return self.result
