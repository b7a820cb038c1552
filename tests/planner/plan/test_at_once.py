"""A plan or a sooner end that rests on many accelerators had by asking says so."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from planner.plan.brief import Choice, Summary, SummaryPart
from planner.plan.front_choices import choices
from tests.planner.spine_catalogs import A10G, Offer, make_catalog, plan_on, work


def _summary(nodes: int, option: str) -> Summary:
    part = SummaryPart(nodes, option, "", "us-east-1", "")
    return Summary(
        "", "aws", "us-east-1", "", "g5.2xlarge", "a10g-24gb-pcie", float(nodes), option, "", nodes, 1.0, Decimal(9),
        Decimal(1), -1.0, "2026-11-20", parts=(part,),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "option", "said"),
    [(64, "on_demand", True), (64, "spot", True), (16, "on_demand", False), (64, "capacity_block", False)],
)
def test_many_more_accelerators_are_named_as_an_assumption(nodes: int, option: str, said: bool) -> None:
    plan = plan_on(make_catalog([Offer(A10G, "us-east-1", "1.00")]), work()).plan
    assert plan.lines[0].nodes <= 4
    sooner = Choice(("sooner",), _summary(nodes, option), plan.finish_expected, 0.99)
    (section,) = choices(replace(plan, choices=(*plan.choices[:1], sooner)))
    assert ("64 a10g-24gb-pcie at once" in str(section)) is said


@pytest.mark.parametrize(
    ("nodes", "option", "said"),
    [(64, "on_demand", True), (64, "spot", True), (16, "on_demand", False), (64, "owned", False)],
)
def test_the_plan_says_so_of_itself(nodes: int, option: str, said: bool) -> None:
    plan = plan_on(make_catalog([Offer(A10G, "us-east-1", "1.00")]), work()).plan
    line = replace(plan.lines[0], nodes=nodes, purchase_option=option)
    (section,) = choices(replace(plan, lines=(line,)))
    assert ("cheapest: 64 a10g-24gb-pcie are needed at once" in str(section)) is said
    (section,) = choices(replace(plan, lines=(line,), kind="fleet"))  # workers come one by one
    assert "needed at once" not in str(section)
    assert (
        "cheapest: its end assumes 64 a10g-24gb-pcie at once in one region; public records end at 16"
        in str(section)
    ) is said


@pytest.mark.parametrize(
    ("nodes", "cost", "alone", "said"),
    [(16, "1.02", 64, True), (17, "1.02", 64, False), (16, "1.05", 64, False), (8, "1.02", 16, False)],
)
def test_what_costs_nearly_the_same_with_fewer_at_once_is_named(
    nodes: int, cost: str, alone: int, said: bool
) -> None:
    """Where the plan takes more than records have, and only what they have and hardly more money will do."""
    plan = plan_on(make_catalog([Offer(A10G, "us-east-1", "1.00")]), work()).plan
    line = replace(plan.lines[0], nodes=alone)
    fewer = replace(_summary(nodes, "spot"), cost_usd=plan.total_usd * Decimal(cost), hours=plan.hours + 5.0)
    (section,) = choices(replace(plan, lines=(line,), alternatives=(fewer,)))
    text = "fewer at once: 16 x g5.2xlarge, spot, aws/us-east-1: 16 accelerators, for $"
    assert (text in str(section)) is said
    assert ("more, ends 5 h later" in str(section)) is said
