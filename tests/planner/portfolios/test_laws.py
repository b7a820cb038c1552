"""Laws of portfolios, compared on proven optima: order, money unit, dominance, prices and limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.instances.portfolio import generate
from planner.portfolios.shared_limits import PortfolioInput
from planner.portfolios.solve import PortfolioOptions, PortfolioResult, solve_portfolio
from solvers.problem.solution import Status
from tests.draws import draws
from tests.planner.portfolios.portfolio_cases import random_portfolio

seeds = st.integers(0, 100_000)
few = draws(60)


def optimum(question: PortfolioInput, **options: object) -> PortfolioResult:
    result = solve_portfolio(question, PortfolioOptions(gap=0.0, **options))  # type: ignore[arg-type]
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE), result.message
    return result


def permuted(question: PortfolioInput, seed: int) -> PortfolioInput:
    """Jobs, candidates, limits and entries in another order."""
    random = np.random.default_rng(seed)
    new_job = random.permutation(question.n_jobs)
    order = np.lexsort((random.random(question.n_candidates), new_job[question.job]))
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    new_limit = random.permutation(len(question.limit))
    shuffle = random.permutation(len(question.entry_candidate))
    back = np.argsort(new_limit)
    return replace(
        question, job=new_job[question.job][order], cost=question.cost[order], objective=question.objective[order],
        entry_candidate=position[question.entry_candidate][shuffle],
        entry_limit=new_limit[question.entry_limit][shuffle], entry_units=question.entry_units[shuffle],
        limit=question.limit[back], limit_kind=question.limit_kind[back],
    )  # fmt: skip


@few
@given(seeds)
def test_order_changes_nothing(seed: int) -> None:
    question = random_portfolio(seed)
    assert optimum(question).objective == optimum(permuted(question, seed)).objective


@few
@given(seeds, st.sampled_from([2, 3, 1_000, 1_000_000]))
def test_the_money_unit_changes_nothing(seed: int, factor: int) -> None:
    """$ as m$, doubled prices with a doubled budget: the optimum scales, exactly."""
    question = random_portfolio(seed)
    scaled = replace(
        question, cost=question.cost * factor, objective=question.objective * factor,
        budget=None if question.budget is None else question.budget * factor,
    )  # fmt: skip
    first, second = optimum(question).objective, optimum(scaled).objective
    assert second == (None if first is None else first * factor)


@pytest.mark.parametrize("power", [-5, -3, 3, 5])
def test_a_real_portfolio_in_other_money_units(power: int) -> None:
    """Whole portfolios priced in units from 10 micro-dollars to 100,000 dollars: bounds and plans scale.

    A solver that stops at an absolute gap would call a plan in the large unit optimal that is not.
    """
    question = generate(5, 12, 30).question
    cost = question.cost // 10**5 * 10**5
    question = replace(question, cost=cost, objective=cost)
    factor = 10.0**power
    scaled = (cost * 10**power) if power > 0 else cost // 10**-power
    first = optimum(question)
    second = optimum(replace(question, cost=scaled, objective=scaled))
    assert first.objective is not None and second.objective is not None
    assert second.objective == round(first.objective * factor)


@few
@given(seeds)
def test_reductions_change_nothing(seed: int) -> None:
    question = random_portfolio(seed)
    assert optimum(question).objective == optimum(question, drop_dominated=False).objective


@few
@given(seeds, st.integers(0, 30))
def test_relaxing_a_limit_never_raises_the_cost(seed: int, more: int) -> None:
    question = random_portfolio(seed)
    looser = replace(
        question, limit=question.limit + more,
        budget=None if question.budget is None else question.budget + more * 1_000_000,
    )  # fmt: skip
    before, after = optimum(question), optimum(looser)
    if before.objective is not None:
        assert after.objective is not None
        assert after.objective <= before.objective


@few
@given(seeds)
def test_a_further_candidate_never_raises_the_cost(seed: int) -> None:
    question = random_portfolio(seed)
    before = optimum(question)
    last = question.n_candidates  # one more for the last job, dear and free of limits
    dear = np.int64(50_000_000)
    more = replace(
        question, job=np.append(question.job, question.n_jobs - 1), cost=np.append(question.cost, dear),
        objective=np.append(question.objective, dear),
    )  # fmt: skip
    after = optimum(more)
    assert more.n_candidates == last + 1
    if before.objective is not None:
        assert after.objective is not None
        assert after.objective <= before.objective


def test_the_bound_of_windows_and_several_limits_holds() -> None:
    """With candidates in several limits, prices stand for all but one of them: the bound stays below the optimum."""
    for seed in range(40):
        question = random_portfolio(seed)
        result = optimum(question)
        if result.exact_bound is not None and result.objective is not None:
            assert result.exact_bound <= result.objective
