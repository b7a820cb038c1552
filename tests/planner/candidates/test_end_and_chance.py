"""The end of a plan with spot and the chance that it is in time say the same."""

from __future__ import annotations

import numpy as np
import pytest

from planner.candidates.plan_parts.launch import _ends
from planner.workloads.answer import optimize
from tests.planner.real_catalog import OPTIONS
from tests.planner.spine_catalogs import loaded

PRETRAINING = {
    "version": 1,
    "name": "t",
    "model": {"preset": "llama-3-8b"},
    "training": {"tokens": 15e12, "global_batch": 2048, "sequence_length": 8192},
    "data": {"tokens": 15e12, "location": "aws/us-east-1"},
    "constraints": {"deadline": "820d", "budget_usd": 2_600_000},
}


@pytest.mark.catalog("whole")
def test_nine_ends_in_ten_are_before_a_deadline_that_is_met_more_often() -> None:
    launch = optimize(loaded(PRETRAINING), OPTIONS).plan.launch
    assert launch is not None and launch.p_meet_deadline is not None
    assert launch.p_meet_deadline > 0.9
    assert launch.p90_hours <= 820 * 24.0


@pytest.mark.parametrize(
    ("high", "meet", "deadline", "expected"),
    [(12.0, 0.92, 10.0, 10.0), (8.0, 0.92, 10.0, 8.0), (8.0, 0.7, 10.0, 10.0), (12.0, 0.7, 10.0, 12.0)],
)
def test_p90_lies_on_the_side_that_the_chance_says(
    high: float, meet: float, deadline: float, expected: float
) -> None:
    outcomes = np.asarray([2.0, high])
    assert _ends(outcomes, 5.0, meet, deadline) == (2.0, expected)
    assert _ends(outcomes, 5.0, None, None) == (2.0, high)
