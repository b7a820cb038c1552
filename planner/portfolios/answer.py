"""`planner portfolio`: from a loaded portfolio to the answer. Every step is a function a notebook can call."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import Ints, distinct_values
from planner.inputs.checks import start_moment
from planner.plan.robust import Robust, Terms
from planner.portfolios.elastic import ElasticWeights
from planner.portfolios.file_quotas import beyond_own_quotas
from planner.portfolios.gather import Gathered, Gatherer, opened
from planner.portfolios.job_times import busy_nodes, late_alone, refuse_arrivals
from planner.portfolios.question import Question, in_time
from planner.portfolios.relax import Relaxed, relax_budget, relax_portfolio
from planner.portfolios.robust import choose_robust, objective_with_risk
from planner.portfolios.sequencing import later_starts
from planner.portfolios.shared_limits import MICRO
from planner.portfolios.solve import PortfolioOptions, PortfolioResult, Progress, solve_portfolio
from planner.portfolios.tie_breaking import break_ties
from planner.render.presentable import Presentable
from solvers.problem.solution import Status
from solvers.search.search import Clock

FIRST_SHARE = 0.4  # of the time limit, at most, for the plan with all jobs at once where others may be better
PLAIN_SHARE = 0.6  # of the time limit, at most, for the plan by expected cost where one with risk follows
NOT_FOLLOWING = (
    "jobs start as early as possible: later starts on scarce capacity were not considered (no time left, too many "
    "candidates, or none known at which a job saves); a plan that runs jobs one after another may cost less"
)
NOT_ALL_PRICED = (
    "risk: candidates that cost more but may vary less were not considered (no time left, or too many); "
    "a plan that counts less with its worst outcomes may exist"
)
MOST_ROUNDS = 4  # times candidates are gathered anew; the second nearly always suffices

if TYPE_CHECKING:
    from pathlib import Path

    from catalogs.tables.model import Catalog
    from planner.asked.options import Options
    from planner.inputs.portfolio_load import LoadedPortfolio
    from planner.inputs.portfolio_schema import PortfolioJob


@dataclass(frozen=True, eq=False)
class PortfolioAnswer(Presentable):
    """The answer, with everything behind it.

    Attributes:
        loaded: the file.
        gathered: candidates and what they mean.
        question: the candidates in time, under the limits as given.
        result: its solution.
        relaxed: what must give way, where nothing fits.
        catalog: prices used, None where every candidate was sized elsewhere.
        options: how it was solved.
        seconds: wall-clock seconds in all, candidates included.
        created_at: moment of the answer; exchange rates are that day's.
        whole: whether what is claimed holds for all candidates that `optimize` searches, not just those gathered.
        robust: what the choice with risk costs and gives; the result is that choice. None where none was asked for, or
            nothing fits.
    """

    REPORT = "planner.portfolios.report:portfolio_report"
    __repr__ = Presentable.__repr__

    loaded: LoadedPortfolio
    gathered: Gathered
    question: Question
    result: PortfolioResult
    relaxed: Relaxed | None
    catalog: Catalog | None
    options: PortfolioOptions
    seconds: float
    created_at: datetime
    whole: bool = True
    robust: Robust | None = None

    @property
    def solver_fault(self) -> bool:
        """Whether a solver called infeasible what is not."""
        return self.result.status is Status.ERROR or (self.relaxed is not None and self.relaxed.nothing)

    @property
    def stuck_jobs(self) -> Ints:
        """Jobs without any candidate, not even a late one: no shared limit helps them."""
        return np.flatnonzero(
            np.bincount(self.gathered.question.table.job, minlength=len(self.gathered.jobs)) == 0
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know."""
        shown = self.shown
        beyond = () if shown is None else beyond_own_quotas(self.loaded, self.gathered, shown[1])
        found, late = self.gathered, tuple[str, ...]()
        if self.result.picks is None:
            late = (*late_alone(self.loaded, found.question.table, found.kinds, found.start, found.windows),)
        return (*late, *found.notes, *beyond)

    @property
    def shown(self) -> tuple[PortfolioResult, Ints] | None:
        """The result to show and its picks, numbered as in `gathered.question.table`; None without a plan."""
        table = self.gathered.question.table
        if self.result.picks is not None:
            return self.result, np.flatnonzero(table.late_hours <= 0)[self.result.picks]
        if self.relaxed is not None and self.relaxed.plan.picks is not None:
            return self.relaxed.plan, self.relaxed.kept[self.relaxed.plan.picks]
        return None


def plan_portfolio(
    loaded: LoadedPortfolio,
    planning: Options,
    options: PortfolioOptions,
    *,
    catalog: Callable[[], Catalog] | None = None,
    catalog_dir: Path | None = None,
    robust_level: float | None = None,
    sized: Callable[[int, int], None] = lambda _done, _all: None,
    progress: Progress | None = None,
) -> PortfolioAnswer:
    """Plan a portfolio; where it does not fit, find what must give way and plan with that.

    Args:
        loaded: the portfolio.
        planning: moment and flags of `optimize`, for jobs that are workloads.
        options: how to solve; the time limit is for all solves together, the first candidates come before.
        catalog: gives the prices; asked only when a job is a workload. By default the snapshot of `catalog_dir`.
        catalog_dir: snapshot directory, by default the newest refreshed or the bundled one.
        robust_level: level of the worst outcomes that count too, in place of the file's `risk`.
        sized: told (jobs done, jobs in all) while candidates are made.
        progress: told after each stage of the solve.

    Raises:
        InputError: a job or a file is wrong.
    """
    refuse_arrivals(loaded)
    began = time.perf_counter()
    used: list[Catalog] = []

    gatherer = Gatherer(loaded, opened(used, catalog, planning, catalog_dir), planning, progress=sized)
    terms, robust, wider = Terms.of(loaded.portfolio.risk, robust_level), None, None
    asking = _Asking(options, Clock(options.time_limit_s))
    plain = replace(asking, share=PLAIN_SHARE) if terms is not None and terms.averse else asking
    gathered, question, result = _with_later_starts(gatherer, loaded, plain, progress)
    relaxed = None
    if result.status is Status.INFEASIBLE:
        relaxed = _by_budget_alone(loaded, gathered, asking.left())
        if relaxed is None:
            gatherer.time_late()
            gathered = replace(gatherer.gather(), notes=gathered.notes)
            question = in_time(gathered.question)
            relaxed = _relaxed(loaded, gathered, asking.left())
    source = used[0] if used else None
    whole = not missing_up_to(loaded, gathered, result)
    if terms is not None and result.picks is not None:
        wider = _widened(gatherer, loaded, plain, (gathered, question, result), terms)
        gathered, question, result = wider or (gathered, question, result)
    _take_sooner(
        gathered, question, result, relaxed
    )  # before a choice with risk: what costs the same may vary more
    if terms is not None and result.picks is not None:
        with_risk, robust = choose_robust(gathered, question, result, terms, asking.left(), wider is not None)
        if robust.partial:
            gathered = replace(gathered, notes=(*gathered.notes, NOT_ALL_PRICED))
        result, robust = (with_risk, robust) if robust.confirmed else (result, robust.as_plain())
    seconds = time.perf_counter() - began
    return PortfolioAnswer(
        loaded, gathered, question, result, relaxed, source, options, seconds, planning.now, whole, robust
    )


@dataclass(frozen=True)
class _Asking:
    """How to solve, on one clock; until a share of its limit has passed."""

    options: PortfolioOptions
    clock: Clock
    share: float = 1.0

    @property
    def is_late(self) -> bool:
        """Whether the share has passed."""
        return self.clock.left_s(self.share) <= 0

    def left(self) -> PortfolioOptions:
        """The options of the next solve."""
        return replace(self.options, time_limit_s=self.clock.for_next_s(self.share))


def _weights(loaded: LoadedPortfolio) -> ElasticWeights:
    wish = loaded.portfolio.relaxation
    return ElasticWeights(wish.usd_per_quota_unit, wish.usd_per_owned_node, wish.usd_per_usd_over_budget)


def _by_budget_alone(
    loaded: LoadedPortfolio, gathered: Gathered, options: PortfolioOptions
) -> Relaxed | None:
    """More budget, where that is proven to be the lightest; how late other candidates are need not be worked out."""
    every = gathered.question
    if len(distinct_values(every.table.job)) < len(gathered.jobs):
        return None
    return relax_budget(every.numbers, every.table.late_hours, _weights(loaded), options)


def _relaxed(loaded: LoadedPortfolio, gathered: Gathered, options: PortfolioOptions) -> Relaxed | None:
    """What must give way; None where a job has no candidate, not even a late one."""
    wish, every = loaded.portfolio.relaxation, gathered.question
    if len(distinct_values(every.table.job)) < len(gathered.jobs):
        return None
    late, weights = every.table.late_hours, _weights(loaded)
    relaxed = relax_portfolio(every.numbers, late, weights, wish.usd_per_hour_late, options)
    if np.isfinite(gathered.whole_usd).any():  # dearer candidates were left aside, and among them may be less
        return replace(relaxed, bound_usd=-np.inf, proven=False)
    return relaxed


def _take_sooner(
    gathered: Gathered, question: Question, result: PortfolioResult, relaxed: Relaxed | None
) -> None:
    """Let the plan's jobs, and those of the plan within moved limits, end as soon as its cost allows."""
    if result.picks is not None:
        result.search.best = break_ties(question, result.picks)
    if relaxed is not None and relaxed.plan.picks is not None:
        every = gathered.question
        moved = Question(every.table.take(relaxed.kept), relaxed.question, every.limits)
        relaxed.plan.search.best = break_ties(moved, relaxed.plan.picks)


def _with_later_starts(
    gatherer: Gatherer, loaded: LoadedPortfolio, asking: _Asking, progress: Progress | None
) -> tuple[Gathered, Question, PortfolioResult]:
    """Solve with all jobs at once; then, where limits are scarce and no windows declared, let jobs follow others."""
    limits = loaded.portfolio.quota or loaded.portfolio.commitments or gatherer.own
    shared = bool(limits) and not loaded.portfolio.windows
    first_asking = replace(asking, share=asking.share * FIRST_SHARE) if shared else asking
    at_once = _gather_and_solve(gatherer, loaded, first_asking, progress)
    gathered, question, result = at_once
    if not shared or result.interrupted:
        return at_once
    if result.reduced.source.over_budget:
        question, result = _whatever_it_costs(gatherer, question, first_asking.left())
    first = gatherer.first_starts()
    deadlines = gatherer.limits_hours(gathered.kinds)
    busy = busy_nodes((*loaded.portfolio.commitments, *gatherer.own), gathered.start)
    groups = [gatherer.group[entry] for entry in gathered.kinds]
    later = later_starts(question, result, first, busy, deadlines, groups)
    if later is None:
        return at_once
    if asking.clock.left_s(asking.share) <= gatherer.once_s or len(later.hours) == 1:
        return replace(gathered, notes=(*gathered.notes, NOT_FOLLOWING)), *at_once[1:]
    gatherer.let_follow(later)
    following = _gather_and_solve(gatherer, loaded, asking, progress)
    result, other = at_once[2], following[2]
    if result.objective is not None and (other.objective is None or other.objective > result.objective):
        note = "all jobs start immediately: no better plan with later starts was found in time, but one may exist"
        return replace(gathered, notes=(*gathered.notes, note)), *at_once[1:]
    return following


def _whatever_it_costs(
    gatherer: Gatherer, question: Question, options: PortfolioOptions
) -> tuple[Question, PortfolioResult]:
    """The cheapest plan where the budget is less than that of any: which capacity it finds scarce, and its budget.

    Where shared limits allow none of the candidates either, all candidates are gathered from here on.
    """
    numbers = replace(question.numbers, budget=None, objective=question.numbers.cost)
    free = solve_portfolio(numbers, options)
    if free.picks is None:
        gatherer.up_to_usd = [np.inf for _ in gatherer.up_to_usd]
    return replace(question, numbers=numbers), free


def _gather_and_solve(
    gatherer: Gatherer, loaded: LoadedPortfolio, asking: _Asking, progress: Progress | None
) -> tuple[Gathered, Question, PortfolioResult]:
    """Solve over the candidates that `optimize` works out, then with those that shared limits make worth a look."""
    began = time.process_time()  # the same however busy the machine is
    gathered = gatherer.gather()
    gatherer.once_s = gatherer.once_s or time.process_time() - began
    question = in_time(gathered.question)
    result = solve_portfolio(question.numbers, asking.left(), progress=progress)
    for _ in range(MOST_ROUNDS):
        wanted = missing_up_to(loaded, gathered, result)
        needed_s = (
            0.0 if result.picks is None else gatherer.once_s
        )  # without a plan there is no answer without them
        if not wanted or asking.clock.left_s(asking.share) <= needed_s or result.interrupted:
            break
        for entry, cost in wanted.items():
            gatherer.up_to_usd[entry] = cost
        gathered = gatherer.gather()
        question = in_time(gathered.question)
        result = solve_portfolio(question.numbers, asking.left(), progress=progress)
    return gathered, question, result


def _widened(
    gatherer: Gatherer,
    loaded: LoadedPortfolio,
    asking: _Asking,
    outcome: tuple[Gathered, Question, PortfolioResult],
    terms: Terms,
) -> tuple[Gathered, Question, PortfolioResult] | None:
    """The plan by expected cost among candidates that a choice with risk may need too, which others replace in cost.

    None where time ends before.
    """
    gathered, question, result = outcome
    asking = replace(asking, share=(1.0 + asking.share) / 2)
    given = all(one is None for one in loaded.workloads)
    if not terms.averse or given:
        return outcome
    if result.interrupted or asking.is_late:
        return None
    most = objective_with_risk(gathered, question, result, terms)
    gatherer.widen_for_risk(_up_to_usd(loaded, gathered, result, round(most * MICRO)))
    gathered = gatherer.gather()
    question = in_time(gathered.question)
    wider = solve_portfolio(question.numbers, asking.left())
    if wider.objective is None or wider.objective > (result.objective or 0):
        return None
    return gathered, question, wider


def missing_up_to(loaded: LoadedPortfolio, gathered: Gathered, result: PortfolioResult) -> dict[int, float]:
    """Up to which cost candidates are missing that a better plan, or the proof that there is none, could need.

    At the prices behind the exact bound L a candidate of job j that is left out gains nothing while it costs more than
    mu_j, so L bounds every plan from below, those with such candidates too; and one that costs more than
    mu_j + (plan - L) is in no better plan. Without a plan, all candidates are needed, but where the jobs at their
    cheapest, which are never left out, cost more than the budget.

    Returns:
        USD per entry of the file that lacks some; empty when none does.
    """
    if result.reduced.source.over_budget:
        return {}
    wanted = _up_to_usd(loaded, gathered, result, result.objective)
    return {entry: usd for entry, usd in wanted.items() if usd > gathered.whole_usd[entry]}


def _up_to_usd(
    loaded: LoadedPortfolio, gathered: Gathered, result: PortfolioResult, most: int | None
) -> dict[int, float]:
    """Up to which cost, USD, a job's candidates may be in a plan of at most `most` micro-dollars, by entry of the file.

    Entries whose candidates were all given are left out; without a plan or a bound all candidates may be.
    """
    out: dict[int, float] = {}
    starts = [0.0 if job.earliest_start is None else _hours_from(gathered, job) for job in loaded.jobs]
    for job, entry in enumerate(gathered.kinds):
        whole = gathered.whole_usd[entry]
        if not np.isfinite(whole):
            continue
        needed = np.inf
        if result.prices is not None and most is not None and result.exact_bound is not None:
            gap = max(most - result.exact_bound, 0)
            waited = loaded.jobs[entry].delay_usd_per_hour * starts[entry]
            needed = (int(result.prices.mu[job]) + gap) / MICRO - waited
        out[entry] = max(needed, out.get(entry, 0.0))
    return out


def _hours_from(gathered: Gathered, job: PortfolioJob) -> float:
    """Hours after the portfolio's start before which a job does not start."""
    assert job.earliest_start is not None
    return max((start_moment(job.earliest_start) - gathered.start).total_seconds() / 3600.0, 0.0)
