"""Cost against time of a whole portfolio: for each budget the least weighted delay, each point with its own bound.

The ends are the least cost (and a fifth of a percent) and the plan of least delay; between them budgets lie closer
together at the low end, where the curve bends. A warm start does not help the integer search (measured, see
docs/optimisation/portfolio.md), so each point is solved on a core of its own: the candidates of least reduced cost at
that budget. Its bound is the exact one of the whole portfolio (`planner.portfolios.bound`), or the solver's where that
is higher.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from catalogs.tables.table import Ints
from planner.errors import TimeLimitError
from planner.portfolios.shared_limits import PortfolioInput
from planner.portfolios.solve import PortfolioOptions, PortfolioResult, solve_portfolio
from solvers.problem.solution import Status

POINT_GAP = 2e-3  # of each point's restricted model
CORE_EACH = 25  # candidates per job in it: with a tight budget a handful is too few


@dataclass(frozen=True, eq=False)
class FrontierPoint:
    """One point; money in micro-dollars.

    Attributes:
        budget: most to pay.
        cost: of the plan, None without one.
        delay: value-weighted delay of the plan, micro-dollars.
        delay_bound: no plan within the budget has less; None without a bound.
        gap: (delay - delay_bound) / delay.
        result: its solution.
    """

    budget: int
    cost: int | None
    delay: int | None
    delay_bound: int | None
    gap: float
    result: PortfolioResult


def find_frontier(
    question: PortfolioInput,
    delay: Ints,
    points: int,
    options: PortfolioOptions,
    *,
    progress: Callable[[FrontierPoint], None] = lambda _point: None,
) -> list[FrontierPoint]:
    """Points from the least cost to the least delay.

    Args:
        question: the portfolio; its objective is replaced.
        delay: what each candidate's time counts, micro-dollars, shape `(n_candidates,)`.
        points: how many, at least 2.
        options: how to solve; the time limit is for all points together.
        progress: told of each point.

    Returns:
        The points; none where it is proven that there is no plan of all jobs.

    Raises:
        TimeLimitError: no plan was found in time, which proves nothing.
    """
    share = options.time_limit_s / (points + 2)
    each = replace(options, mode="fast", time_limit_s=share, gap=POINT_GAP, core_each=CORE_EACH)
    cheapest = solve_portfolio(replace(question, objective=question.cost), replace(each, gap=1e-3))
    if cheapest.picks is None:
        if cheapest.status is not Status.INFEASIBLE:
            raise TimeLimitError(
                f"no plan of all jobs was found within {options.time_limit_s:g} s, and none is proven impossible; "
                "raise --time-limit"
            )
        return []
    timed = replace(question, objective=delay)
    fastest = solve_portfolio(timed, each)
    least = int(question.cost[cheapest.picks].sum())
    most = least if fastest.picks is None else max(int(question.cost[fastest.picks].sum()), least)
    low = min(least + least // 500, most)  # at the very least there is one plan, and nothing to choose
    frontier_points: list[FrontierPoint] = []
    known = cheapest.picks
    for number in range(points):
        budget = low + round((most - low) * (number / (points - 1)) ** 2)
        # the budget of the last plan is within this one's, so its plan is one here too
        result = solve_portfolio(replace(timed, budget=budget), each, start=known)
        if number == points - 1 and fastest.gap < result.gap and fastest.picks is not None:
            result = fastest
        known = known if result.picks is None else result.picks
        frontier_points.append(_point(question, budget, result))
        progress(frontier_points[-1])
    return frontier_points


def _point(question: PortfolioInput, budget: int, result: PortfolioResult) -> FrontierPoint:
    cost = None if result.picks is None else int(question.cost[result.picks].sum())
    bound = result.exact_bound
    if math.isfinite(result.solver_bound):
        bound = max(bound or 0, math.floor(result.solver_bound))
    return FrontierPoint(budget, cost, result.objective, bound, _gap(result.objective, bound), result)


def _gap(delay: int | None, bound: int | None) -> float:
    if delay is None or bound is None:
        return math.inf
    return max(delay - bound, 0) / delay if delay else 0.0


def delay_of(
    hours: np.ndarray[tuple[int], np.dtype[np.float64]],
    usd_per_hour: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> Ints:
    """Weighted delay of candidates that end after `hours`, micro-dollars (a weight of 1 where none is given)."""
    return np.rint(hours * np.where(usd_per_hour > 0, usd_per_hour, 1.0) * 1e6).astype(np.int64)
