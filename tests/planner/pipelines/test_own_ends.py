"""Tasks of a pipeline on commitments that end: what they pay after the end follows from their start."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.asked.options import Options
from planner.inputs.pipeline_load import load_pipeline
from planner.judge.document import MalformedError
from planner.judge.judge import judge_pipeline
from planner.judge.memory import Memory
from planner.pipelines.answer import PipelineAnswer, plan_pipeline
from planner.pipelines.report import pipeline_report
from planner.render import render_answer
from solvers.problem.solution import Status
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
    file = {"version": 1, "kind": "pipeline", "name": "own", "start": NOW.isoformat(), "tasks": tasks}
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


def test_a_plan_that_may_start_earlier_is_bounded_by_the_earliest_start(tmp_path: Path) -> None:
    """The cheaper way to prepare starts the training too late for what is paid: the bound says so."""
    lasting, _ = planned(tmp_path, (1.0,), None)
    hours = lasting.stages[1].way.hours
    answer, verdict = planned(tmp_path, (1.0, 30.0), 1.0 + 1.5 * hours)
    assert verdict.faults == ()
    fast, _ = planned(tmp_path, (1.0,), 1.0 + 1.5 * hours)
    slow, _ = planned(tmp_path, (30.0,), 1.0 + 1.5 * hours)
    assert answer.result.bound_usd <= min(usd(fast), usd(slow)) + 1e-6 <= usd(answer) + 2e-6
    assert answer.result.gap <= 1e-6 or answer.result.status is Status.FEASIBLE


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
