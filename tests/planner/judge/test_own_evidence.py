"""Frontiers, fleets and pipelines on records of spot of their own: what does not rest on these is checked."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.forgeries import put, steps
from benchmarks.instances.answers import NOW, changed
from catalogs.store.load import load_catalog
from planner.asked.options import Options
from planner.errors import InputError
from planner.inputs.load import load_workload
from planner.inputs.pipeline_load import load_pipeline
from planner.job.frontier import frontier, thin
from planner.job.frontier_report import frontier_report
from planner.judge.findings import Verdict
from planner.judge.judge import judge_pipeline, judge_saved
from planner.judge.memory import Memory
from planner.pipelines.answer import plan_pipeline
from planner.pipelines.report import pipeline_report
from planner.render import render_answer
from planner.workloads.answer import optimize

# Nothing is asked of the places' laws or of other machines here, so few are searched.
NEAR = {"providers": ["aws"], "instance_types": {"allow": ["p3*", "g5.xlarge", "p5.4xlarge", "p5.48xlarge"]}}
WHY = "it depends on the workload's spot records"
Judge = Callable[[Any], Verdict]
PIPELINE = """
version: 1
kind: pipeline
name: own
start: 2026-12-01
deadline: 200h
tasks:
  - {name: prepare,
     candidates: [{provider: aws, region: us-east-2, instance_type: g5.xlarge, nodes: 1, hours: 2, cost_usd: 4}]}
  - {name: train, workload: own.yaml, reads: [{task: prepare, size: 100GB}]}
"""


def _workload(folder: Path, name: str, limits: dict[str, Any] | None = None) -> Path:
    """An example with a record of spot."""
    (folder / "seen.csv").write_text(
        "time,zone,provider,instance_type,gang,available\n2026-02-01T00:00Z,us-east-2a,aws,p3.2xlarge,2,1\n",
        encoding="utf-8",
    )
    given = {"spot": {"evidence": ["seen.csv"]}, "constraints": limits or {}}
    return changed(name, given, folder).rename(folder / "own.yaml")


def _frontier(folder: Path) -> tuple[Any, Judge, dict[str, Any]]:
    limits = {"providers": ["aws"], "purchase_options": ["spot"], "instance_types": {"allow": ["p3*"]}}
    loaded = load_workload(_workload(folder, "bert-large", limits))
    found = frontier(loaded, Options(now=NOW))
    made = json.loads(render_answer(frontier_report(found, thin(found.points, 3)), "json"))
    memory = Memory(load_catalog(), folder)
    forged = {"$.points[0].nodes": 77, "$.points[0].accelerator": "none", "$.start": "2026-11-21T00:00+00:00"}
    return made, lambda one: judge_saved(one, loaded, memory=memory), forged


def _fleet(folder: Path) -> tuple[Any, Judge, dict[str, Any]]:
    loaded = load_workload(_workload(folder, "hpo-fleet", NEAR))
    made = json.loads(json.dumps(optimize(loaded, Options(now=NOW)).plan.to_dict()))
    memory = Memory(load_catalog(), folder)
    forged = {"$.workload": "other", "$.total_usd": "1.00", "$.assumptions[0].value": "9"}
    return made, lambda one: judge_saved(one, loaded, memory=memory), forged


def _pipeline(folder: Path) -> tuple[Any, Judge, dict[str, Any]]:
    _workload(folder, "bert-large", NEAR)
    (folder / "tasks.yaml").write_text(PIPELINE, encoding="utf-8")
    loaded, memory = load_pipeline(folder / "tasks.yaml"), Memory(load_catalog(), folder)
    made = json.loads(render_answer(pipeline_report(plan_pipeline(loaded, Options(now=NOW))), "json"))
    forged = {
        "$.tasks[1].nodes": 77,
        "$.tasks[0].cost_usd": "1.00",
        "$.sha256": "0",
        "$.tasks[1].start_hours": 0.5,
    }
    return made, lambda one: judge_pipeline(one, loaded, memory), forged


@pytest.mark.parametrize("make", [_frontier, _fleet, _pipeline])
def test_what_rests_on_own_records_is_named_and_the_rest_checked(tmp_path: Path, make: Any) -> None:
    made, judge, forged = make(tmp_path)
    verdict = judge(made)
    assert verdict.faults == ()
    assert WHY in verdict.left_out.values()
    for path, value in forged.items():
        other = copy.deepcopy(made)
        put(other, steps(path), value)
        with contextlib.suppress(InputError):  # refused by name
            assert judge(other).faults, path
