"""Serving fleets against enumeration of all counts, their laws, and the rival formulation."""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from benchmarks.instances.serving import build_slices, serving_instance
from planner.serving.model import ServingResult, build_serving, solve_serving
from planner.serving.proof import prove
from planner.serving.question import ServingInput
from solvers.execution.solve import solve
from solvers.problem.errors import ModelError
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from tests.draws import draws, share_of
from tests.lp_text import lp_text

EXACT = SolveOptions(gap=0.0)
GOLDEN = Path(__file__).parents[2] / "fixtures" / "lp" / "serving.lp"
MOST = 3
PER_BLOCK = share_of(10)


def small(seed: int) -> ServingInput:
    """Up to 3 kinds and 3 buckets; at most 3 machines of a kind."""
    draw = np.random.default_rng(seed)
    n_kinds, n_buckets = int(draw.integers(1, 4)), int(draw.integers(1, 4))
    speed = draw.integers(0, 9, (n_kinds, n_buckets)).astype(np.float64)
    return ServingInput(
        tuple(f"b{k}" for k in range(n_buckets)), draw.integers(1, 9, n_buckets).astype(np.float64),
        tuple(f"g{k}" for k in range(n_kinds)), draw.integers(1, 30, n_kinds).astype(np.float64), speed,
        draw.integers(1, MOST + 1, n_kinds).astype(np.float64),
        float(draw.choice([math.inf, 3.0, 5.0])), float(draw.choice([0.0, 0.25])),
    )  # fmt: skip


def carries(question: ServingInput, counts: tuple[int, ...]) -> bool:
    """Whether these machines can carry the load: a linear program over the shares."""
    needed = question.machines
    kind, bucket = np.nonzero(np.isfinite(needed))
    serve = (bucket[None, :] == np.arange(len(question.buckets))[:, None]).astype(float)
    load = np.where(
        kind[None, :] == np.arange(len(question.keys))[:, None], needed[kind, bucket][None, :], 0.0
    )
    found = linprog(np.zeros(len(kind)), load, counts, serve, np.ones(len(question.buckets)), (0, 1))
    return bool(found.status == 0)


def may_carry(question: ServingInput, choices: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Choices without those that weak duality rules out: load weighed by bucket is above what the machines can bear."""
    n_buckets = len(question.buckets)
    weights = np.vstack(
        [np.eye(n_buckets), np.ones(n_buckets), np.random.default_rng(0).random((60, n_buckets))]
    )
    bears = (weights[:, None, :] / question.machines).max(axis=2)  # a machine of a kind, by weights
    most = bears @ np.array(choices, dtype=float).T
    kept = (most >= weights.sum(axis=1)[:, None] * (1 - 1e-9)).all(axis=0)
    return [choice for choice, keep in zip(choices, kept, strict=True) if keep]


def least(question: ServingInput) -> float:
    ranges = [range(int(limit) + 1) for limit in question.limit]
    choices = [c for c in itertools.product(*ranges) if sum(c) <= question.max_nodes]
    if not np.isfinite(question.machines).any(axis=0).all():
        return math.inf
    choices = may_carry(question, choices)
    choices.sort(key=lambda c: float(np.dot(c, question.usd_per_hour)))
    return next((float(np.dot(c, question.usd_per_hour)) for c in choices if carries(question, c)), math.inf)


def cost(result: ServingResult) -> float:
    return result.usd_per_hour if result.counts else math.inf


def check_serving(seed: int) -> None:
    """The model equals enumeration of all counts; every bucket is served whole."""
    result = solve_serving(small(seed), EXACT)
    assert cost(result) == pytest.approx(least(small(seed))), seed
    assert result.counts or result.status is Status.INFEASIBLE
    for bucket in small(seed).buckets if result.counts else ():
        assert math.fsum(v for (b, _), v in result.shares.items() if b == bucket) == pytest.approx(1.0)


@pytest.mark.parametrize("block", range(10))
def test_fleets_equal_enumeration(block: int) -> None:
    for seed in range(PER_BLOCK * block, PER_BLOCK * (block + 1)):
        check_serving(seed)


@given(st.integers(0, 5000), st.sampled_from([1e-6, 1e-3, 2.0, 1e3]))
@draws(40)
def test_laws(seed: int, scale: float) -> None:
    question = small(seed)
    best = cost(solve_serving(question, EXACT))
    dearer = replace(question, usd_per_hour=question.usd_per_hour * scale)
    assert cost(solve_serving(dearer, EXACT)) == pytest.approx(best * scale)
    per_minute = replace(question, rate=question.rate * 60, speed=question.speed * 60)
    assert cost(solve_serving(per_minute, EXACT)) == pytest.approx(best)
    turned = replace(question, keys=question.keys[::-1], usd_per_hour=question.usd_per_hour[::-1],
                     speed=question.speed[::-1], limit=question.limit[::-1])  # fmt: skip
    assert cost(solve_serving(turned, EXACT)) == pytest.approx(best)
    assert solve_serving(replace(question, limit=question.limit + 1), EXACT).bound_usd_per_hour <= best * (
        1 + 1e-9
    )
    assert solve_serving(replace(question, headroom=0.0), EXACT).bound_usd_per_hour <= best * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_continuous_shares_are_never_dearer_than_slices(seed: int) -> None:
    question = serving_instance(6, 4, seed, rate=30.0)
    ours = solve_serving(question, EXACT)
    for slices in (1, 2):
        rival = solve(build_slices(question, slices), SolveOptions(gap=1e-6))
        assert ours.usd_per_hour <= rival.objective * (1 + 1e-9)


def test_a_bucket_nobody_serves_is_named_without_a_solver() -> None:
    question = replace(small(1), speed=np.zeros_like(small(1).speed))
    assert solve_serving(question).unserved == question.buckets


def test_bad_shapes_and_headroom_are_refused() -> None:
    with pytest.raises(ModelError, match="a speed for every kind and bucket"):
        replace(small(1), rate=np.ones(9))
    with pytest.raises(ModelError, match="headroom"):
        replace(small(1), headroom=1.0)


def test_golden() -> None:
    """`UPDATE_GOLDENS=1` rewrites it."""
    question = ServingInput(
        ("short", "long"), np.array([30.0, 2.0]), ("l4", "h100"), np.array([0.8, 6.9]),
        np.array([[3.0, 0.0], [24.0, 1.5]]), np.array([8.0, np.inf]), 12.0, 0.2,
    )  # fmt: skip
    text = lp_text(build_serving(question))
    if os.environ.get("UPDATE_GOLDENS"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_a_proof_without_a_moment_left_is_that_of_the_linear_relaxation() -> None:
    question = serving_instance(6, 4, seed=3)
    cost = solve_serving(question, EXACT).usd_per_hour
    proof = prove(question, cost, gap=0.0, limit_s=0.0)
    assert 0.5 * cost < proof.bound_usd_per_hour <= cost + 1e-6
