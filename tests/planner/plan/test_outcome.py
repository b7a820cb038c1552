"""A plan that a search did not prove the best says so beside others too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.plan.outcome import MOST_PLACES, outcome_of, regions_words
from planner.render import render_answer
from planner.workloads.whatif import WhatIf
from planner.workloads.whatif_report import whatif_report
from tests.planner.render.render_plans import LAUNCH, TRAINING


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


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ("aws/a aws/a", "aws/a"),
        ("aws/a aws/b aws/a", "aws/a then b"),
        ("aws/a gcp/c gcp/d aws/e", "aws/a then gcp/c then d and 1 more region"),
    ],
)
def test_all_regions_of_a_plan_in_turn_are_named(places: str, words: str) -> None:
    """A run that goes on in another region does not read as if it stayed in the first."""
    (line,) = TRAINING.lines[:1]
    each = [place.split("/") for place in places.split()]
    lines = tuple(replace(line, provider=provider, region=region) for provider, region in each)
    assert regions_words(lines) == words and MOST_PLACES == 3
    launch = replace(LAUNCH, strategy="spot_with_fallback")
    assert outcome_of(replace(TRAINING, lines=lines, launch=launch), "it").choice.endswith(f", {words}")
