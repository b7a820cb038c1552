"""A first fleet without a solver: within all limits, it carries the load; its bound is below the cheapest fleet."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.serving import model
from planner.serving.greedy import first_fleet, least_usd_per_hour
from planner.serving.model import solve_serving
from planner.serving.question import ServingInput
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Solution, Status, Termination

OPTIONS = SolveOptions(gap=1e-6, backend="auto")


def _random(seed: int, *, limited: bool) -> ServingInput:
    draw = np.random.default_rng(seed)
    kinds, buckets = int(draw.integers(1, 6)), int(draw.integers(1, 9))
    speed = np.where(draw.random((kinds, buckets)) < 0.7, draw.uniform(0.5, 4.0, (kinds, buckets)), 0.0)
    speed[0] = np.maximum(speed[0], 0.5)  # each bucket has a machine
    limit, most = np.full(kinds, np.inf), math.inf
    if limited:
        limit = np.where(draw.random(kinds) < 0.6, draw.integers(1, 9, kinds), np.inf)
        most = float(draw.integers(3, 30)) if draw.random() < 0.5 else math.inf
    return ServingInput(
        tuple(f"b{at}" for at in range(buckets)), draw.uniform(0.0, 5.0, buckets),
        tuple(f"k{at}" for at in range(kinds)), draw.uniform(1.0, 9.0, kinds), speed, limit, most, 0.1,
    )  # fmt: skip


@pytest.mark.parametrize("limited", [False, True])
def test_a_first_fleet_carries_the_load_within_all_limits(limited: bool) -> None:
    ratios = []
    for seed in range(60):
        question = _random(seed, limited=limited)
        best, fleet = solve_serving(question, OPTIONS), first_fleet(question)
        if fleet is None:
            assert limited  # without limits there is always one
            continue
        assert best.status is Status.OPTIMAL
        needed = np.where(fleet.shares > 0, question.machines, 0.0)
        assert ((fleet.shares * needed).sum(axis=1) <= fleet.counts + 1e-9).all()
        assert np.allclose(fleet.shares.sum(axis=0), 1.0) and (fleet.counts <= question.limit).all()
        assert fleet.counts.sum() <= question.max_nodes
        assert least_usd_per_hour(question) <= best.usd_per_hour * (1 + 1e-9)
        ratios.append(fleet.usd_per_hour / best.usd_per_hour)
    assert min(ratios) >= 1 - 1e-6
    assert len(ratios) >= 40 and np.median(ratios) <= 1.1


def test_a_search_that_finds_nothing_in_time_still_gives_a_fleet_and_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing = Solution(Status.NO_SOLUTION, Termination.TIME_LIMIT, bound=-math.inf)
    for seed in range(20):
        question = _random(seed, limited=False)
        best = solve_serving(question, OPTIONS)
        with monkeypatch.context() as late:
            late.setattr(model, "solve", lambda *_: nothing)
            found = solve_serving(question, OPTIONS)
        assert found.status is Status.FEASIBLE and found.counts
        assert found.bound_usd_per_hour <= best.usd_per_hour <= found.usd_per_hour * (1 + 1e-9)
        assert found.gap == pytest.approx(1 - found.bound_usd_per_hour / found.usd_per_hour)


def test_what_is_proven_impossible_stays_so() -> None:
    question = ServingInput(("b",), np.array([5.0]), ("k",), np.ones(1), np.ones((1, 1)), np.array([2.0]))
    assert solve_serving(question, OPTIONS).status is Status.INFEASIBLE and first_fleet(question) is None


@pytest.mark.filterwarnings("error")
def test_a_machine_without_a_price_costs_nothing_only_where_it_serves() -> None:
    """As one that is owned: what it cannot serve is bought."""
    question = ServingInput(
        ("a", "b"), np.array([2.0, 3.0]), ("owned", "bought"), np.array([0.0, 1.5]), np.array([[0.0, 1.0], [1.0, 1.0]]),
        np.full(2, np.inf),
    )  # fmt: skip
    fleet = first_fleet(question)
    assert fleet is not None and fleet.usd_per_hour == 3.0
    assert least_usd_per_hour(question) == pytest.approx(3.0)
