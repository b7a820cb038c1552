"""The linear fit that screens changes of the performance model."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.accelerators import load_devices
from benchmarks.fit_performance import free_constants
from benchmarks.linear_fit import Slopes, fitted, slopes
from benchmarks.measured import load_cases
from benchmarks.points import load_rows
from benchmarks.predict import build_groups, settle, throughput
from planner.performance.constants import DIRECTORY, Constants, load_constants


def line_of(slope: np.ndarray, high: float = 3.0) -> Slopes:
    """A model whose fitted constants are all 1 so far, with wide bounds but for the first one's upper."""
    number = slope.shape[1]
    return Slopes(
        np.zeros(number), np.full(number, -3.0), np.asarray([high] + [3.0] * (number - 1)), np.zeros(number),
        np.zeros(slope.shape[0]), slope,
    )  # fmt: skip


def test_the_line_is_the_model_near_the_bundled_constants() -> None:
    rows = [row for row in load_rows(None) if row["source"].startswith("BigScience")][:5]
    constants = load_constants()
    cases, _ = settle(load_cases(rows, load_devices())[0], constants)
    line = slopes(cases, constants)
    by = np.random.default_rng(1).uniform(-0.01, 0.01, len(line.at))
    at = np.clip(line.at + by, line.low, line.high)
    names = [f.name for f in free_constants(DIRECTORY, True)]
    moved = Constants({k: v for k, v in constants.values.items() if not k.startswith("multiplier.")})
    model = throughput(
        build_groups(cases), len(cases), moved.replace(dict(zip(names, np.exp(at), strict=True)))
    )
    changed = line.slope @ (at - line.at)
    assert np.abs(changed).min() > 1e-4
    assert np.log(model) - line.value == pytest.approx(changed, abs=1e-4)


def test_finds_the_constants_that_made_the_rows() -> None:
    slope = np.random.default_rng(1).normal(size=(4000, 2))
    found = fitted(line_of(slope), slope @ np.asarray([0.4, -0.3]), np.ones(4000))
    assert found == pytest.approx([0.4, -0.3], abs=0.01)


def test_stops_at_a_bound_and_fits_the_others_there() -> None:
    # Both constants move rows alike where both act: with the first held at 0.1, the second makes up for it in part.
    slope = np.random.default_rng(2).normal(size=(4000, 2))
    slope[:, 1] += slope[:, 0]
    measured = slope @ np.asarray([0.4, 0.2])
    held = fitted(line_of(slope, high=0.1), measured, np.ones(4000))
    assert held[0] == pytest.approx(0.1)
    assert 0.25 < held[1] < 0.5


def test_few_wild_rows_hardly_move_the_constants() -> None:
    slope = np.ones((1000, 1))
    measured = np.full(1000, 0.2)
    measured[:30] = 2.0
    found = fitted(line_of(slope), measured, np.ones(1000))
    assert 0.2 < found[0] < 0.23
