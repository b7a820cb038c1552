"""Portfolios against trying every choice on random instances, fast and full, with and without reductions."""

from __future__ import annotations

import pytest

from planner.portfolios.solve import PortfolioOptions, PortfolioResult, solve_portfolio
from solvers.problem.solution import Status
from tests.draws import share_of
from tests.planner.portfolios.portfolio_cases import best_choice, random_portfolio

BLOCK = share_of(25)


def agrees(seed: int, result: PortfolioResult, best: int | None, *, exact: bool) -> None:
    if best is None:
        assert result.status is Status.INFEASIBLE, (seed, result.status)
        assert result.picks is None
        return
    assert result.picks is not None, (seed, result.status, result.message)
    question = result.reduced.source
    assert not question.faults(result.picks), seed
    assert result.objective == int(question.objective[result.picks].sum())
    assert result.objective >= best, seed
    if result.exact_bound is not None:
        assert result.exact_bound <= best, (seed, result.exact_bound, best)
    if exact:
        assert result.objective == best, (seed, result.objective, best)
        assert result.status is Status.OPTIMAL


def check_full(seed: int) -> None:
    """Full mode, alternating backends, a gap of 0."""
    question = random_portfolio(seed)
    backend = ("highspy", "scipy")[seed % 2]
    options = PortfolioOptions(gap=0.0, time_limit_s=60, backend=backend)
    agrees(seed, solve_portfolio(question, options), best_choice(question), exact=True)


def check_fast(seed: int) -> None:
    """Fast mode is between its exact bound and the optimum; without dominance just as well."""
    question = random_portfolio(seed)
    best = best_choice(question)
    for drop in (True, False):
        options = PortfolioOptions(gap=0.0, time_limit_s=60, mode="fast", drop_dominated=drop)
        agrees(seed, solve_portfolio(question, options), best, exact=False)


@pytest.mark.parametrize("block", range(10))
def test_full_mode_finds_the_optimum(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        check_full(seed)


@pytest.mark.parametrize("block", range(10))
def test_fast_mode_is_between_its_bound_and_the_optimum(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        check_fast(seed)
