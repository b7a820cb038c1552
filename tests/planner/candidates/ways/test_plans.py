"""Plans with spot: what is chosen, what is said at launch, and that verification holds it to that."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from planner.judge.lines import verify_plan
from planner.plan.model import Plan
from planner.plan.report import plan_answer
from planner.render import render_answer
from tests.planner.candidates.ways.cases import (
    ONE_ZONE,
    THREE_ZONES,
    TWO_REGIONS,
    V100,
    answer,
    on_demand,
    spot,
)
from tests.planner.spine_catalogs import not_dearer

TIGHT = 26.0
LOOSE = 600.0


def plan_of(*args: Any, **changes: Any) -> Plan:
    plan = answer(*args, **changes).plan
    assert plan.status == "planned"
    return plan


def options(plan: Plan) -> list[str]:
    return [line.purchase_option for line in plan.lines]


def test_a_tight_deadline_is_kept_by_falling_back_at_less_than_on_demand() -> None:
    plan = plan_of(ONE_ZONE, TIGHT)
    assert options(plan) == ["spot", "on_demand"]
    launch, baseline = plan.launch, plan.savings
    assert launch is not None and baseline is not None and baseline.saved_usd is not None
    assert launch.strategy == "spot_with_fallback"
    assert baseline.saved_usd > 0
    assert launch.p_meet_deadline is not None and launch.p_meet_spot_only_ratio is not None
    assert launch.p_meet_deadline >= 0.9 > launch.p_meet_spot_only_ratio
    assert 0 < launch.p_on_demand_needed_ratio < 1
    assert plan.hours <= TIGHT
    assert launch.cost_p10_usd <= plan.total_usd <= launch.cost_p90_usd
    assert launch.p10_hours <= plan.hours <= launch.p90_hours
    assert plan.total_usd == sum((cost.amount_usd for line in plan.lines for cost in line.costs), Decimal(0))
    assert any("spot alone would meet the deadline with" in text for text in launch.why)
    assert any("not published" in text for text in launch.notes)


def test_spot_alone_is_left_to_where_it_meets_the_confidence() -> None:
    tight = answer(ONE_ZONE, TIGHT, spot={"fallback": "none"})
    assert options(tight.plan) == ["on_demand"]
    assert {"deadline", "confidence"} & {count.name for count in tight.plan.filters}
    loose = plan_of(ONE_ZONE, LOOSE)
    assert options(loose) == ["spot"]
    assert loose.launch is not None and loose.launch.strategy == "spot"
    assert loose.launch.p_on_demand_needed_ratio == 0


def test_without_a_deadline_nothing_has_to_fall_back() -> None:
    plan = plan_of(ONE_ZONE, None)
    assert options(plan) == ["spot"]
    assert plan.launch is not None and plan.launch.p_meet_deadline is None


def test_several_zones_are_recommended_with_the_reason() -> None:
    one, three = plan_of(ONE_ZONE, TIGHT), plan_of(THREE_ZONES, TIGHT)
    assert options(three) == ["spot", "spot", "spot", "on_demand"]
    assert three.launch is not None and one.launch is not None
    assert three.total_usd < one.total_usd
    assert three.launch.p_on_demand_needed_ratio < one.launch.p_on_demand_needed_ratio
    assert (
        three.launch.cost_p90_usd - three.launch.cost_p10_usd
        < one.launch.cost_p90_usd - one.launch.cost_p10_usd
    )
    assert any("one zone would cost" in text for text in three.launch.why)
    assert {place.offer_id for place in three.launch.places} == {line.offer_id for line in three.lines[:3]}
    single = plan_of(THREE_ZONES, TIGHT, spot={"zones": "single"})
    assert options(single) == ["spot", "on_demand"]


def test_a_checkpoint_carried_between_regions_is_paid_for() -> None:
    plan = plan_of(TWO_REGIONS, TIGHT)
    assert len({line.region for line in plan.lines if line.purchase_option == "spot"}) == 2
    carried = [cost for line in plan.lines for cost in line.costs if "between regions" in cost.label]
    assert len(carried) == 1 and carried[0].amount_usd > 0
    # the data set lies in both regions, each charged once
    copies = [cost.label for line in plan.lines for cost in line.costs if cost.kind == "data_storage"]
    assert copies.count("data set in object storage") == 2


def test_spot_at_the_on_demand_price_is_no_discount() -> None:
    for price in ("3.00", "3.50"):
        made = answer([on_demand(), spot(price)], LOOSE)
        assert options(made.plan) == ["on_demand"]
        assert any(
            "not a discount" in count.description
            for count in made.plan.filters
            if count.name == "no_discount"
        )
    assert options(answer([on_demand(), spot("2.99")], None).plan) != []


def test_on_demand_that_takes_long_to_get_is_asked_for_earlier() -> None:
    quick, slow = (
        plan_of(ONE_ZONE, TIGHT),
        plan_of(ONE_ZONE, TIGHT, assumptions={"on_demand_acquire_s": 10_800}),
    )
    assert quick.launch is not None and slow.launch is not None
    assert slow.launch.p_on_demand_needed_ratio > quick.launch.p_on_demand_needed_ratio
    assert slow.launch.on_demand_acquire_s == 10_800


def test_the_notice_is_compared_with_the_checkpoint() -> None:
    small = plan_of(ONE_ZONE, LOOSE)
    dear = [on_demand("30.00"), spot(zone="use1-az1")]
    large = plan_of(dear, LOOSE, checkpoint={"export": False, "size": "200GB", "interval": "1h"})
    assert small.launch is not None and large.launch is not None
    assert (small.launch.checkpoints.notice_s, small.launch.checkpoints.fits_in_notice) == (120.0, True)
    assert not large.launch.checkpoints.fits_in_notice
    assert large.launch.checkpoints.notice_source


def test_a_declared_quota_of_on_demand_keeps_it_from_being_the_fall_back() -> None:
    quota = {
        "provider": "aws",
        "quota": "L-417A185B",
        "limit": 4,
    }  # Running On-Demand P instances, 8 vCPU needed
    made = answer(ONE_ZONE, TIGHT, constraints={"quota": [quota]})
    assert "on_demand" not in options(made.plan)


def test_the_milp_chooses_the_same() -> None:
    from tests.planner.spine_catalogs import make_world, plan_on, work

    job = work(constraints={"max_nodes": 2, "deadline": "20h"})
    exact = plan_on(make_world(THREE_ZONES), job).plan
    by_milp = plan_on(make_world(THREE_ZONES), job, solver="milp").plan
    assert (by_milp.lines, by_milp.total_usd) == (exact.lines, exact.total_usd)


@pytest.mark.parametrize("fmt", ["table", "md"])
def test_every_format_tells_what_to_expect(fmt: str) -> None:
    text = str(render_answer(plan_answer(plan_of(THREE_ZONES, TIGHT), details=("all",)), fmt))
    for words in (
        "spot in 3 zones",
        "on-demand is needed with",
        "P10-P90",
        "one fits into",
        "one zone would cost",
    ):
        assert words in " ".join(text.split()), words
    assert "launch" in str(render_answer(plan_answer(plan_of(THREE_ZONES, TIGHT)), "csv"))


def _hours(plan: dict[str, Any]) -> None:
    plan["lines"][-1]["billed_hours"] = str(float(plan["lines"][-1]["billed_hours"]) / 3)


def _less_spot(plan: dict[str, Any]) -> None:
    plan["launch"]["spot_hours"] /= 2


def _chance(plan: dict[str, Any]) -> None:
    plan["launch"]["p_meet_deadline"] = 0.5


def _fits(plan: dict[str, Any]) -> None:
    plan["launch"]["checkpoints"]["write_s"] = 500.0


def _range(plan: dict[str, Any]) -> None:
    plan["launch"]["cost_p90_usd"] = "0.01"


def _no_fallback(plan: dict[str, Any]) -> None:
    plan["lines"] = plan["lines"][:-1]


def _other_size(plan: dict[str, Any]) -> None:
    plan["lines"][0]["nodes"] = 2


def _silence(plan: dict[str, Any]) -> None:
    plan["launch"] = None


def _free_transfer(plan: dict[str, Any]) -> None:
    for line in plan["lines"]:
        line["costs"] = [cost for cost in line["costs"] if "between regions" not in cost["label"]]


def _place(plan: dict[str, Any]) -> None:
    plan["launch"]["places"] = plan["launch"]["places"][:1]


TAMPERED = [
    _hours,
    _less_spot,
    _chance,
    _fits,
    _range,
    _no_fallback,
    _other_size,
    _silence,
    _free_transfer,
    _place,
]


@pytest.mark.parametrize("change", TAMPERED)
def test_a_changed_plan_does_not_verify(change: Callable[[dict[str, Any]], None]) -> None:
    made = answer(TWO_REGIONS, TIGHT)
    plan = made.plan.to_dict()
    assert verify_plan(plan, made.context.asked.workload, made.context.market.offer_set.offers) == []
    changed = copy.deepcopy(plan)
    change(changed)
    assert verify_plan(changed, made.context.asked.workload, made.context.market.offer_set.offers)


def test_a_plan_saved_before_launch_was_told_still_verifies() -> None:
    made = answer(ONE_ZONE, LOOSE)
    plan = made.plan.to_dict()
    del plan["launch"]
    assert verify_plan(plan, made.context.asked.workload) == []


def test_a_further_zone_never_costs_more() -> None:
    before = None
    for offers in (
        THREE_ZONES[:2],
        THREE_ZONES[:3],
        THREE_ZONES,
        [*THREE_ZONES, spot("0.80", region="eu-west-1")],
    ):
        plan = plan_of(offers, TIGHT)
        assert not_dearer(plan.total_usd, before)
        before = plan.total_usd


def test_a_fleet_on_spot_says_what_to_expect() -> None:
    fleet: dict[str, Any] = {"kind": "fleet", "fleet": {"runs": 40}, "spot": {"fallback": "none"}}
    training = {"samples": 500_000, "global_batch": 256, "sequence_length": 128, "precision": "fp16"}
    calm = answer([on_demand()], 12.0, max_nodes=8, training=training, **fleet).plan
    assert calm.status == "planned" and calm.launch is None
    plan = answer([on_demand("30.0"), spot("0.30")], 24.0, max_nodes=8, training=training, **fleet).plan
    assert plan.status == "planned" and "spot" in options(plan)
    launch = plan.launch
    assert launch is not None and launch.strategy == "spot_in_fleet"
    assert launch.p_meet_deadline is not None and 0.5 < launch.p_meet_deadline < 1
    assert launch.cost_p10_usd < plan.total_usd < launch.cost_p90_usd
    assert launch.p10_hours <= plan.hours <= launch.p90_hours
    assert launch.spot_hours > 0 and launch.checkpoints.notice_s == 120.0
    assert "independent workers" in str(render_answer(plan_answer(plan), "md"))


def test_replays_are_a_second_opinion() -> None:
    from planner.asked.options import Options
    from tests.planner.spine_catalogs import NOW, make_world, plan_on, work

    assert Options(NOW).replays == 0
    job = work(constraints={"max_nodes": 1, "deadline": "20h"})
    plan = plan_on(make_world(TWO_REGIONS), job, replays=60).plan
    assert plan.launch is not None and plan.launch.replay is not None
    seen = plan.launch.replay
    assert (seen.policy, seen.futures) == ("survival", 60)
    # on-demand comes whenever it is asked for; runs too slow for it are late in both
    assert plan.launch.p_on_demand_had_ratio == 1.0 and plan.launch.p_meet_deadline is not None
    assert seen.p_meet_deadline == pytest.approx(plan.launch.p_meet_deadline, abs=0.03)
    assert float(seen.cost_p90_usd) == pytest.approx(float(plan.launch.cost_p90_usd), rel=0.2)
    assert seen.cost_p10_usd <= seen.expected_cost_usd <= seen.cost_p90_usd
    assert float(seen.expected_cost_usd) == pytest.approx(float(plan.total_usd), rel=0.35)
    assert "60 futures, policy survival" in " ".join(
        str(render_answer(plan_answer(plan, details=("risk",)), "table")).split()
    )
    alone = plan_on(make_world(ONE_ZONE), work(constraints={"max_nodes": 1}), replays=10).plan
    assert alone.launch is not None and alone.launch.replay is None  # no deadline: nothing to replay to


def test_zones_of_one_set_are_of_one_type_though_another_performs_the_same() -> None:
    twin = replace(V100, instance_type="p3.2xlarge-twin")
    offers = [
        *THREE_ZONES,
        on_demand("3.00", twin),
        *(spot(price, zone, twin) for price, zone in (("0.91", "use1-az1"), ("0.92", "use1-az4"))),
    ]
    plan = plan_of(offers, TIGHT)
    assert len(plan.lines) > 2
    assert len({line.instance_type for line in plan.lines}) == 1


def test_a_fall_back_never_makes_the_plan_dearer_than_several_zones_of_spot_alone() -> None:
    for confidence in (0.5, 0.7, 0.8, 0.9):
        for deadline in (TIGHT, 1.5 * TIGHT, 2 * TIGHT):
            alone = answer(THREE_ZONES, deadline, confidence, spot={"fallback": "none"}).plan
            either = answer(THREE_ZONES, deadline, confidence).plan
            assert either is not None
            assert alone is None or not_dearer(either.total_usd, alone.total_usd)
