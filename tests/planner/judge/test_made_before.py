"""A plan that an earlier version saved is told by the assumptions that it lacks, not by figures that differ."""

from __future__ import annotations

import json

from planner.inputs.load import load_workload
from planner.judge.judge import judge_saved
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
