"""What the screen says of a fleet of several offers: zones of a region are one place with one quota."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from planner.plan.front_choices import choices
from planner.plan.front_notes import before_you_buy, verdict_lines
from planner.plan.model import Plan
from planner.plan.report import plan_answer
from planner.plan.report_launch import launch
from planner.render import render_answer
from tests.planner.fleet.test_spine_fleet import exactly, fleet
from tests.planner.render.render_plans import SPOT
from tests.planner.spine_catalogs import A10G, L4, Offer


def _plan(**limits: int) -> Plan:
    offers = [
        Offer(L4, "us-central1", "0.50", zone="us-central1-a", capacity=1.0),
        Offer(L4, "us-central1", "0.50", zone="us-central1-b", capacity=1.0),
        Offer(A10G, "us-east-1", "2.00"),
    ]
    return exactly(offers, fleet(runs=4, limits={"max_nodes": 12, **limits}))


def test_zones_of_a_region_are_one_place_and_their_quota_is_added_up() -> None:
    plan = _plan()
    zones = [line for line in plan.lines if line.region == "us-central1"]
    assert [line.nodes for line in zones] == [1, 1]
    text = render_answer(plan_answer(plan), "table")
    assert "2 x g2-standard-8 on_demand in gcp/us-central1" in " ".join(text.split())
    (section,) = before_you_buy(plan)
    assert "2 GPU of" in str(section) and "in us-central1" in str(section)
    assert "; 1 GPU of" not in str(section)


def test_a_fleet_in_brief_counts_machines_and_names_the_ways_to_buy() -> None:
    plan = _plan()
    nodes = sum(line.nodes for line in plan.lines)
    assert f"{nodes} machines of {len(plan.lines)} offers, on_demand" in str(choices(plan))


def test_a_wide_gap_on_spot_says_what_the_bound_leaves_out() -> None:
    plan = _plan()
    assert plan.proof is not None
    wide = replace(plan, proof=replace(plan.proof, gap_ratio=0.3, status="feasible"))
    assert "excludes the cost" not in " ".join(verdict_lines(wide))  # nothing here is on spot
    on_spot = replace(wide, launch=cast("Any", SimpleNamespace(in_turn=False, in_parts=False)))
    assert "excludes the cost of the required probability on spot" in " ".join(verdict_lines(on_spot))


def test_regions_that_an_account_must_enable_are_named_once() -> None:
    plan = _plan()
    (section,) = before_you_buy(plan)
    assert "enable" not in str(section)  # us-east-1 and us-central1 are on
    lines = [
        replace(line, provider="aws", region=region)
        for line, region in zip(plan.lines, ("eu-south-2", "eu-south-2", "us-east-1"), strict=True)
    ]
    (section,) = before_you_buy(replace(plan, lines=tuple(lines)))
    assert "in eu-south-2 (enable it first: off by default)" in str(section)
    assert "us-east-1 (" not in str(section)
    many = ["us-east-1", "us-east-2", "us-west-1", "us-west-2", "eu-west-1", "eu-south-2"]
    lines = [replace(plan.lines[0], provider="aws", region=region, offer_id=region) for region in many]
    (section,) = before_you_buy(replace(plan, lines=tuple(lines)))
    assert "eu-south-2 (enable it first: off by default)" in str(section) and " more" in str(section)


def test_the_end_of_a_fleet_on_spot_is_that_at_mean_rates() -> None:
    assert SPOT.launch is not None
    (job,) = [row.words for row in launch(SPOT.launch).figures if row.label == "finish"]
    fleet_launch = replace(SPOT.launch, strategy="spot_in_fleet")
    (own,) = [row.words for row in launch(fleet_launch).figures if row.label == "finish"]
    assert job.startswith("after 121.5 h expected") and own.startswith("after 121.5 h at mean rates")
