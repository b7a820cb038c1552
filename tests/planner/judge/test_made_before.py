"""A plan that an earlier version saved is told by the assumptions that it lacks, not by figures that differ."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.instances.answers import NOW, changed
from planner.asked.options import Options
from planner.inputs.load import load_workload
from planner.judge.judge import judge_saved
from planner.workloads.answer import optimize
from tests.conftest import ROOT
from tests.planned_examples import plan_of

NEW = ("beside_steps_ratio", "whole_run_log_sd")


def test_a_plan_made_without_an_assumption_is_named_by_it() -> None:
    loaded = load_workload(ROOT / "examples" / "onprem-comparison.yaml")
    answer = json.loads(json.dumps(plan_of("onprem-comparison").to_dict()))
    assert not judge_saved(answer, loaded, prices=False).faults
    answer["assumptions"] = [item for item in answer["assumptions"] if item["key"] not in NEW]
    verdict = judge_saved(answer, loaded, prices=False)
    (fault,) = verdict.faults
    assert "made without beside_steps_ratio and whole_run_log_sd" in fault and "save the plan again" in fault
    assert "hours" not in verdict.checked
    assert not judge_saved(answer, None, prices=False).faults  # its sums hold without the workload


def test_a_plan_of_phases_made_before_they_were_noted_holds_and_a_wrong_note_does_not(tmp_path: Path) -> None:
    phases = [{"share": 0.9, "sequence_length": 128}, {"share": 0.1}]
    limits = {"deadline": "60h", "purchase_options": ["on_demand"], "providers": ["aws"]}
    file = changed("bert-large", {"constraints": limits, "training": {"phases": phases}}, tmp_path)
    loaded = load_workload(file)
    answer = json.loads(json.dumps(optimize(loaded, Options(now=NOW)).plan.to_dict()))
    assert not judge_saved(answer, loaded).faults
    noted = answer["assumptions"]
    (note,) = [item for item in noted if item["key"] == "training.phases"]
    before = {**answer, "assumptions": [item for item in noted if item is not note]}
    verdict = judge_saved(before, loaded)
    assert not verdict.faults and {"hours", "costs"} <= set(verdict.checked)
    wrong = {**note, "value": "1" + note["value"]}
    assert judge_saved(
        {**answer, "assumptions": [wrong if item is note else item for item in noted]}, loaded
    ).faults
