"""A fleet on list prices that name no place says what one in known places costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.asked.model import Asked
from planner.asked.options import Options
from planner.fleet.known_places import with_known_places
from planner.plan.model import Plan
from tests.planner.fleet.test_spine_fleet import fleet
from tests.planner.spine_catalogs import A10G, L4, NOW, Offer, make_catalog, plan_on

NOWHERE = Offer(A10G, "eu-west-1", "0.60", flags="place_not_stated")
HERE = Offer(L4, "us-central1", "1.10")
LIMITS = {"max_nodes": 20, "deadline": "60h"}


def planned(offers: list[Offer], limits: dict[str, Any] = LIMITS) -> Plan:
    return plan_on(make_catalog(offers), fleet(6, limits), gap=0.0).plan


def notes(plan: Plan) -> list[str]:
    return [note for note in plan.warnings if note.startswith("place and stock of ")]


def test_what_known_places_cost_is_said() -> None:
    plan, known = planned([NOWHERE, HERE]), planned([HERE])
    assert [line.instance_type for line in plan.lines] == ["g5.2xlarge"]
    more = float(known.total_usd / plan.total_usd) - 1.0
    [note] = notes(plan)
    assert note.startswith("place and stock of g5.2xlarge are not known: in known places, ")
    assert f"{known.lines[0].nodes} x g2-standard-8, on_demand, gcp/us-central1 costs $" in note
    assert note.endswith(f", {100 * more:.0f} % more")


def test_nothing_is_said_of_a_fleet_in_known_places() -> None:
    plan = planned([replace(NOWHERE, price_per_hour="9"), HERE])
    assert plan.lines[0].instance_type == "g2-standard-8" and not notes(plan)


def test_so_it_is_said_where_known_places_have_none() -> None:
    [alone] = notes(planned([NOWHERE]))
    [refused] = notes(planned([NOWHERE, HERE], {**LIMITS, "instance_types": {"deny": ["g2-*"]}}))
    assert alone == refused
    assert alone.endswith("in known places, no fleet was found that meets every limit")


def test_it_takes_no_more_time_than_the_plan_left_and_says_where_it_is_no_dearer() -> None:
    answer = plan_on(make_catalog([NOWHERE, HERE]), fleet(6, LIMITS))
    assert answer.plan.proof is not None
    plan = replace(answer.plan, warnings=(), proof=replace(answer.plan.proof, seconds=20.0))
    asked: list[Options] = []

    def ask(known: Asked, options: Options) -> Plan:
        assert known.workload.constraints.regions == ("gcp/us-central1",)
        asked.append(options)
        return plan

    [note] = with_known_places(plan, answer.context.market, Options(NOW, time_limit_s=30.0), ask).warnings
    assert note.endswith(", no more") and [options.time_limit_s for options in asked] == [10.0]
