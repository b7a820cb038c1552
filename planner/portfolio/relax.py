"""Why a portfolio does not fit: which limits must give way, by how much, and the plan that follows.

The amounts are computed in whole numbers from the choice that the softened model makes, whatever its solver did: the
limits raised by them hold that choice, so the plan solved with them exists in every case.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from planner.formulation.portfolio_elastic import ElasticWeights, build_elastic, reduce_elastic
from planner.formulation.portfolio_input import MICRO, Ints, PortfolioInput
from planner.formulation.portfolio_reduce import Reduced
from planner.portfolio.solve import PortfolioOptions, PortfolioResult, solve_portfolio
from planner.portfolio.table import Floats
from solvers.options import SolveOptions
from solvers.solve import solve

ELASTIC_GAP = 1e-3


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
    picks, bound = _least(reduced, weights, options)
    raised = np.maximum(question.used(picks) - question.limit, 0)
    over = 0 if question.budget is None else max(int(question.cost[picks].sum()) - question.budget, 0)
    weighted = _weighted(question, raised, weights) + over / MICRO * weights.usd_per_usd_over_budget
    weighted += float(late[picks].sum()) / MICRO
    seconds = time.perf_counter() - began
    allowed = late_hours[picks]
    moved, keep = _moved(question, late_hours, raised, allowed, over)
    left = max(options.time_limit_s - seconds, 0.05 * options.time_limit_s)
    position = np.cumsum(keep) - 1
    plan = solve_portfolio(moved, replace(options, time_limit_s=left), start=position[picks])
    return Relaxed(
        raised=raised, late_hours=allowed, over_budget=over, weighted_usd=weighted, bound_usd=bound,
        proven=weighted - bound <= ELASTIC_GAP * max(weighted, 1e-6) + 1e-6, picks=picks, question=moved, plan=plan,
        kept=np.flatnonzero(keep),
        seconds=seconds,
    )  # fmt: skip


def _least(reduced: Reduced, weights: ElasticWeights, options: PortfolioOptions) -> tuple[Ints, float]:
    """The choice that breaks least, and the bound that the solver claims for it, USD."""
    simple = _without_solver(reduced)
    if not len(reduced.live) and reduced.source.budget is None:
        return simple, float(reduced.source.objective[simple].sum()) / MICRO
    model = build_elastic(reduced, weights)
    found = solve(
        model,
        SolveOptions(
            gap=ELASTIC_GAP, time_limit_s=options.time_limit_s * 0.5, backend=options.backend, core_columns=0,
            isolate=False,
        ),
    )  # fmt: skip
    if not found.has_point:
        return simple, -np.inf
    chosen = [key for key, value in found.x.items() if isinstance(key, int) and value > 0.5]
    return np.array(sorted(chosen), dtype=np.int64), found.bound


def _without_solver(reduced: Reduced) -> Ints:
    """Some choice at once: per job the least late, then the cheapest."""
    source, keep = reduced.source, reduced.keep
    order = np.lexsort((source.cost[keep], source.objective[keep], reduced.job))
    first = np.flatnonzero(np.r_[True, np.diff(reduced.job[order]) != 0])
    return keep[order[first]]


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
