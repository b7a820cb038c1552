"""What is dropped beside a known plan is in no plan as cheap, by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from planner.pipelines.question import PipelineInput, affordable, follow
from tests.draws import share_of
from tests.planner.pipelines.test_model import small

PER_SEED = share_of(10)


def _in_time(pipe: PipelineInput) -> list[tuple[float, tuple[int, ...]]]:
    """(cost, candidates) of every choice that meets the deadline."""
    options = [np.flatnonzero(pipe.task == task).tolist() for task in range(pipe.n_tasks)]
    courses = [(follow(pipe, np.asarray(one)), one) for one in itertools.product(*options)]
    return [
        (course.cost_usd, one) for course, one in courses if course.end_hours.max() <= pipe.deadline_hours
    ]


@pytest.mark.parametrize("block", range(8))
def test_no_choice_as_cheap_has_a_candidate_that_is_dropped(block: int) -> None:
    dropped = 0
    for seed in range(PER_SEED * block, PER_SEED * (block + 1)):
        pipe = small(seed)
        choices = sorted(_in_time(pipe))
        for most, _ in choices[:: max(1, len(choices) // 5)]:
            kept = affordable(pipe, most)
            assert all(kept[list(one)].all() for cost, one in choices if cost <= most), (seed, most)
            dropped += int((~kept).sum())
    assert dropped > 0


def test_windows_and_costs_are_looked_at_in_turn() -> None:
    """The dear quick candidate of the first task falls out, so the slow one of the second is too late."""
    pipe = PipelineInput(
        ("a", "b"), ("quick", "slow", "short", "long"), np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64),
        np.array([100.0, 10.0, 30.0, 20.0]), np.array([1.0, 5.0, 2.0, 6.0]), np.zeros(1, dtype=np.int64),
        np.array([0]), np.array([1]), np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), 8.0,
    )  # fmt: skip
    assert affordable(pipe, 40.0).tolist() == [False, True, True, False]
    assert affordable(pipe, 130.0).tolist() == [True, True, True, True]
