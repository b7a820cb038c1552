"""Pipelines against exhaustive enumeration, and the laws of their optimum."""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.pipelines.branch import TIME_TOLERANCE
from planner.pipelines.local_search import local_choice
from planner.pipelines.model import build_pipeline
from planner.pipelines.question import PipelineInput, follow, reduce
from planner.pipelines.solve import (
    PipelineResult,
    least_hours,
    point_of,
    solve_pipeline,
)
from planner.pipelines.tree import solve_tree
from solvers.problem.errors import ModelError
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from tests.draws import draws, share_of
from tests.lp_text import lp_text

EXACT = SolveOptions(gap=0.0)
PER_SEED = share_of(10)
METHODS: tuple[Literal["auto", "milp"], ...] = ("auto", "milp")
CLOSE = 1e-7
GOLDEN = Path(__file__).parents[2] / "fixtures" / "lp" / "pipeline"


def small(seed: int) -> PipelineInput:
    """A random pipeline of up to 4 tasks: graphs and trees, with and without a deadline, places shared or not."""
    draw = np.random.default_rng(seed)
    n_tasks, n_groups, n_places = int(draw.integers(1, 5)), int(draw.integers(1, 4)), int(draw.integers(1, 6))
    group = np.r_[
        np.arange(min(n_groups, n_places)),
        draw.integers(0, min(n_groups, n_places), max(n_places - n_groups, 0)),
    ]
    counts = draw.integers(1, 5, n_tasks)
    task = np.repeat(np.arange(n_tasks), counts)
    edges = [(u, v) for v in range(n_tasks) for u in range(v) if draw.random() < 0.6]
    n_groups = int(group.max()) + 1
    usd = draw.integers(0, 30, (len(edges), n_groups, n_groups)).astype(np.float64)
    hours = draw.integers(0, 4, usd.shape).astype(np.float64)
    source, target = (np.asarray([edge[k] for edge in edges], dtype=np.int64) for k in (0, 1))
    deadline = math.inf if draw.random() < 0.4 else float(draw.integers(2, 20))
    return PipelineInput(
        tuple(f"t{k}" for k in range(n_tasks)), tuple(f"c{k}" for k in range(len(task))), task,
        draw.integers(0, n_places, len(task)), draw.integers(1, 60, len(task)).astype(np.float64),
        draw.integers(1, 8, len(task)).astype(np.float64), group, source, target, usd, hours, deadline,
    )  # fmt: skip


def every_choice(pipe: PipelineInput) -> list[tuple[float, float]]:
    """(cost, latest end) of every choice there is."""
    options = [np.flatnonzero(pipe.task == task).tolist() for task in range(pipe.n_tasks)]
    courses = [follow(pipe, np.asarray(choice)) for choice in itertools.product(*options)]
    return [(course.cost_usd, float(course.end_hours.max())) for course in courses]


def least_cost(pipe: PipelineInput) -> float:
    return min((cost for cost, end in every_choice(pipe) if end <= pipe.deadline_hours), default=math.inf)


def cost_of(result: PipelineResult) -> float:
    return math.inf if result.course is None else result.course.cost_usd


def check_pipeline(seed: int) -> None:
    """Every method equals enumeration, and a local choice is never cheaper."""
    pipe = small(seed)
    best = least_cost(pipe)
    for method in METHODS:
        result = solve_pipeline(pipe, EXACT, method=method)
        assert cost_of(result) == pytest.approx(best, rel=CLOSE), (seed, method)
        assert result.bound_usd <= cost_of(result) or math.isinf(best)
        if result.course is not None:
            assert result.course.end_hours.max() <= pipe.deadline_hours * (1 + TIME_TOLERANCE)
        else:
            assert result.status is Status.INFEASIBLE
    chosen = local_choice(reduce(pipe)[0]) if math.isfinite(best) else None
    if chosen is not None:
        assert follow(reduce(pipe)[0], chosen).cost_usd >= best - CLOSE


def check_least_hours(seed: int) -> None:
    """The least time is the least of all choices."""
    pipe = small(seed)
    hours, bound = least_hours(pipe, EXACT)
    assert hours == pytest.approx(min(end for _, end in every_choice(pipe)))
    assert bound <= hours


@pytest.mark.parametrize("block", range(24))
def test_every_method_equals_enumeration(block: int) -> None:
    for seed in range(PER_SEED * block, PER_SEED * (block + 1)):
        check_pipeline(seed)


def test_the_least_time_is_the_least_of_all_choices() -> None:
    for seed in range(30):
        check_least_hours(seed)


@given(st.integers(0, 5000))
@draws(60)
def test_a_choice_is_a_point_of_the_model_with_its_cost(seed: int) -> None:
    pipe, _ = reduce(small(seed))
    chosen = local_choice(pipe) if len(np.unique(pipe.task)) == pipe.n_tasks else None
    if chosen is None:
        return
    model = build_pipeline(pipe)
    x = model.vector(point_of(pipe, chosen))
    row = model.activity(x)
    assert (row >= model.row_lo - 1e-9).all() and (row <= model.row_hi + 1e-9).all()
    assert float(model.c @ x) == pytest.approx(follow(pipe, chosen).cost_usd)


@given(st.integers(0, 5000), st.sampled_from([1e-3, 1e3, 1e-6]), st.data())
@draws(40)
def test_laws(seed: int, scale: float, data: st.DataObject) -> None:
    pipe = small(seed)
    result = solve_pipeline(pipe, EXACT)
    best = cost_of(result)
    scaled = replace(pipe, cost_usd=pipe.cost_usd * scale, move_usd=pipe.move_usd * scale)
    assert cost_of(solve_pipeline(scaled, EXACT, method="milp")) == pytest.approx(best * scale, rel=1e-6)
    later = replace(pipe, deadline_hours=pipe.deadline_hours + data.draw(st.integers(0, 5)))
    assert solve_pipeline(later, EXACT).bound_usd <= best + CLOSE * max(abs(best), 1.0) or math.isinf(best)
    shuffled = pipe.take(np.asarray(data.draw(st.permutations(range(len(pipe.keys)))), dtype=np.int64))
    assert cost_of(solve_pipeline(shuffled, EXACT, method="milp")) == pytest.approx(best, rel=CLOSE)


def test_trees_are_answered_without_a_solver_and_other_graphs_are_not() -> None:
    chain = replace(small(0), tasks=("a", "b"), keys=("x", "y"), task=np.array([0, 1]), place=np.array([0, 0]),
                    cost_usd=np.ones(2), hours=np.ones(2), group=np.array([0]), source=np.array([0]),
                    target=np.array([1]), move_usd=np.ones((1, 1, 1)), move_hours=np.ones((1, 1, 1)),
                    deadline_hours=2.0)  # fmt: skip
    assert solve_tree(chain) is not None and solve_pipeline(chain).method == "dynamic programming"
    late = solve_tree(replace(chain, deadline_hours=1.5))
    assert late is not None and not len(late)
    twice = replace(chain, source=np.array([0, 0]), target=np.array([1, 1]), move_usd=np.ones((2, 1, 1)),
                    move_hours=np.ones((2, 1, 1)))  # fmt: skip
    assert solve_tree(twice) is None


def test_a_circle_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match="depends on itself"):
        replace(
            small(0), tasks=("a", "b"), keys=("x", "y"), task=np.array([0, 1]), place=np.array([0, 0]),
            cost_usd=np.ones(2), hours=np.ones(2), group=np.array([0]), source=np.array([0, 1]),
            target=np.array([1, 0]), move_usd=np.ones((2, 1, 1)), move_hours=np.ones((2, 1, 1)),
        )  # fmt: skip


def test_golden() -> None:
    """Three tasks, two of them at a shared place, with a deadline, as LP text, also where one way to train ends;
    and two where a detour would pay.

    `UPDATE_GOLDENS=1` rewrites them.
    """
    pipe = PipelineInput(
        ("prepare", "train", "evaluate"), ("p0", "p1", "t0", "t1", "e0"), np.array([0, 0, 1, 1, 2]),
        np.array([0, 1, 0, 2, 1]), np.array([4.0, 3.0, 50.0, 40.0, 2.0]), np.array([1.0, 2.0, 10.0, 14.0, 1.0]),
        np.array([0, 0, 1]), np.array([0, 1]), np.array([1, 2]),
        np.array([[[2.0, 9.0], [9.0, 2.0]], [[0.5, 1.0], [1.0, 0.5]]]),
        np.array([[[0.5, 1.0], [1.0, 0.5]], [[0.25, 0.5], [0.5, 0.25]]]), 20.0,
    )  # fmt: skip
    detour = PipelineInput(
        ("prepare", "train"), ("p0", "p1", "t1", "t2"), np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2]),
        np.array([4.0, 3.0, 50.0, 40.0]), np.array([1.0, 2.0, 10.0, 14.0]), np.arange(3), np.array([0]), np.array([1]),
        np.array([[[0.0, 2.0, 9.0], [2.0, 0.0, 2.0], [9.0, 2.0, 0.0]]]), np.ones((1, 3, 3)),
    )  # fmt: skip
    for name, text in (
        ("cost", lp_text(build_pipeline(pipe))),
        ("time", lp_text(build_pipeline(pipe, objective="time"))),
        ("detour", lp_text(build_pipeline(detour))),
        (
            "start_by",
            lp_text(build_pipeline(replace(pipe, start_by=np.array([np.inf, np.inf, 3.0, np.inf, np.inf])))),
        ),
    ):
        path = GOLDEN / f"{name}.lp"
        if os.environ.get("UPDATE_GOLDENS"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")


def test_a_deadline_met_exactly_is_met_however_short_a_task_is() -> None:
    """Windows are differences of long times: their rounding is measured by the deadline, not by the window."""
    hours = np.array([1e-4, *(0.1 + 100 / 3 * k for k in range(1, 6))])
    count = len(hours)
    chain = PipelineInput(
        tuple(f"t{k}" for k in range(count)), tuple(f"c{k}" for k in range(count)), np.arange(count),
        np.zeros(count, dtype=np.int64), np.ones(count), hours, np.zeros(1, dtype=np.int64), np.arange(count - 1),
        np.arange(1, count), np.zeros((count - 1, 1, 1)), np.zeros((count - 1, 1, 1)),
    )  # fmt: skip
    for turned in (chain, replace(chain, hours=hours[::-1].copy())):
        end = float(follow(turned, np.arange(count)).end_hours.max())
        for method in METHODS:
            result = solve_pipeline(replace(turned, deadline_hours=end), EXACT, method=method)
            assert cost_of(result) == count, method
