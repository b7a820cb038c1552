"""Runs that stop early or come again: their plans hold, and do not once what they rest on is changed."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.forgeries import put, steps
from benchmarks.instances.answers import NOW, changed
from planner.asked.options import Options
from planner.errors import InputError
from planner.inputs.load import load_workload
from planner.inputs.portfolio_load import load_portfolio
from planner.judge.judge import judge_saved
from planner.plan.model import Plan
from planner.workloads.answer import optimize

LIMITS = {"deadline": "60h", "purchase_options": ["on_demand"], "providers": ["aws"]}
AGAIN = {"every": "1w", "times": 12}
STOP = {"early_stop": {"mean_share": 0.5, "p90_share": 0.9}}


def planned(folder: Path, **changes: Any) -> tuple[dict[str, Any], Any]:
    loaded = load_workload(changed("bert-large", {"constraints": LIMITS, **changes}, folder))
    return json.loads(json.dumps(optimize(loaded, Options(now=NOW)).plan.to_dict())), loaded


def test_a_plan_of_a_run_that_stops_early_and_comes_again_is_recomputed(tmp_path: Path) -> None:
    answer, loaded = planned(tmp_path, recurrence=AGAIN, training=STOP)
    assert judge_saved(answer, loaded).faults == ()
    assert answer["recurrence"] == {"every_hours": 168.0, "times": 12}
    assert any("50 % of the training" in text for text in answer["warnings"])
    for path, value in (("$.recurrence.times", 2), ("$.risk.worst_cost_usd", answer["total_usd"])):
        forged = copy.deepcopy(answer)
        put(forged, steps(path), value)
        assert judge_saved(forged, loaded).faults, path
    whole = load_workload(changed("bert-large", {"constraints": LIMITS, "recurrence": AGAIN}, tmp_path))
    assert judge_saved(answer, whole).faults


def test_a_stop_that_is_not_sure_makes_the_end_less_sure(tmp_path: Path) -> None:
    sure = {"early_stop": {"mean_share": 0.5, "p90_share": 0.5}}
    one, other = (Plan.from_dict(planned(tmp_path, training=stop)[0]) for stop in (sure, STOP))
    assert one.goal is not None and other.goal is not None and one.goal.units == other.goal.units
    assert one.risk is not None and other.risk is not None
    assert one.recurrence is None and "recurrence" not in one.to_dict()
    assert other.risk.worst_hours / other.hours > one.risk.worst_hours / one.hours + 0.1


def test_a_job_that_comes_again_is_no_job_of_a_portfolio(tmp_path: Path) -> None:
    nightly = changed(
        "bert-large",
        {"constraints": {"deadline": "20h"}, "recurrence": {"every": "1d", "times": 9}},
        tmp_path,
    )
    file = tmp_path / "jobs.yaml"
    file.write_text(
        f"version: 1\nkind: portfolio\nname: p\njobs:\n  - {{name: nightly, workload: {nightly.name}}}\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="job 'nightly' comes again"):
        load_portfolio(file)
