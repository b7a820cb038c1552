"""What an answer without a deadline is the cheapest of: ways to run that need no last moment, and it says so.

With a deadline, spot in several zones and spot with on-demand to fall back on compete too, so a long one may cost less.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planner
from catalogs.store.load import load_catalog
from catalogs.tables.model import Catalog
from planner.asked.options import Options
from planner.candidates.choose import best_where
from planner.candidates.constraints.deadline import leaves_out_fallbacks
from planner.candidates.engine import Engine
from planner.candidates.model import IN_TURN, Candidates
from planner.candidates.prepare import prepare
from planner.candidates.wanted import Scope, Wanted
from planner.inputs.load import LoadedWorkload, load_workload
from planner.judge.judge import judge_plan
from planner.render import claims
from planner.workloads.answer import optimize
from tests.conftest import ROOT
from tests.planner.job.test_one_engine import CASES, DAY, Case
from tests.planner.job.test_one_engine import _with as with_workload

DEADLINES = 20
OPTIONS = Options(DAY, as_of=DAY.date())
SMALL = {case.example: case for case in CASES}


@functools.cache
def bundled() -> Catalog:
    return load_catalog(None, as_of=DAY.date())


def free(case: Case, **spot: str) -> LoadedWorkload:
    """An example on some of its offers, without deadline and budget."""
    given = load_workload(ROOT / "examples" / f"{case.example}.yaml", cache=False)
    nothing: dict[str, Any] = {"budget_usd": None, "deadline": None, "purchase_options": None}
    limits = given.workload.constraints.model_copy(update={**case.constraints, **nothing})
    wish = given.workload.spot.model_copy(update=spot)
    return with_workload(given, given.workload.model_copy(update={"constraints": limits, "spot": wish}))


def least(candidates: Candidates, *, in_turn: bool) -> float:
    """Cost of the best candidate, infinity without one; `in_turn`: those that run in turn count."""
    mask = (candidates.bits == 0) & ((candidates.kind != IN_TURN) | in_turn)
    best = best_where(candidates, mask, "cost")
    return np.inf if best is None else float(candidates.cost_usd[best])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.example)
def test_no_deadline_makes_a_way_that_needs_none_cheaper(case: Case) -> None:
    """And a user who wants no others pays no more without a deadline than with any."""
    for spot in ({}, {"fallback": "none", "zones": "single"}):
        given = free(case, **spot)
        engine = Engine(prepare(given, given.workload, bundled(), OPTIONS))
        without = least(engine.at(None, Wanted(Scope.BEST)).candidates, in_turn=True)
        for hours in np.geomspace(case.first, 24 * 365.0, DEADLINES).tolist():
            candidates = engine.at_hours(hours, Wanted(Scope.BEST)).candidates
            assert without <= least(candidates, in_turn=bool(spot)) * (1 + 1e-9), hours


@pytest.mark.parametrize(
    ("spot", "options", "hours", "left_out"),
    [
        ({}, None, None, True),
        ({}, None, 10.0, False),
        ({"fallback": "none"}, None, None, True),
        ({"zones": "single"}, None, None, True),
        ({"fallback": "none", "zones": "single"}, None, None, False),
        ({}, ("on_demand",), None, False),
        ({}, ("spot",), None, True),
    ],
)
def test_ways_are_left_out_where_the_user_admits_them(
    spot: dict[str, str], options: tuple[str, ...] | None, hours: float | None, left_out: bool
) -> None:
    workload = free(SMALL["bert-large"], **spot).workload
    limits = workload.constraints.model_copy(update={"purchase_options": options})
    assert leaves_out_fallbacks(workload.model_copy(update={"constraints": limits}), hours) is left_out


def test_the_answer_says_so_and_the_judge_recomputes_it(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "resnet50-imagenet.yaml").read_text(encoding="utf-8")
    kept = [line for line in text.splitlines() if not line.strip().startswith(("deadline:", "budget_usd:"))]
    file = tmp_path / "w.yaml"
    file.write_text("\n".join(kept), encoding="utf-8")
    plan = optimize(load_workload(file, cache=False), OPTIONS, catalog=bundled()).plan
    assert plan.deadline is None and plan.proof is not None and plan.proof.fallback_left_out
    assert claims.NO_DEADLINE_NEEDED in repr(plan)
    screen = planner.optimize(str(file), as_of=DAY.date().isoformat()).render("md")
    assert claims.NEEDS_DEADLINE in str(screen)
    forged = replace(plan, proof=replace(plan.proof, fallback_left_out=False))
    loaded = load_workload(file, cache=False)
    faults = [
        judge_plan(one.to_dict(), loaded.workload, loaded.sha256, bundled(), tmp_path).faults
        for one in (plan, forged)
    ]
    assert not faults[0] and len(faults[1]) == 1 and "proof.fallback_left_out" in str(faults[1])
