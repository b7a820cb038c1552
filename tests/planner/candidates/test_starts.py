"""Waiting to start: every way to buy has one, inside the deadline, in the chance to meet it, and on the plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from catalogs.tariffs import load_tariffs
from planner.inputs.schema import Constraints
from planner.judge.capacity_waits import booked_from, start_of
from planner.judge.judge import judge_plan
from planner.market.model import Market
from planner.market.obtainable import largest_requests, most_obtainable
from planner.market.starts import load_starts, starts_of
from planner.plan.ids import TimePartId
from planner.plan.model import Plan
from planner.plan.report_rows import flat_rows
from tests.planner.spine_catalogs import (
    A100X8,
    NAN,
    V100,
    Offer,
    loaded,
    make_catalog,
    plan_on,
    work,
)

START = datetime(2026, 11, 20, tzinfo=UTC)


def asked(**limits: Any) -> dict[str, Any]:
    """A small job that waits as assumed."""
    job = work(constraints=limits)
    if "waiting" not in limits:
        del job["constraints"]["waiting"]
    return job


def market_of(offers: list[Offer]) -> Market:
    return plan_on(make_catalog(offers), work()).context.market


def part(plan: Plan, name: TimePartId) -> float:
    return sum(one.hours for one in plan.timeline if one.id is name)


def test_every_row_of_the_table_names_its_source_and_when() -> None:
    for rule in load_starts():
        assert rule.basis in ("assumed", "recorded") and rule.source and rule.as_of
        assert rule.accelerators > 0 and 0 <= rule.never_ratio < 0.5 and rule.hours >= 0


def test_large_on_demand_clusters_wait_longer_and_come_less_often() -> None:
    world = market_of([Offer(A100X8, "us-east-1", "98.00")])
    known = starts_of(world.offer_set, (), most_obtainable(world.offer_set, ()), START)
    row, nodes = np.zeros(3, dtype=np.int64), np.array([1, 8, 32])
    # 8, 64, 256 of the 256 that asking brings
    assert known.hours(row, nodes) == pytest.approx([6 / 32, 1.5, 6.0])
    assert known.had(row, nodes) == pytest.approx([1 - 0.05 / 32, 0.9875, 0.95])


@pytest.mark.parametrize(
    ("start", "hours"), [("2026-11-20T00:00", 35.5), ("2026-11-20T11:30", 24.0), ("2026-11-20T12:00", 47.5)]
)
def test_a_capacity_block_begins_at_its_hour_of_the_day(start: str, hours: float) -> None:
    """A day of lead, then the next 11:30 UTC."""
    world = market_of([Offer(V100, "us-east-1", "3.00", "capacity_block")])
    at = datetime.fromisoformat(start).replace(tzinfo=UTC)
    known = starts_of(world.offer_set, (), most_obtainable(world.offer_set, ()), at)
    assert known.hours(np.array([0]), np.array([4])) == pytest.approx([hours])
    assert known.has_calendar.all()
    assert known.had(np.array([0]), np.array([4])) == pytest.approx([1.0])  # firm once it is bought


@pytest.mark.parametrize(
    ("provider", "option", "planned", "hours"),
    [
        ("aws", "capacity_block", "2026-11-13T00:00", 11.5), ("aws", "capacity_block", "2026-11-19T18:00", 35.5),
        ("aws", "capacity_block", "2026-11-25T00:00", 35.5), ("azure", "capacity_block", "2026-11-13T00:00", 0.0),
        ("azure", "capacity_block", "2026-11-19T18:00", 18.0), ("gcp", "future_reservation", "2026-11-20T00:00", 24.0),
        ("aws", "on_demand", "2026-11-13T00:00", 6 * 4 / 512),
    ],
)  # fmt: skip
def test_what_is_booked_ahead_is_booked_when_it_is_planned(
    provider: str, option: str, planned: str, hours: float
) -> None:
    """A start a week away, on 2026-11-20, leaves the lead behind; capacity that is asked for at the start waits on."""
    world = market_of([Offer(replace(V100, provider=provider), "us-east-1", "3.00", option)])
    most, at = np.array([np.inf if option != "on_demand" else 512.0]), np.array([0])
    today = datetime.fromisoformat(planned).replace(tzinfo=UTC)
    known = starts_of(world.offer_set, (), most, START, planned=today)
    assert known.hours(at, np.array([4])) == pytest.approx([hours])
    assert known.has_calendar.all() == (option != "on_demand")
    texts = {"provider": provider, "region": "us-east-1", "purchase_option": option, "option_variant": ""}
    offer: Any = SimpleNamespace(
        offer_id="one", text=texts.__getitem__, kind={"accelerator": "v100"}, accelerators=8.0
    )
    judged = start_of(offer, 4, Constraints(obtainable=[]), START, today)
    if option != "on_demand":
        assert judged.mean == pytest.approx(hours)


def test_a_plan_with_a_start_takes_the_block_of_that_day() -> None:
    """Planned on 2026-11-20 for 2026-11-27: the block of 11:30 that day, and the judge agrees."""
    catalog = make_catalog([Offer(V100, "us-east-1", "3.00", "capacity_block")])
    job = asked(deadline="9d") | {"start": "2026-11-27T00:00+00:00"}
    plan, own = plan_on(catalog, job).plan, loaded(job)
    assert part(plan, TimePartId.CAPACITY) == pytest.approx(11.5, abs=0.1)
    assert judge_plan(plan.to_dict(), own.workload, own.sha256, catalog, Path()).finish() == []


@pytest.mark.parametrize(
    ("start", "opens"),
    [(None, None), ("2027-01-15T00:00+00:00", None), ("2027-01-16T00:00+00:00", "2026-11-21")],
)
def test_a_block_says_what_booking_it_means(start: str | None, opens: str | None) -> None:
    """Planned on 2026-11-20: what starts more than eight weeks later cannot be booked yet."""
    job = asked(deadline="100d" if start else "9d") | ({"start": start} if start else {})
    plan = plan_on(make_catalog([Offer(V100, "us-east-1", "3.00", "capacity_block")]), job).plan
    said = next(text for text in plan.warnings if text.startswith("capacity_block of"))
    assert "paid upfront, cannot be cancelled, booked at most 56 days ahead" in said
    assert (f"from {opens}" in said) if opens else ("for this start" not in said)
    block = SimpleNamespace(
        rule=load_tariffs().option_rule("aws", "capacity_block"), text=lambda name: "capacity_block"
    )
    begin = datetime.fromisoformat(plan.start)
    assert booked_from(cast("Any", block), begin, datetime.fromisoformat(plan.created_at)) == (opens or "")


def test_a_block_that_is_paid_for_says_nothing_of_booking() -> None:
    own = {"provider": "aws", "region": "us-east-1", "instance_type": V100.instance_type,
           "purchase_option": "capacity_block", "nodes": 8}  # fmt: skip
    catalog = make_catalog([Offer(V100, "us-east-1", "3.00", "capacity_block")])
    plan = plan_on(catalog, asked(deadline="9d") | {"commitments": [own]}).plan
    assert plan.lines[0].option_variant == "already_owned"
    assert not any("booked" in text for text in plan.warnings)


def test_an_unknown_calendar_is_said_to_be_unknown() -> None:
    offer = Offer(replace(V100, provider="azure"), "us-east-1", "3.00", "capacity_block")
    said = plan_on(make_catalog([offer]), asked(deadline="9d")).plan.warnings
    assert any(
        "whether it can be cancelled is unknown, how far ahead it can be booked is unknown" in text
        for text in said
    )


def test_the_wait_is_part_of_the_hours_the_chance_and_the_plan() -> None:
    offers = [Offer(V100, "us-east-1", "3.06")]
    told = [{"purchase_option": "on_demand", "hours": 5, "never_ratio": 0.04}]
    none = plan_on(
        make_catalog(offers), asked(deadline="72h", waiting=[{"purchase_option": "*", "hours": 0}])
    ).plan
    some = plan_on(make_catalog(offers), asked(deadline="72h", waiting=told)).plan
    assert part(some, TimePartId.CAPACITY) == pytest.approx(5.0)
    assert some.lines[0].nodes == none.lines[0].nodes
    staging = part(none, TimePartId.DATA_STAGING)
    assert some.hours == pytest.approx(none.hours + 5.0 - staging)  # the data come meanwhile
    assert some.starts_in_hours == pytest.approx(5.0 + part(some, TimePartId.PROVISIONING))
    assert {row["starts_in_hours"] for row in flat_rows(some) if row["row"] == "line"} == {
        some.starts_in_hours
    }
    assert some.risk is not None and none.risk is not None
    assert some.risk.p_meet_deadline is not None and none.risk.p_meet_deadline is not None
    assert some.risk.p_meet_deadline <= 0.96 < none.risk.p_meet_deadline


def test_a_deadline_inside_the_wait_is_infeasible_and_a_confidence_that_capacity_lacks_too() -> None:
    offers = [Offer(V100, "us-east-1", "3.06")]
    late = [{"purchase_option": "on_demand", "hours": 100}]
    plan = plan_on(make_catalog(offers), asked(deadline="72h", waiting=late)).plan
    assert plan.status == "infeasible"
    assert any(item.constraint == "deadline" and item.needed >= "1" for item in plan.relaxations)
    rare = [{"purchase_option": "on_demand", "hours": 0, "never_ratio": 0.2}]
    plan = plan_on(make_catalog(offers), asked(deadline="72h", waiting=rare)).plan
    assert plan.status == "infeasible"
    assert any(item.constraint == "confidence" and float(item.needed) <= 0.8 for item in plan.relaxations)


def test_a_fall_back_that_is_assumed_never_makes_the_deadline_certain() -> None:
    offers = [
        Offer(V100, "us-east-1", "0.40", "spot", interruption_band=">20%"),
        Offer(V100, "us-east-1", "3.06"),
    ]
    wait = [{"purchase_option": "on_demand", "hours": 0.5, "never_ratio": 0.05}]
    plans = [
        plan_on(make_catalog(offers), asked(deadline="40h", max_nodes=1, waiting=told)).plan
        for told in ([{"purchase_option": "*", "hours": 0.5}], wait)
    ]
    chances = []
    for plan in plans:
        assert plan.launch is not None and plan.launch.strategy == "spot_with_fallback"
        assert plan.launch.on_demand_acquire_s == pytest.approx(1800.0)
        assert plan.launch.p_meet_deadline is not None
        chances.append(plan.launch.p_meet_deadline)
    alone = plans[1].launch.p_meet_spot_only_ratio if plans[1].launch else None
    # it is late where on-demand does not come and spot alone is too late, which happen together (by 0.43 of a market)
    assert alone is not None
    late = 1.0 - alone / chances[0]
    both = 0.05 * late + 0.43 * (min(0.05, late) - 0.05 * late)
    assert chances[1] == pytest.approx(chances[0] * (1.0 - both), abs=1e-3)
    assert max(alone, chances[0] * 0.95) < chances[1] < 0.99


@pytest.mark.parametrize(
    "option", ["on_demand", "capacity_block", "flex_start", "owned", "reserved_1y", "cud_3y"]
)
@pytest.mark.parametrize("stated", [(), ({"purchase_option": "on_d*", "hours": 3, "never_ratio": 0.1},)])
@pytest.mark.parametrize("most", [16, 256, 1024])
def test_the_judge_reads_the_same_waits(option: str, stated: tuple[dict[str, Any], ...], most: int) -> None:
    limits = loaded(
        asked(
            waiting=list(stated),
            obtainable=[{"accelerator": "a100*", "purchase_option": "on_demand", "accelerators": most}],
        )
    ).workload.constraints
    world = market_of([Offer(A100X8, "us-east-1", "98.00", option, term_hours=NAN)])
    known = starts_of(
        world.offer_set, limits.waiting, largest_requests(world.offer_set, limits.obtainable), START
    )
    names = ("provider", "region", "purchase_option", "option_variant")
    texts = {name: str(world.offer_set.offers[name][0]) for name in names}
    kind = {"accelerator": str(world.offer_set.types["accelerator"][0])}
    offer: Any = SimpleNamespace(offer_id="one", text=texts.__getitem__, kind=kind, accelerators=8.0)
    for nodes in (1, 5, 40):
        wait, at, count = start_of(offer, nodes, limits, START), np.array([0]), np.array([nodes])
        assert (wait.mean, wait.had) == pytest.approx((known.hours(at, count)[0], known.had(at, count)[0]))
        for level, hours in ((0.1, 0.5), (0.5, 3.0), (0.95, 40.0)):
            assert wait.at(level) == pytest.approx(known.at_level(at, count, level)[0])
            assert wait.within(hours) == pytest.approx(known.within(at, count, np.array([hours]))[0])


@pytest.mark.parametrize(("most", "hours"), [(16, 0.375), (256, 0.375), (1024, 0.09375)])
def test_a_limit_on_what_is_obtainable_makes_no_request_slower(most: int, hours: float) -> None:
    """Sixteen accelerators of which no more are to be had arrive as any sixteen do; an agreed quota shortens waits."""
    row = {"accelerator": "a100*", "purchase_option": "on_demand", "accelerators": most}
    limits = loaded(asked(obtainable=[row])).workload.constraints
    world = market_of([Offer(A100X8, "us-east-1", "98.00", "on_demand")])
    known = starts_of(world.offer_set, (), largest_requests(world.offer_set, limits.obtainable), START)
    assert known.hours(np.array([0]), np.array([2]))[0] == pytest.approx(hours)


def test_a_new_commitment_is_no_machine_and_one_that_is_held_is() -> None:
    offers = [
        Offer(A100X8, "us-east-1", "9", "reserved_1y", term_hours=8760.0, option_variant=variant)
        for variant in ("", "already_owned")
    ]
    world = market_of(offers)
    known = starts_of(world.offer_set, (), most_obtainable(world.offer_set, ()), START)
    hours = known.hours(np.array([0, 1]), np.array([64, 64]))
    variants = world.offer_set.offers["option_variant"].tolist()
    assert dict(zip(variants, hours.tolist(), strict=True)) == {"": 48.0, "already_owned": 0.0}
