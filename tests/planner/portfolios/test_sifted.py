"""Large portfolios: relaxations over few candidates, to which those that pay are added, prove as much."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from benchmarks.instances.portfolio import generate
from planner.portfolios import core
from planner.portfolios.core import core_of, rank_of, sifting_of
from planner.portfolios.elastic import ElasticWeights
from planner.portfolios.model.families import build_portfolio
from planner.portfolios.reduce import reduce_portfolio
from planner.portfolios.relax import relax_portfolio
from planner.portfolios.solve import PortfolioOptions, solve_portfolio

BACKENDS = ("scipy", "highspy")


@pytest.mark.parametrize(("seed", "backend"), [(0, "scipy"), (1, "highspy"), (2, "scipy")])
def test_the_bound_and_what_gives_way_are_as_good(
    seed: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = generate(seed, 40, feasible=False).question
    tight = replace(question, limit=np.floor(question.limit * 0.45).astype(np.int64))
    options, none = PortfolioOptions(backend=backend, mode="fast"), np.zeros(question.n_candidates)

    def answers() -> tuple[float, float, float, float]:
        loose = solve_portfolio(generate(seed, 40).question, options)
        moved = relax_portfolio(tight, none, ElasticWeights(), 100.0, options)
        assert loose.objective is not None and loose.exact_bound is not None and moved.plan.picks is not None
        assert not moved.question.faults(moved.plan.picks)
        return loose.objective, loose.exact_bound, moved.weighted_usd, moved.bound_usd

    cost, bound, weight, least = answers()
    monkeypatch.setattr(core, "SMALL", 0)
    sifted_cost, sifted_bound, sifted_weight, sifted_least = answers()
    assert sifted_bound <= cost and bound <= sifted_cost
    assert sifted_cost == pytest.approx(cost, rel=5e-3) and sifted_bound >= 0.99 * bound
    assert sifted_least == pytest.approx(least, rel=1e-6)
    assert least <= sifted_weight <= 1.15 * weight


def test_a_large_model_begins_with_the_plan_and_the_cheapest_of_each_job() -> None:
    reduced = reduce_portfolio(generate(1, 120).question)
    model, cost = build_portfolio(reduced), reduced.source.objective[reduced.keep]
    assert model.n_columns <= core.SMALL
    starts = np.searchsorted(reduced.job, np.arange(reduced.source.n_jobs + 1))
    own = [slice(first, end) for first, end in pairwise(starts)]
    dearest = np.array([part.start + int(np.argmax(cost[part])) for part in own])
    assert sifting_of(reduced, model, cost, dearest) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(core, "SMALL", 0)
        sifting = sifting_of(reduced, model, cost, dearest)
    assert sifting is not None and sifting.first[dearest].all()
    assert (np.bincount(reduced.job[sifting.first[: len(reduced.keep)]]) <= core.FIRST_EACH).all()
    cheapest = core_of(reduced, cost.astype(np.float64), None, 2)
    assert sifting.first[cheapest].all()


def test_what_a_relaxation_uses_ranks_before_the_least_reduced_cost() -> None:
    assert rank_of(np.array([0.0, 0.5, 0.0]), np.array([3.0, 9.0, -1.0])).tolist() == [3.0, -1.0, 0.0]
