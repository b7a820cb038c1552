"""Data never takes a way over a third group: not where that is cheaper, nor where it is only sooner, nor among ties."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from catalogs.tables.table import Floats
from planner.pipelines import model
from planner.pipelines.model import build_pipeline
from planner.pipelines.question import PipelineInput
from planner.pipelines.solve import least_hours, solve_pipeline
from solvers.execution.solve import solve
from solvers.problem.options import SolveOptions
from tests.draws import share_of
from tests.planner.pipelines.test_marginals import cheapest_with
from tests.planner.pipelines.test_model import CLOSE, EXACT, every_choice

KINDS = ("cheaper", "sooner", "neither", "free", "ties")
PER_KIND = share_of(40)


def direct(table: Floats) -> Floats:
    """The same tables where no way over third groups is shorter than the direct one."""
    for over in range(table.shape[1]):
        table = np.minimum(table, table[:, :, over : over + 1] + table[:, over : over + 1, :])
    return table


def drawn(kind: str, seed: int) -> PipelineInput:
    """Up to 4 tasks at up to 7 places in up to 4 groups, with a deadline that some choice just meets, or none."""
    draw = np.random.default_rng((KINDS.index(kind), seed))
    n_tasks, n_groups = int(draw.integers(2, 5)), int(draw.integers(2, 5))
    group = np.r_[np.arange(n_groups), draw.integers(0, n_groups, int(draw.integers(0, 4)))]
    task = np.repeat(np.arange(n_tasks), draw.integers(1, 5, n_tasks))
    edges = [(u, v) for v in range(n_tasks) for u in range(v) if draw.random() < 0.7]
    shape = (len(edges), n_groups, n_groups)
    usd, hours = (draw.integers(0, most, shape).astype(np.float64) for most in (30, 4))
    if kind in ("sooner", "neither"):
        usd = direct(usd)
    if kind in ("cheaper", "neither"):
        hours = direct(hours)
    if kind == "free":
        usd[:] = 0.0
    if kind == "ties":
        usd, hours = 5.0 * (usd > 14), 1.0 * (hours > 1)
    source, target = (np.asarray([edge[k] for edge in edges], dtype=np.int64) for k in (0, 1))
    pipe = PipelineInput(
        tuple(f"t{k}" for k in range(n_tasks)), tuple(f"c{k}" for k in range(len(task))), task,
        draw.integers(0, len(group), len(task)),
        draw.integers(1, 8 if kind == "ties" else 60, len(task)).astype(np.float64),
        draw.integers(1, 5, len(task)).astype(np.float64), group, source, target, usd, hours,
    )  # fmt: skip
    ends = [end for _, end in every_choice(pipe)]
    return replace(pipe, deadline_hours=float(draw.choice([*np.quantile(ends, (0.0, 0.1, 0.4)), math.inf])))


@pytest.mark.parametrize("kind", KINDS)
def test_whole_models_and_branching_equal_enumeration(kind: str) -> None:
    some = False
    for seed in range(PER_KIND):
        pipe = drawn(kind, seed)
        some |= any(model._detours(pipe, edge) for edge in range(len(pipe.source)))
        options = replace(EXACT, backend=("highspy", "scipy")[seed % 2])
        best = float(cheapest_with(pipe).min())
        for whole_below in (1_000, 0):
            result = solve_pipeline(pipe, options, method="milp", whole_below=whole_below)
            found = math.inf if result.course is None else result.course.cost_usd
            assert found == pytest.approx(best, rel=CLOSE), (seed, whole_below)
            assert result.bound_usd <= best * (1 + CLOSE) or math.isinf(best)
    assert some == (kind != "neither")


@pytest.mark.parametrize("kind", ["sooner", "cheaper"])
def test_the_least_time_takes_no_detour(kind: str) -> None:
    for seed in range(PER_KIND):
        pipe = drawn(kind, seed)
        hours, bound = least_hours(pipe, SolveOptions(gap=0.0))
        assert hours == pytest.approx(min(end for _, end in every_choice(pipe)))
        assert bound <= hours


@pytest.mark.parametrize("objective", ["cost", "time"])
def test_the_rows_of_presence_forbid_what_would_pay(
    objective: Literal["cost", "time"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a to c is 9, over b 2; running at b is dear and slow."""
    each, between, nothing = np.array([1.0, 60.0, 60.0, 1.0]), np.full((1, 3, 3), 9.0), np.zeros((1, 3, 3))
    between[0, 0, 1] = between[0, 1, 2] = 1.0
    usd, hours = (between, nothing) if objective == "cost" else (nothing, between)
    pipe = PipelineInput(
        ("u", "v"), tuple("abcd"), np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2]), each, each, np.arange(3),
        np.array([0]), np.array([1]), usd, hours, 200.0,
    )  # fmt: skip
    assert solve(build_pipeline(pipe, objective=objective)).objective == pytest.approx(11.0)
    monkeypatch.setattr(model, "_detours", lambda _pipe, _edge: False)
    assert solve(build_pipeline(pipe, objective=objective)).objective == pytest.approx(4.0)
