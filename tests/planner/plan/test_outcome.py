"""A plan that a search did not prove the best says so beside others too."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from planner.plan.brief import Choice, Summary, SummaryPart
from planner.plan.front_choices import choices
from planner.plan.outcome import MOST_PLACES, outcome_of, regions_words
from planner.render import render_answer
from planner.workloads.whatif import WhatIf
from planner.workloads.whatif_report import whatif_report
from tests.planner.render.render_plans import LAUNCH, TRAINING

IN_TWO = "spot in 2 zones, else on_demand"


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


@pytest.mark.parametrize(
    ("regions", "rows"),
    [
        (("a", "c"), (f"{IN_TWO}, aws/a then b", f"{IN_TWO}, aws/a then c")),
        (("d", "a"), ("spot, else on_demand, aws/a", "spot, else on_demand, aws/d")),
    ],
)  # fmt: skip
def test_choices_that_differ_in_later_regions_alone_name_them(
    regions: tuple[str, str], rows: tuple[str, str]
) -> None:
    """Two rows read alike, and the second ended sooner for the same money."""
    (line,) = TRAINING.lines[:1]
    lines = tuple(
        replace(line, provider="aws", region=region, purchase_option=option, option_variant="")
        for region, option in (("a", "spot"), ("b", "spot"), ("a", "on_demand"))
    )
    parts = tuple(
        SummaryPart(line.nodes, option, "", region, "")
        for region, option in zip((*regions, regions[0]), ("spot", "spot", "on_demand"), strict=True)
    )
    other = Summary(
        "", "aws", regions[0], "", line.instance_type, "x", 8.0, IN_TWO, "", line.nodes, 1.0,
        Decimal(9), Decimal(1), -1.0, "2026-11-20", parts=parts,
    )  # fmt: skip
    chosen = (Choice(("cheapest",), None, "2026-12-01", 0.99), Choice(("sooner",), other, "2026-11-30", 0.99))
    launch = replace(LAUNCH, strategy="spot_with_fallback", places=LAUNCH.places[:1] * 2)
    (section,) = choices(replace(TRAINING, lines=lines, launch=launch, choices=chosen))
    assert [str(row[1]).partition(", ")[2] for row in section.tables[0].rows] == list(rows)
