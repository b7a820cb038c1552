"""Quotas that tasks of a pipeline share: the plan is the cheapest of all choices and orders that keep them."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest

from benchmarks.instances.pipeline import pipeline_instance
from planner.pipelines.question import PipelineInput, follow
from planner.pipelines.shared import SharedQuota, conflict_of, in_order, solve_shared
from solvers.problem.errors import ModelError
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status


def question(seed: int) -> tuple[PipelineInput, SharedQuota]:
    """Four tasks, candidates that draw 0 to 4, a limit that two of them may exceed."""
    draw = np.random.default_rng(seed)
    pipe = pipeline_instance(4, 3, seed, slack=float(draw.uniform(0.0, 1.2)), n_places=3, shape="fork")
    return pipe, SharedQuota(
        "q", float(draw.integers(3, 6)), draw.integers(0, 5, len(pipe.keys)).astype(float)
    )


def least_of_all(pipe: PipelineInput, quota: SharedQuota) -> float:
    """The cheapest of every choice under every set of orders that keeps deadline and quota."""
    best = math.inf
    pairs = list(combinations(range(pipe.n_tasks), 2))
    ordered = []
    for ways in product((0, 1, 2), repeat=len(pairs)):
        orders = [pair if way == 1 else pair[::-1] for pair, way in zip(pairs, ways, strict=True) if way]
        try:
            ordered.append(in_order(pipe, orders))
        except ModelError:
            continue
    for choice in product(*(np.flatnonzero(pipe.task == task).tolist() for task in range(pipe.n_tasks))):
        chosen = np.array(choice)
        cost = follow(pipe, chosen).cost_usd
        if cost >= best:
            continue
        for one in ordered:
            course = follow(one, chosen)
            if course.end_hours.max() <= pipe.deadline_hours and conflict_of(chosen, course, [quota]) is None:
                best = cost
                break
    return best


SEEDS = (*range(12), 36, 54)  # 36: no plan keeps the quota; 54: two orders


@pytest.mark.parametrize("seed", SEEDS)
def test_the_plan_is_the_cheapest_of_all_choices_and_orders(seed: int) -> None:
    pipe, quota = question(seed)
    best = least_of_all(pipe, quota)
    result = solve_shared(pipe, [quota], SolveOptions(gap=0.0, time_limit_s=60.0))
    if math.isinf(best):
        assert result.status is Status.INFEASIBLE
        return
    assert result.course is not None
    assert result.course.cost_usd == pytest.approx(best, rel=1e-7)
    assert result.bound_usd <= best * (1 + 1e-9)
    chosen = np.array([pipe.keys.index(result.chosen[name]) for name in pipe.tasks])
    assert conflict_of(chosen, follow(in_order(pipe, result.orders), chosen), [quota]) is None


def test_the_instances_reach_every_outcome() -> None:
    """Some question is decided by an order, some by another choice, some cannot be."""
    ordered = chosen = none = 0
    for seed in SEEDS:
        pipe, quota = question(seed)
        free = solve_shared(pipe, [], SolveOptions(gap=0.0))
        held = solve_shared(pipe, [quota], SolveOptions(gap=0.0))
        none += held.course is None
        ordered += bool(held.orders)
        chosen += (
            held.course is not None
            and free.course is not None
            and held.course.cost_usd > free.course.cost_usd
        )
    assert ordered and chosen and none


def test_without_time_no_plan_that_exceeds_a_quota_is_shown() -> None:
    without = 0
    for seed in SEEDS:
        pipe, quota = question(seed)
        hurried = solve_shared(pipe, [quota], SolveOptions(time_limit_s=1e-6))
        if hurried.course is None:
            without += 1
            assert hurried.status is Status.NO_SOLUTION and hurried.conflict, seed
            continue
        chosen = np.array([pipe.keys.index(hurried.chosen[name]) for name in pipe.tasks])
        assert conflict_of(chosen, follow(in_order(pipe, hurried.orders), chosen), [quota]) is None, seed
    assert without
