"""A plan by a later deadline that costs a tenth less: recomputed by that deadline, and a fault once it is changed."""

from __future__ import annotations

import copy
import json
from pathlib import Path

from benchmarks.forgeries import put, steps
from benchmarks.instances.answers import NOW, changed
from planner.asked.options import Options
from planner.inputs.load import load_workload
from planner.judge.judge import judge_saved
from planner.workloads.answer import optimize


def test_what_a_later_deadline_saves_is_recomputed(tmp_path: Path) -> None:
    limits = {"deadline": "20h", "providers": ["aws"]}
    loaded = load_workload(changed("bert-large", {"constraints": limits}, tmp_path))
    answer = json.loads(json.dumps(optimize(loaded, Options(now=NOW)).plan.to_dict()))
    (later,) = [item for item in answer["relaxations"] if item["constraint"] == "deadline"]
    assert later["best"]["purchase_option"].startswith("spot")  # no plan on spot keeps 20 h
    assert judge_saved(answer, loaded).faults == ()
    at = f"$.relaxations[{answer['relaxations'].index(later)}]"
    for path, value in (
        (f"{at}.needed", "22.0 h"), (f"{at}.needed", "50.0 h"), (f"{at}.current", "19.0 h"),
        (f"{at}.best.cost_usd", answer["total_usd"]),
    ):  # fmt: skip
        forged = copy.deepcopy(answer)
        put(forged, steps(path), value)
        assert judge_saved(forged, loaded).faults, path
