"""Tasks of a pipeline on commitments that end: what they pay after the end follows from their start."""

from __future__ import annotations

import itertools
import json
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.asked.options import Options
from planner.inputs.pipeline_load import load_pipeline
from planner.judge.document import MalformedError
from planner.judge.judge import judge_pipeline
from planner.judge.memory import Memory
from planner.pipelines.answer import PipelineAnswer, plan_pipeline
from planner.pipelines.question import PipelineInput, follow
from planner.pipelines.report import pipeline_report
from planner.pipelines.solve import solve_pipeline
from planner.render import render_answer
from solvers.problem.options import SolveOptions
from solvers.problem.solution import Status
from tests.draws import draws
from tests.planner.spine_catalogs import NOW, V100, Offer, make_catalog, work

CATALOG = make_catalog([Offer(V100, "us-east-1", "3.06"), Offer(V100, "eu-west-1", "3.30")])
OWNED = {
    "provider": "aws", "region": "us-east-1", "instance_type": "p3.2xlarge", "purchase_option": "reserved_1y",
    "nodes": 4,
}  # fmt: skip


def planned(
    folder: Path, before: tuple[float, ...], ends_hours: float | None, *, deadline: str = ""
) -> tuple[PipelineAnswer, Any]:
    """A task that takes one of some hours, the faster the dearer, then a training; the plan, and its verdict."""
    owned = (
        OWNED if ends_hours is None else OWNED | {"expires": (NOW + timedelta(hours=ends_hours)).isoformat()}
    )
    job = work(constraints={"max_nodes": 4}) | {"commitments": [owned]}
    (folder / "training.yaml").write_text(json.dumps(job), encoding="utf-8")
    candidates = [
        {"provider": "aws", "region": "us-east-1", "instance_type": f"c{at}", "nodes": 1, "hours": hours,
         "cost_usd": 10 - at}
        for at, hours in enumerate(sorted(before))
    ]  # fmt: skip
    tasks = [
        {"name": "prepare", "candidates": candidates},
        {"name": "train", "workload": "training.yaml", "reads": [{"task": "prepare", "size": "20GB"}]},
    ]
    return _planned(folder, tasks, deadline)


def planned_twice(
    folder: Path, own: dict[str, Any], ends_hours: float, *, deadline: str = "", **keys: Any
) -> tuple[PipelineAnswer, Any]:
    """A training whose ways the planner sizes, then one on a commitment; the plan, and its verdict."""
    jobs = {
        "first": work(constraints={"max_nodes": 4}),
        "second": work(constraints={"max_nodes": 4} | own)
        | {"commitments": [OWNED | {"expires": (NOW + timedelta(hours=ends_hours)).isoformat()}]},
    }
    for name, job in jobs.items():
        (folder / f"{name}.yaml").write_text(json.dumps(job), encoding="utf-8")
    tasks = [
        {"name": "first", "workload": "first.yaml"},
        {"name": "second", "workload": "second.yaml", "reads": [{"task": "first", "size": "20GB"}]},
    ]
    return _planned(folder, tasks, deadline, **keys)


def _planned(
    folder: Path, tasks: list[dict[str, Any]], deadline: str, **keys: Any
) -> tuple[PipelineAnswer, Any]:
    file = {"version": 1, "kind": "pipeline", "name": "own", "start": NOW.isoformat(), "tasks": tasks, **keys}
    if deadline:
        file["deadline"] = deadline
    (folder / "pipeline.yaml").write_text(json.dumps(file), encoding="utf-8")
    pipeline = load_pipeline(folder / "pipeline.yaml")
    answer = plan_pipeline(pipeline, Options(now=NOW), catalog=CATALOG)
    saved = json.loads(render_answer(pipeline_report(answer), "json"))
    return answer, judge_pipeline(saved, pipeline, Memory(CATALOG, folder))


def usd(answer: PipelineAnswer) -> float:
    return float(answer.total_usd or 0)


@pytest.mark.parametrize("deadline", ["", "60h"])
def test_only_the_time_from_the_tasks_start_to_the_end_matters(tmp_path: Path, deadline: str) -> None:
    lasting, _ = planned(tmp_path, (10.0,), None, deadline=deadline)
    hours = lasting.stages[1].way.expected_hours
    costs = []
    for share in (5.0, 1.3, 1.05, 0.9):
        left = share * hours
        late, verdict = planned(tmp_path, (10.0,), 10.0 + left, deadline=deadline)
        assert verdict.faults == ()
        early, _ = planned(tmp_path, (4.0,), 4.0 + left, deadline=deadline and "54h")
        assert usd(late) == pytest.approx(usd(early), abs=1e-6)
        train = late.stages[1]
        on_own = train.way.option_variant == "already_owned"
        assert train.own_from_hours == (pytest.approx(train.start_hours) if on_own else None)
        assert on_own or share < 1.3
        costs.append(usd(late))
        if on_own:
            notes = str(render_answer(pipeline_report(late), "table"))
            assert ("outlast its commitment" in " ".join(notes.split())) == (costs[-1] > 1.02 * costs[0])
    assert costs == sorted(costs) and costs[0] >= usd(lasting) - 1e-9
    assert costs[1] > costs[0] + 0.01 or costs[2] > costs[0] + 0.01  # what slow runs pay after the end


@pytest.mark.parametrize("deadline", ["", "90h"])
def test_a_dearer_task_before_is_taken_where_what_is_paid_then_lasts(tmp_path: Path, deadline: str) -> None:
    """The cheapest way to prepare starts the training too late for what is paid; the best of all ways is found."""
    lasting, _ = planned(tmp_path, (1.0,), None)
    ways, end = (1.0, 12.0, 30.0), 12.0 + 2.0 * lasting.stages[1].way.hours
    answer, verdict = planned(tmp_path, ways, end, deadline=deadline)
    assert verdict.faults == ()
    costs = [usd(planned(tmp_path, (before,), end, deadline=deadline)[0]) for before in ways]
    # the fastest way to prepare costs 10 USD, as each does alone, the next 9 and the slowest 8
    least = min(cost - at for at, cost in enumerate(costs))
    assert answer.result.bound_usd <= least + 1e-6
    assert usd(answer) == pytest.approx(least, rel=2e-3)
    assert answer.result.gap <= 5e-3 or answer.result.status is Status.FEASIBLE
    assert answer.stages[0].way.hours == 12.0


def test_without_a_deadline_what_comes_before_may_be_dearer_and_faster(tmp_path: Path) -> None:
    """The end of what is paid is a deadline too: with a far one of its own, the pipeline costs the same."""
    timed, _ = planned_twice(tmp_path, {}, 26.0, deadline="1000h")
    answer, verdict = planned_twice(tmp_path, {}, 26.0)
    assert verdict.faults == ()
    assert usd(answer) == pytest.approx(usd(timed), rel=1e-3)
    assert answer.stages[0].way.nodes == 2 and answer.stages[1].way.option_variant == "already_owned"
    assert answer.result.bound_usd <= usd(timed) + 1e-6


@pytest.mark.parametrize("deadline", ["", "60h"])
def test_quotas_and_risk_keep_the_plan_that_starts_in_time(tmp_path: Path, deadline: str) -> None:
    alone, _ = planned_twice(tmp_path, {}, 26.0, deadline=deadline)
    quota = {"provider": "aws", "region": "us-east-1", "quota": "L-417A185B", "limit": 64}
    kept, verdict = planned_twice(tmp_path, {"quota": [quota]}, 26.0, deadline=deadline)
    assert verdict.faults == () and kept.shared
    assert usd(kept) == pytest.approx(usd(alone)) and kept.result.status is Status.OPTIMAL
    risky, verdict = planned_twice(tmp_path, {}, 26.0, deadline=deadline, risk={"level": 0.9})
    assert verdict.faults == () and risky.robust is not None
    start = risky.stages[1]
    assert start.own_from_hours is None or start.own_from_hours >= start.start_hours - 1e-6
    assert risky.robust.chosen.objective_usd <= risky.robust.plain.objective_usd + 1e-6


@pytest.mark.parametrize("deadline", ["", "60h"])
def test_a_task_that_runs_on_what_is_paid_alone_starts_while_it_lasts(tmp_path: Path, deadline: str) -> None:
    alone = {"purchase_options": ["reserved_1y"]}
    answer, verdict = planned_twice(tmp_path, alone, 26.0, deadline=deadline)
    assert verdict.faults == () and answer.feasible
    assert answer.stages[1].way.option_variant == "already_owned"
    assert answer.result.status is Status.OPTIMAL
    none, _ = planned_twice(tmp_path, alone, 12.0, deadline=deadline)
    assert none.result.status is Status.INFEASIBLE


def test_a_forged_hour_from_which_commitments_count_is_a_fault(tmp_path: Path) -> None:
    answer, _ = planned(tmp_path, (10.0,), 100.0)
    saved = json.loads(render_answer(pipeline_report(answer), "json"))
    pipeline = load_pipeline(tmp_path / "pipeline.yaml")
    for hours in (None, 60.0):
        saved["tasks"][1]["own_from_hours"] = hours
        assert judge_pipeline(saved, pipeline, Memory(CATALOG, tmp_path)).faults
    saved["tasks"][1]["own_from_hours"] = 5.0  # the task starts later
    with pytest.raises(MalformedError, match="own_from_hours"):
        judge_pipeline(saved, pipeline, Memory(CATALOG, tmp_path))


@draws(40)
@given(st.integers(0, 2**32 - 1))
def test_no_choice_that_keeps_its_starts_is_cheaper(seed: int) -> None:
    check_starts(seed)


def check_starts(seed: int) -> None:
    """A drawn pipeline whose candidates must start by an hour costs what the cheapest of all choices does."""
    draw = np.random.default_rng(seed)
    n_tasks, each = 3, 4
    task = np.repeat(np.arange(n_tasks), each)
    edges = [(0, 1), (1, 2)] if draw.random() < 0.5 else [(0, 2), (1, 2)]
    source, target = (np.array(side) for side in zip(*edges, strict=True))
    start_by = np.where(draw.random(len(task)) < 0.4, draw.integers(0, 12, len(task)), np.inf)
    pipe = PipelineInput(
        tasks=("a", "b", "c"), keys=tuple(range(len(task))), task=task, place=draw.integers(0, 2, len(task)),
        cost_usd=draw.integers(1, 60, len(task)).astype(float), hours=draw.integers(1, 9, len(task)).astype(float),
        group=np.array([0, 1]), source=source, target=target, move_usd=np.full((2, 2, 2), 3.0),
        move_hours=np.full((2, 2, 2), 1.0), deadline_hours=float(draw.integers(8, 28)), start_by=start_by,
    )  # fmt: skip
    least = math.inf
    for chosen in itertools.product(*pipe.of_task):
        rows = np.array(chosen)
        course = follow(pipe, rows)
        if course.end_hours.max() <= pipe.deadline_hours and (course.start_hours <= start_by[rows]).all():
            least = min(least, course.cost_usd)
    found = solve_pipeline(pipe, SolveOptions(gap=0.0))
    if math.isinf(least):
        assert found.course is None and found.status is Status.INFEASIBLE
    else:
        assert found.course is not None and found.course.cost_usd == pytest.approx(least)
        assert found.bound_usd == pytest.approx(least, rel=1e-6)
