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
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from planner.portfolios.bound import BETA_SCALE, Homes, Prices, choose_homes, exact_bound
from planner.portfolios.cuts import Cover, Covers, with_covers
from planner.portfolios.greedy import greedy_plan, polished
from planner.portfolios.model.families import build_portfolio
from planner.portfolios.reduce import Reduced, reduce_portfolio
from planner.portfolios.shared_limits import MICRO, Floats, Ints, PortfolioInput
from solvers.backends.base import Relaxation
from solvers.options import SolveOptions
from solvers.presolve import restrict
from solvers.problem import Milp
from solvers.solution import Status, Termination
from solvers.solve import relax, solve

CORE_EACH = 8  # candidates per job in the restricted model: more costs seconds and gains little (measured)
CORE_TIME_SHARE = 0.6  # of the time left, at most, for the restricted model when the whole one follows
FAST_GAP = 1e-3  # of the restricted model: less costs seconds, and the bound is further away than that
CUT_ROUNDS = 4  # linear programs of the core with ever more cuts; the first two bring nearly all
NEAR = (
    3.0  # times the gap asked: so near, a core LARGER times as large mostly proves it without the whole model
)
LARGER = 2
SMALL = 20_000  # columns; below it the whole model is solved at once, in this process
TINY = 1e-12


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
    """

    gap: float = 1e-3
    time_limit_s: float = 60.0
    backend: str = "auto"
    mode: str = "auto"
    drop_dominated: bool = True
    core_each: int = CORE_EACH


@dataclass(eq=False)
class PortfolioResult:
    """The best plan and the best bounds; all money in micro-dollars.

    Attributes:
        reduced: the question after the exact reductions.
        status: what the answer is worth.
        picks: candidate (its number in the question) per job, None without a plan.
        objective: of the plan, exact.
        exact_bound: no plan has a lower objective; proven in whole numbers, None where nothing is.
        solver_bound: the same, as the solver claims it in floating point, -inf without a claim.
        prices: behind the exact bound, with `homes`.
        stages: (name, seconds since the start, objective, exact bound) as they came.
        solver: backend used, "" where none was needed.
        message: the last words of the last stage.
        seconds: wall-clock seconds.
    """

    reduced: Reduced
    status: Status = Status.NO_SOLUTION
    picks: Ints | None = None
    objective: int | None = None
    exact_bound: int | None = None
    solver_bound: float = -math.inf
    prices: Prices | None = None
    homes: Homes | None = None
    stages: list[tuple[str, float, int | None, int | None]] = field(default_factory=list)
    solver: str = ""
    message: str = ""
    interrupted: bool = False
    seconds: float = 0.0

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
        objective = int(question.objective[picks].sum())
        if self.objective is None or objective < self.objective:
            self.picks, self.objective = picks, objective
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
    options = options or PortfolioOptions()
    run = _Run(question, options, progress)
    try:
        if start is not None:
            run.begin_with(start)
        run.all_stages()
    except KeyboardInterrupt:
        run.result.interrupted = True
    return run.finish()


class _Run:
    """One solve: the stages in order, and what is left of the time."""

    def __init__(
        self, question: PortfolioInput, options: PortfolioOptions, progress: Progress | None
    ) -> None:
        self.began = time.perf_counter()
        self.options = options
        self.reduced = reduce_portfolio(question, drop_dominated=options.drop_dominated)
        self.result = PortfolioResult(self.reduced)
        self.empty = False  # proven: there is no plan
        self.covers: list[Cover] = []
        self._progress = progress

    @property
    def left_s(self) -> float:
        return self.options.time_limit_s - (time.perf_counter() - self.began)

    def told(self, stage: str) -> None:
        result = self.result
        elapsed = time.perf_counter() - self.began
        result.stages.append((stage, elapsed, result.objective, result.exact_bound))
        if self._progress is not None:
            self._progress(stage, result)

    def begin_with(self, picks: Ints) -> None:
        """Take a known plan, made better where the reductions still have all of it."""
        if not self.result.offer(picks):
            return
        keep, by = self.reduced.keep, self.reduced.dominator
        while (by[picks] >= 0).any():
            picks = np.where(by[picks] >= 0, by[picks], picks)
        self.result.offer(keep[polished(self.reduced, np.searchsorted(keep, picks))])
        self.told("start")

    def all_stages(self) -> None:
        if len(self.reduced.empty_jobs()) or not self.reduced.source.n_jobs:
            self.empty = bool(self.reduced.source.n_jobs)
            return
        worth = self.reduced.source.objective[self.reduced.keep].astype(np.float64)
        self._try_greedy(worth)
        self.told("greedy")
        model = build_portfolio(self.reduced)
        relaxation = self._relax(model)
        if relaxation is None or self.enough() or self.left_s <= 0:
            return
        if self.options.mode == "fast" or model.n_columns > SMALL:
            self._restricted(model, relaxation)
        if self.enough() or self.options.mode == "fast" or self.left_s <= 0 or self.result.interrupted:
            return
        self._full(model)

    def enough(self) -> bool:
        """Whether the gap asked for is reached, or there is nothing to look for."""
        return self.empty or self.result.gap <= self.options.gap

    def _try_greedy(self, score: Floats) -> None:
        picks = greedy_plan(self.reduced, score)
        if picks is not None:
            self.result.offer(self.reduced.keep[picks])

    def _relax(self, model: Milp) -> Relaxation | None:
        relaxation = relax(model, max(self.left_s, 0.0), self.options.backend)
        self.result.message = relaxation.message
        if relaxation.termination is Termination.INFEASIBLE:
            self.empty = True
        if relaxation.duals is None or relaxation.reduced_costs is None:
            return None
        self._take_prices(model, relaxation.duals)
        self._try_greedy(np.maximum(relaxation.reduced_costs, 0.0))
        self.told("relaxation")
        return relaxation

    def _restricted(self, model: Milp, relaxation: Relaxation) -> None:
        """Solve cores: the columns of least reduced cost. In `auto`, a larger one where that may save the whole."""
        assert relaxation.x is not None and relaxation.reduced_costs is not None
        rank = np.where(relaxation.x > 1e-9, -1.0, np.maximum(relaxation.reduced_costs, 0.0))
        if len(_core(self.reduced, rank, self.result.picks, self.options.core_each)) >= model.n_columns:
            return self._full(model)
        gap = max(self.options.gap, FAST_GAP)
        rank = self._solve_core(model, rank, self.options.core_each, gap, "restricted")
        near = self.result.exact_gap <= NEAR * self.options.gap
        if self.options.mode == "auto" and near and not (self.enough() or self.result.interrupted):
            self._solve_core(model, rank, LARGER * self.options.core_each, self.options.gap / 2, "larger")
        return None

    def _solve_core(self, model: Milp, rank: Floats, each: int, gap: float, stage: str) -> Floats:
        """Tighten the bound on the core by `rank`, then solve the core that follows from it; return its ranks."""
        rank = self._tighten(model, _core(self.reduced, rank, self.result.picks, each))
        self._try_greedy(np.maximum(rank, 0.0))
        if self.enough() or self.left_s <= 0:
            return rank
        core = _core(self.reduced, rank, self.result.picks, each)
        limit = self.left_s * (1.0 if self.options.mode == "fast" else CORE_TIME_SHARE)
        if stage == "larger":  # a gamble: mostly quick, at times as long as the whole model
            limit = min(limit, 2.0 * (time.perf_counter() - self.began))
        small = with_covers(restrict(model, core), core, self.covers)
        self._solve(small, gap, limit, isolate=False)
        self.told(stage)
        return rank

    def _tighten(self, model: Milp, core: Ints) -> Floats:
        """Lift the exact bound by prices that know cover cuts; found on the core, proven on everything.

        Returns:
            Reduced cost of every candidate at the last prices, those of the last point first; shape `(n_kept,)`.
        """
        rank = np.zeros(model.n_columns)
        small, separator = restrict(model, core), Covers(self.reduced)
        covers = list(self.covers)
        for _ in range(CUT_ROUNDS):
            if self.left_s <= 0 or self.enough():
                break
            found = relax(with_covers(small, core, covers), self.left_s, self.options.backend)
            if found.x is None or found.duals is None:
                break
            if covers:
                self._take_prices(model, found.duals)
            x = np.zeros(model.n_columns)
            x[core] = found.x
            rank = np.where(x > 1e-9, -1.0, np.maximum(_reduced_costs(model, found.duals), 0.0))
            new = list(separator.violated_by(x))
            if not new:
                break
            covers += new
        self.covers = covers
        self.told("cuts")
        return rank

    def _take_prices(self, model: Milp, duals: Floats) -> None:
        """Keep the prices if they prove more."""
        prices, homes = _prices(self.reduced, model, duals)
        bound = exact_bound(self.reduced, prices, homes)
        if self.result.exact_bound is None or bound > self.result.exact_bound:
            self.result.prices, self.result.homes, self.result.exact_bound = prices, homes, bound

    def _full(self, model: Milp) -> None:
        whole = with_covers(model, np.arange(model.n_columns), self.covers) if self.covers else model
        claimed = self._solve(whole, self.options.gap, self.left_s, isolate=model.n_columns > SMALL)
        self.result.solver_bound = max(self.result.solver_bound, claimed)
        self.told("full")

    def _solve(self, model: Milp, gap: float, limit_s: float, *, isolate: bool) -> float:
        """Solve `model`, take its plan, and return its bound in micro-dollars."""
        if limit_s <= 0:
            return -math.inf
        options = SolveOptions(
            gap=gap, time_limit_s=limit_s, backend=self.options.backend, core_columns=0,
            isolate=isolate, start=self._start(),
        )  # fmt: skip
        found = solve(model, options)
        self.result.solver, self.result.message = found.report.backend, found.report.message
        self.result.interrupted |= found.termination is Termination.INTERRUPTED
        if found.has_point and not self._offer(found.x):
            # The budget holds within the solver's tolerance only: ask again for a little less.
            self._retry_under_budget(model, options)
        if found.status is Status.INFEASIBLE and model.n_columns == len(self.reduced.keep):
            self.empty = True
        return found.bound * MICRO if math.isfinite(found.bound) else -math.inf

    def _offer(self, x: Mapping[Hashable, float]) -> bool:
        chosen = np.array([key for key, value in x.items() if value > 0.5], dtype=np.int64)
        return self.result.offer(np.sort(chosen))

    def _retry_under_budget(self, model: Milp, options: SolveOptions) -> None:
        block = model.row_block("budget")
        if block is None or self.left_s <= 0:
            return
        upper = model.row_hi.copy()
        upper[block.indices] -= 1e-6 * np.abs(upper[block.indices]) + 1e-6
        found = solve(replace(model, row_hi=upper), replace(options, time_limit_s=self.left_s))
        if found.has_point:
            self._offer(found.x)

    def _start(self) -> dict[Hashable, float]:
        picks = self.result.picks
        return {} if picks is None else dict.fromkeys(picks.tolist(), 1.0)

    def finish(self) -> PortfolioResult:
        result = self.result
        result.seconds = time.perf_counter() - self.began
        if result.picks is not None:
            reached = result.gap <= self.options.gap * (1 + 1e-9) + TINY
            result.status = Status.OPTIMAL if reached else Status.FEASIBLE
            if self.empty:
                result.status, result.message = Status.ERROR, "the solver denies a plan that is there"
        elif self.empty:
            result.status = Status.INFEASIBLE
        return result


def _prices(reduced: Reduced, model: Milp, duals: Floats) -> tuple[Prices, Homes]:
    """Round the duals of the relaxation to whole micro-dollars."""
    jobs = reduced.source.n_jobs
    mu = np.rint(duals[:jobs] * MICRO).astype(np.int64)
    lam = np.zeros(len(reduced.live), dtype=np.int64)
    for name in ("quota", "capacity"):
        block = model.row_block(name)
        if block is not None and len(block):
            rows = np.searchsorted(reduced.live, np.asarray(block.tags, dtype=np.int64))
            lam[rows] = np.rint(np.maximum(-duals[block.indices], 0.0) * MICRO).astype(np.int64)
    block = model.row_block("budget")
    beta = 0 if block is None else round(max(-float(duals[block.start]), 0.0) * BETA_SCALE)
    homes, remaining = choose_homes(reduced, lam)
    return Prices(mu, remaining, beta), homes


def _reduced_costs(model: Milp, duals: Floats) -> Floats:
    """C - A' y of every column; `duals` may go on with rows that the model does not have."""
    priced = np.bincount(
        model.column_of_entry(), weights=model.data * duals[model.indices], minlength=model.n_columns
    )
    return np.asarray(model.c - priced, dtype=np.float64)


def _core(reduced: Reduced, rank: Floats, picks: Ints | None, each: int) -> Ints:
    """Columns of the restricted model: per job those of least `rank`, and the known plan's."""
    rank = rank.copy()
    if picks is not None:
        rank[np.searchsorted(reduced.keep, picks)] = -2.0
    order = np.lexsort((rank, reduced.job))
    place = np.arange(len(order)) - np.searchsorted(reduced.job, reduced.job[order])
    return np.sort(order[place < each])
