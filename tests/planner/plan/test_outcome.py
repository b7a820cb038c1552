"""A plan that a search did not prove the best says so beside others too."""

from __future__ import annotations

from dataclasses import replace

from planner.plan.outcome import outcome_of
from planner.render import render_answer
from planner.workloads.whatif import WhatIf
from planner.workloads.whatif_report import whatif_report
from tests.planner.render.render_plans import TRAINING


def shown(status: str, gap: float) -> str:
    assert TRAINING.proof is not None
    plan = replace(TRAINING, proof=replace(TRAINING.proof, status=status, gap_ratio=gap))
    found = WhatIf("w", outcome_of(plan, "as the file says"), (outcome_of(plan, "fleet.runs=8"),))
    return " ".join(str(render_answer(whatif_report(found), "table")).split())


def test_a_scenario_that_was_not_proven_says_how_near_it_is() -> None:
    text = shown("feasible", 0.25)
    assert "fleet.runs=8: feasible plan within 33.4 % of the cheapest" in text and "--time-limit 5m" in text


def test_nothing_is_said_of_plans_that_are_proven() -> None:
    assert "within" not in shown("optimal", 1e-4)
