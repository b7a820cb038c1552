"""A plan described alone says the same as the whole one: the rows of a sweep rest on it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from planner.asked.options import Options
from planner.inputs.load import load_workload
from planner.workloads.answer import optimize

EXAMPLES = Path(__file__).parents[3] / "examples"
OPTIONS = Options(datetime(2026, 11, 22, tzinfo=UTC), as_of=date(2026, 11, 22))
LEFT_OUT = (
    *("alternatives", "folded", "choices", "n_results", "on_known_prices"),
    *("filters", "filter_pairs", "relaxations", "storage", "loading"),
    "n_feasible",  # of those looked at
)
COUNTS = ("seconds", "candidates", "shapes", "near_ties", "note")


@pytest.mark.parametrize("name", ["bert-large", "low-carbon", "owned-top-up"])
def test_a_plan_described_alone_is_the_same_plan(name: str) -> None:
    loaded = load_workload(EXAMPLES / f"{name}.yaml")
    whole = optimize(loaded, OPTIONS).plan.to_dict()
    brief = optimize(loaded, replace(OPTIONS, brief=True)).plan.to_dict()
    for plan in (whole, brief):
        for name in COUNTS:
            plan["proof"].pop(name)
        if plan["launch"] is not None:
            plan["launch"].pop("why")
    own = {key for key in brief if brief[key] != whole[key]}
    assert not brief["alternatives"]
    assert own <= set(LEFT_OUT)
    assert brief["proof"]["verified"]
