"""Rounded limits hold for every whole point of a model, and cut the point off that they were made for."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from solvers.backends.registry import get_backend
from solvers.problem.milp import Milp, MilpBuilder, with_rows
from solvers.search.rounding import Limit, _rounded, largest_sum, rounding_rows


def limits(seed: int) -> Milp:
    """Values wanted within two limits on whole columns; the first is opened by a switch."""
    random = np.random.default_rng(seed)
    builder = MilpBuilder("limits")
    x = builder.add_columns(
        "x", list("abcdef"), cost=-random.uniform(1, 9, 6), upper=random.integers(1, 4, 6), integer=True
    )
    y = builder.add_columns("y", ["y"], cost=random.uniform(0, 9), upper=1.0, integer=True)
    rows = builder.add_rows("limit", 2, upper=[0.0, float(random.integers(5, 25))])
    amounts = random.integers(1, 13, 6).astype(np.float64)
    columns = np.arange(x.start, x.stop)
    builder.add_entries(rows.start, columns[:4], amounts[:4])
    builder.add_entries(rows.start, y.start, -float(random.integers(5, 25)))
    builder.add_entries(rows.start + 1, columns[2:], amounts[2:])
    return builder.build()


def whole_points(problem: Milp) -> np.ndarray:
    """Every whole point of a model without continuous columns, shape `(n, n_columns)`."""
    ranges = [range(int(most) + 1) for most in problem.ub]
    points = np.array(list(itertools.product(*ranges)), dtype=np.float64)
    activity = np.array([problem.activity(point) for point in points])
    return points[(activity <= problem.row_hi + 1e-9).all(axis=1)]


def test_a_limit_is_the_largest_sum_of_whole_columns() -> None:
    random = np.random.default_rng(1)
    for _ in range(200):
        amounts, most = random.integers(1, 40, 4), random.integers(0, 4, 4).astype(np.float64)
        limit = int(random.integers(0, 150))
        counts = itertools.product(*(range(int(value) + 1) for value in most))
        sums = [int(np.array(count) @ amounts) for count in counts]
        assert largest_sum(amounts, most, limit) == max(value for value in sums if value <= limit)


def test_rows_hold_for_all_whole_points_and_cut_the_relaxation_off() -> None:
    cut = 0
    for seed in range(60):
        problem = limits(seed)
        points, backend = whole_points(problem), get_backend("scipy")
        for _ in range(6):
            relaxation = backend.relax(problem, 10.0)
            assert relaxation.x is not None
            coefficients, lower = rounding_rows(problem, relaxation.x)
            if not len(lower):
                break
            cut += len(lower)
            assert (points @ coefficients.T >= lower - 1e-9).all(), seed
            assert (coefficients @ relaxation.x < lower - 1e-5).all(), seed
            problem = with_rows(problem, coefficients, lower, "rounded")
        assert relaxation.objective <= (points @ problem.c).min() + 1e-9, seed
    assert cut > 60


def test_weights_are_never_above_what_follows_in_exact_arithmetic() -> None:
    """An exact proof takes them at their binary value; beside a large whole part a sum of floats rounds up."""
    random = np.random.default_rng(5)
    for _ in range(300):
        amounts = random.integers(1, 10**6, 5)
        most = int(random.integers(1, 10**6))
        rows = _rounded(Limit(np.arange(5), amounts, most, -1), most)
        exact = {}
        for divisor in set(amounts.tolist()):
            left = most % divisor
            exact[divisor] = [
                a // divisor + Fraction(max(a % divisor - left, 0), divisor - left) for a in amounts.tolist()
            ]
        wanted = [exact[divisor] for divisor in sorted(exact) if any(exact[divisor])]
        for (weights, _), weight in zip(rows, wanted, strict=True):
            assert all(Fraction(w) <= e for w, e in zip(weights.tolist(), weight, strict=True))
            assert weights == pytest.approx(np.array(weight, dtype=np.float64), rel=1e-11)


@pytest.mark.parametrize(
    "changes",
    [
        {"integrality": np.array([True, True, True, False, True, True, True])},
        {"lb": np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0])},
        {"row_hi": np.array([0.5, 10.5])},
    ],
)
def test_rows_of_another_form_are_left_alone(changes: dict[str, np.ndarray]) -> None:
    """A column that is not whole or begins above 0 is in both rows; limits that are not whole give nothing."""
    problem = limits(3)
    for name in ("integrality", "lb"):
        if name in changes:
            changes[name] = np.array(changes[name])
    problem = replace(problem, **changes)  # type: ignore[arg-type]
    point = np.array([0.5, 0.5, 1.5, 1.5, 0.5, 0.5, 0.4])
    coefficients, lower = rounding_rows(problem, point)
    assert coefficients.shape == (0, problem.n_columns)
    assert not len(lower)
