"""What just misses the chance asked and costs far less: recomputed, and a fault once it is changed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from benchmarks.forgeries import put, steps
from benchmarks.instances.answers import NOW, changed
from planner.asked.options import Options
from planner.inputs.load import load_workload
from planner.judge.judge import judge_saved
from planner.workloads.answer import optimize
from tests.conftest import ROOT

OWN = str(ROOT / "examples" / "onprem-machines.yaml")
LIMITS: dict[str, Any] = {
    "max_nodes": 2, "purchase_options": ["on_demand", "owned"], "providers": ["aws", "onprem"],
}  # fmt: skip


def planned(folder: Path, deadline: str) -> tuple[dict[str, Any], Any]:
    limits = {**LIMITS, "deadline": deadline}
    loaded = load_workload(
        changed("bert-large", {"prices": {"offers": [OWN]}, "constraints": limits}, folder)
    )
    return json.loads(json.dumps(optimize(loaded, Options(now=NOW)).plan.to_dict())), loaded


def test_what_is_nearly_sure_is_recomputed(tmp_path: Path) -> None:
    answer, loaded = planned(tmp_path, "70h")
    (near,) = [item for item in answer["relaxations"] if item["constraint"] == "confidence"]
    assert near["best"]["instance_type"] == "dgx-a100" and 0.8 <= float(near["needed"]) < 0.9
    assert judge_saved(answer, loaded).faults == ()
    at = f"$.relaxations[{answer['relaxations'].index(near)}]"
    for path, value in (
        (f"{at}.needed", "0.7"), (f"{at}.current", "0.8"), (f"{at}.best.cost_usd", answer["total_usd"]),
        (f"{at}.constraint", "budget"),
    ):  # fmt: skip
        forged = copy.deepcopy(answer)
        put(forged, steps(path), value)
        assert judge_saved(forged, loaded).faults, path


def test_what_is_sure_enough_or_far_from_it_is_not_named(tmp_path: Path) -> None:
    for deadline in ("60h", "100h"):
        answer, _ = planned(tmp_path, deadline)
        assert not [item for item in answer["relaxations"] if item["constraint"] == "confidence"]
