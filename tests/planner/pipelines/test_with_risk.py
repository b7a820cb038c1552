"""Pipelines by their worst outcomes too, against exhaustive enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from planner.pipelines import robust
from planner.pipelines.question import PipelineInput, follow
from planner.plan.robust import Terms
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from tests.draws import share_of
from tests.planner.pipelines.test_model import small

PER_SEED = share_of(12)
SCENARIOS = 8


def _least(pipe: PipelineInput, deviation: np.ndarray, terms: Terms) -> float:
    """What the best choice in time counts; infinity without one."""
    best = np.inf
    for one in itertools.product(*(np.flatnonzero(pipe.task == task) for task in range(pipe.n_tasks))):
        chosen = np.asarray(one)
        course = follow(pipe, chosen)
        if course.end_hours.max() <= pipe.deadline_hours:
            outcomes = course.cost_usd + deviation[chosen].sum(axis=0)
            worst = float(np.sort(outcomes)[-round(SCENARIOS * (1 - terms.level)) :].mean())
            best = min(best, (1 - terms.weight) * float(outcomes.mean()) + terms.weight * worst)
    return float(best)


@pytest.mark.parametrize("block", range(8))
def test_the_choice_with_risk_is_the_best_of_all(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(PER_SEED * block, PER_SEED * (block + 1)):
        pipe, draw = small(seed), np.random.default_rng(seed)
        deviation = draw.integers(-20, 20, (len(pipe.keys), SCENARIOS)) * draw.integers(
            0, 2, (len(pipe.keys), 1)
        )
        deviation = deviation - deviation.mean(axis=1)[:, None]
        rows: dict[object, np.ndarray] = dict(zip(pipe.keys, deviation, strict=True))

        def drawn(
            keys: Sequence[object], _costs: object, rows: dict[object, np.ndarray] = rows
        ) -> np.ndarray:
            return np.asarray([rows[key] for key in keys])

        monkeypatch.setattr(robust, "_deviations", drawn)
        terms = Terms(0.75, float(draw.choice([0.3, 0.7, 1.0])), SCENARIOS, seed=1)
        found = robust._Run(pipe, terms).solve_part(pipe, SolveOptions(gap=0.0))
        best = _least(pipe, deviation, terms)
        if np.isinf(best):
            assert found.status is Status.INFEASIBLE, seed
            continue
        assert found.course is not None
        assert found.course.cost_usd == pytest.approx(best, rel=1e-6), seed
        assert found.bound_usd <= best * (1 + 1e-6), seed
