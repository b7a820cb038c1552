"""Where the time ends within the first look, what buying nothing costs is known all the same, without a bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.commitments.recourse import Recourse
from planner.commitments.solve import solve_commit
from tests.draws import share_of
from tests.planner.commitments.commit_cases import random_model


@pytest.mark.parametrize("seed", range(share_of(40)))
def test_a_first_look_that_comes_too_late_tells_the_cost_alone(seed: int) -> None:
    model = random_model(seed, later=bool(seed % 2))
    nothing = np.zeros(len(model.columns))
    whole = Recourse(model).evaluate(nothing)
    late = Recourse(model, deadline=-math.inf).evaluate(nothing)
    assert late.value == pytest.approx(whole.value)
    draw = np.random.default_rng(seed)
    for _ in range(5):  # what is said of other purchases stays below what they cost
        x = draw.uniform(0, 1, len(nothing)) * [column.upper for column in model.columns]
        assert (late.intercept + late.slope @ x <= Recourse(model).evaluate(x).value + 1e-9).all()


@pytest.mark.parametrize("seed", range(5))
def test_an_answer_without_time_is_to_buy_nothing(seed: int) -> None:
    model = random_model(seed, plans=1)
    found = solve_commit(model, time_limit_s=0.0, method="benders")
    settled = solve_commit(model, gap=1e-6, method="benders")
    assert not found.x.any() and found.reason == "time_limit"
    assert found.bound_usd <= settled.objective_usd * (1 + 1e-6) <= found.objective_usd * (1 + 2e-6)
