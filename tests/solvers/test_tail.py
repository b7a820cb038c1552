"""The tail of scenarios in a model: against every choice, and what passes through it."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from solvers.backends.base import feasible_start
from solvers.execution.solve import solve
from solvers.problem.milp import MilpBuilder
from solvers.problem.options import SolveOptions
from solvers.problem.tail import tail_point, with_tail


def _worst(usd: np.ndarray, level: float) -> float:
    """Mean of the worst `1 - level`, by its definition: the least over eta of Rockafellar and Uryasev's function."""
    return min(float(eta + np.maximum(usd - eta, 0.0).mean() / (1.0 - level)) for eta in usd.tolist())


@pytest.mark.parametrize("seed", range(25))
def test_the_choice_is_the_best_of_all(seed: int) -> None:
    draw = np.random.default_rng([seed, 5])
    sizes = draw.integers(1, 5, int(draw.integers(1, 5)))
    group = np.repeat(np.arange(len(sizes)), sizes)
    cost = draw.uniform(1.0, 10.0, len(group))
    deviation = draw.normal(
        0.0, draw.uniform(0.5, 6.0, (len(group), 1)), (len(group), int(draw.integers(2, 30)))
    )
    deviation -= deviation.mean(axis=1, keepdims=True)
    weight, level = float(draw.uniform(0.0, 1.0)), float(draw.choice([0.0, 0.5, 0.9, 0.97]))
    builder = MilpBuilder("choices")
    builder.add_columns("x", range(len(group)), cost=cost, upper=1.0, integer=True)
    rows = builder.add_rows("choice", len(sizes), lower=1.0, upper=1.0)
    builder.add_entries(rows.start + group, np.arange(len(group)), 1.0)
    model = with_tail(builder.build(), np.arange(len(group)), deviation, weight, level)
    found = solve(model, SolveOptions(gap=1e-9, backend="scipy", isolate=False))

    def objective(choice: tuple[int, ...]) -> float:
        at = list(choice)
        usd = float(cost[at].sum()) + deviation[at].sum(axis=0)
        return (1.0 - weight) * float(usd.mean()) + weight * _worst(usd, level)

    choices = product(*(np.flatnonzero(group == job).tolist() for job in range(len(sizes))))
    least = min(objective(choice) for choice in choices)
    picked = tuple(sorted(key for key, value in found.x.items() if isinstance(key, int) and value > 0.5))
    assert math.isclose(objective(picked), least, rel_tol=1e-7)
    assert found.bound <= least * (1 + 1e-7)


@pytest.mark.parametrize("level", [0.0, 0.3, 0.5, 0.9, 0.95, 0.999])
def test_a_known_choice_is_a_point_of_the_model_and_counts_what_it_counts(level: float) -> None:
    draw = np.random.default_rng(7)
    cost, deviation = draw.uniform(1.0, 10.0, 3), draw.normal(0.0, 3.0, (3, 20))
    deviation -= deviation.mean(axis=1, keepdims=True)
    builder = MilpBuilder("choices")
    builder.add_columns("x", range(3), cost=cost, upper=1.0, integer=True)
    rows = builder.add_rows("choice", 1, lower=1.0, upper=2.0)
    builder.add_entries(np.full(3, rows.start), np.arange(3), 1.0)
    model = with_tail(builder.build(), np.arange(3), deviation, 0.5, level)
    total = deviation[[0, 2]].sum(axis=0)
    point = feasible_start(model, {0: 1.0, 2: 1.0, **tail_point(total, level)})
    assert point is not None
    assert math.isclose(model.c @ point, cost[0] + cost[2] + 0.5 * _worst(total, level), rel_tol=1e-9)
