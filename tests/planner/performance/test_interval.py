"""How far a job lies outside of what was measured."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from planner.performance.constants import Constants, load_constants
from planner.performance.interval import distances, log_spread
from planner.performance.work import Work

PRE_TRAINING, TUNING = "measured.transformer.eager.size", "measured.tuning.eager.size"
BOTH = {
    f"{PRE_TRAINING}.low": 1e8,
    f"{PRE_TRAINING}.high": 4e8,
    f"{TUNING}.low": 3.2e9,
    f"{TUNING}.high": 4e9,
}


def _size_distance(params: float, tuned: bool, values: dict[str, float]) -> float:
    work = Work(**{one.name: np.zeros(1) for one in fields(Work)})
    work = replace(work, params=np.asarray([params]), tuned=np.asarray([float(tuned)]))
    return float(distances("transformer", "eager", work, np.asarray([8.0]), Constants(values))["size"][0])


@pytest.mark.parametrize(
    ("params", "doublings"),
    [(5e7, 1.0), (1e8, 0.0), (4e8, 0.0), (8e8, 1.0), (1.6e9, 1.0), (3.2e9, 0.0), (4e9, 0.0), (16e9, 2.0)],
)
def test_fine_tuning_between_two_measured_ranges_is_outside_of_both(params: float, doublings: float) -> None:
    """In the gap the nearer range counts; beyond both ends the nearer one too."""
    assert _size_distance(params, True, BOTH) == pytest.approx(doublings)


def test_pre_training_is_compared_with_pre_training_alone() -> None:
    assert _size_distance(4e9, False, BOTH) == pytest.approx(np.log2(10))
    assert _size_distance(4e9, True, {}) == 0.0  # nothing is known
    only = {name: value for name, value in BOTH.items() if name.startswith(TUNING)}
    assert _size_distance(1.6e9, True, only) == pytest.approx(1.0)
    assert _size_distance(1.6e9, False, only) == 0.0


def test_a_class_left_open_adds_what_its_default_moves_rows_of_the_family() -> None:
    constants = load_constants()
    work = Work(**{one.name: np.zeros(1) for one in fields(Work)})
    for kind, name in (("transformer", "interval.open.stack"), ("cnn", "interval.cnn.open.stack")):
        stated, left_open = (
            log_spread(kind, "compiled", work, np.zeros(1), np.ones(1), constants, choices)[0]
            for choices in ((), ("stack",))
        )
        assert left_open == pytest.approx(np.hypot(stated, constants[name]))
