"""What a portfolio's answer is worth however little time it had, and that `auto` never knows less than `fast`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.instances.portfolio import generate
from planner.errors import TimeLimitError
from planner.portfolios.elastic import ElasticWeights
from planner.portfolios.frontier import delay_of, find_frontier
from planner.portfolios.relax import relax_portfolio
from planner.portfolios.solve import PortfolioOptions, _Run, solve_portfolio
from solvers.problem.solution import Status
from tests.planner.portfolios.portfolio_cases import best_choice, every_choice, random_portfolio

NO_TIME = 1e-6


@pytest.mark.parametrize("mode", ["auto", "fast", "full"])
def test_without_time_there_is_a_bound_on_every_plan(mode: str) -> None:
    for seed in range(60):
        question = random_portfolio(seed)
        best = best_choice(question)
        found = solve_portfolio(question, PortfolioOptions(time_limit_s=NO_TIME, mode=mode))
        if found.status is Status.INFEASIBLE:
            assert best is None, seed
            continue
        assert found.exact_bound is not None, seed
        if best is not None:
            cheapest = sum(
                int(question.objective[question.job == job].min()) for job in range(question.n_jobs)
            )
            assert cheapest <= found.exact_bound <= best, seed
        if found.objective is not None:
            assert best is not None and found.objective >= best
        else:
            assert found.status is Status.NO_SOLUTION


@pytest.mark.parametrize("limit_s", [0.02, 0.2])
def test_bounds_and_plans_of_a_large_portfolio_hold_at_short_limits(limit_s: float) -> None:
    question = generate(3, 150).question
    settled = solve_portfolio(question, PortfolioOptions(mode="fast"))
    assert settled.objective is not None and settled.exact_bound is not None
    found = solve_portfolio(question, PortfolioOptions(time_limit_s=limit_s))
    assert found.objective is not None and found.exact_bound is not None
    assert 0 < found.exact_bound <= settled.objective
    assert settled.exact_bound <= found.objective


@pytest.mark.parametrize("seed", range(6))
def test_auto_is_at_least_as_good_as_fast(seed: int) -> None:
    question = generate(seed, 40, 60, tight=0.4).question
    fast = solve_portfolio(question, PortfolioOptions(gap=1e-5, mode="fast"))
    auto = solve_portfolio(question, PortfolioOptions(gap=1e-5, mode="auto"))
    assert auto.exact_gap <= fast.exact_gap
    assert auto.objective is not None and fast.objective is not None
    assert auto.objective <= fast.objective


@pytest.mark.parametrize(("seed", "cut"), [(0, 0.45), (2, 0.45), (1, 0.7)])
def test_what_gives_way_is_within_twice_its_bound(seed: int, cut: float) -> None:
    question = generate(seed, 150, feasible=False).question
    question = replace(question, limit=np.floor(question.limit * cut).astype(np.int64))
    none = np.zeros(question.n_candidates)
    found = relax_portfolio(question, none, ElasticWeights(), 100.0, PortfolioOptions(mode="fast"))
    assert 0 < found.weighted_usd <= 2 * found.bound_usd


def test_the_bound_without_a_solver_is_what_candidates_exceed_alone() -> None:
    """A choice of two candidates of 12 units on a limit of 10 exceeds it by 14, and by 2 + 2 at least."""
    question = replace(
        random_portfolio(0), n_jobs=2, job=np.array([0, 1]), cost=np.ones(2, dtype=np.int64),
        objective=np.zeros(2, dtype=np.int64), entry_candidate=np.array([0, 1]),
        entry_limit=np.zeros(2, dtype=np.int64), entry_units=np.array([12, 12]), limit=np.array([10]),
        limit_kind=np.array([0]), budget=None,
    )  # fmt: skip
    options = PortfolioOptions(time_limit_s=NO_TIME)
    found = relax_portfolio(question, np.zeros(2), ElasticWeights(usd_per_quota_unit=1.0), 100.0, options)
    assert (found.weighted_usd, found.bound_usd) == (14.0, 4.0)


def test_a_plan_to_begin_with_is_known_by_candidates_that_are_kept() -> None:
    """Also where a candidate of it is dominated by one of equal cost: stages look up the plan among those kept."""
    for seed in range(60):
        question = random_portfolio(seed)
        for choice in every_choice(question)[:200]:
            if question.faults(choice):
                continue
            run = _Run(question, PortfolioOptions(), None)
            run.begin_with(choice)
            picks = run.result.picks
            assert picks is not None and np.isin(picks, run.reduced.keep).all(), seed
            assert question.objective[picks].sum() <= question.objective[choice].sum()


@pytest.mark.parametrize("seed", range(2))
def test_a_frontier_without_time_never_says_that_there_is_no_plan(seed: int) -> None:
    """None of its points is a proof; a search that ended early says so, with exit code 6."""
    drawn = generate(seed, 60, feasible=False)
    question = replace(drawn.question, limit=np.floor(drawn.question.limit * 0.45).astype(np.int64))
    delay = delay_of(drawn.hours, drawn.usd_per_hour_late[question.job])
    proven = solve_portfolio(question, PortfolioOptions(time_limit_s=NO_TIME, mode="fast", gap=1e-3))
    hurried = PortfolioOptions(time_limit_s=NO_TIME)
    if proven.status is Status.INFEASIBLE:
        assert find_frontier(question, delay, 3, hurried) == []
        return
    with pytest.raises(TimeLimitError, match="none is proven impossible"):
        find_frontier(question, delay, 3, hurried)
