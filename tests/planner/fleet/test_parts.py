"""Fleets in two parts, where a share of the work is limited: every pair by the judge, laws, limits, forgeries."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.export.launch import launch_of
from planner.fleet import parts
from planner.fleet.alone import grown_sure
from planner.judge.bench import Bench, ImpossibleError
from planner.judge.fleet_fallback_workers import chances_of, charges_of, fleet_of
from planner.judge.fleet_parts import beside_of, both_in_time, chance_beside
from planner.judge.judge import judge_saved
from planner.judge.memory import Memory
from planner.judge.money import total
from planner.judge.purchases import Buy
from planner.plan.front import bought, front
from planner.plan.model import Plan
from planner.plan.outcome import choice_words
from planner.plan.words import quota_lines
from tests.draws import share_of
from tests.planner.fleet.test_fallback import ON_DEMAND, PAIR, QUOTAS, falling_back, planned
from tests.planner.spine_catalogs import (
    A10G,
    L4,
    NOW,
    REGIONS,
    T4,
    V100,
    Offer,
    loaded,
    make_catalog,
    plan_on,
)

CENT = Decimal("0.01")
LIMITS = {"max_nodes": 20, "deadline": "60h"}
FIRM = Offer(V100, "eu-west-1", "3.00")


def in_parts(plan: Plan) -> bool:
    return plan.launch is not None and plan.launch.in_parts


def half_on_spot(runs: int = 6, **wishes: Any) -> dict[str, Any]:
    return falling_back(runs, LIMITS, **({"max_spot_share": 0.5} | wishes))


def test_half_of_the_runs_fall_back_and_the_others_are_on_demand() -> None:
    plan = planned(PAIR, half_on_spot())
    assert in_parts(plan) and plan.launch is not None and plan.run is not None
    assert [line.purchase_option for line in plan.lines] == ["spot", "on_demand", "on_demand"]
    assert plan.lines[0].nodes == plan.lines[1].nodes
    speed = [line.throughput_per_s for line in plan.lines]
    assert speed[2] == pytest.approx(sum(speed) / 2, rel=1e-9)
    assert plan.launch.p_meet_deadline is not None and plan.launch.p_meet_deadline >= 0.9
    assert plan.launch.cost_p10_usd < plan.total_usd < plan.launch.cost_p90_usd
    assert all(usd == round(usd, 2) for usd in (plan.launch.cost_p10_usd, plan.launch.cost_p90_usd))
    assert plan.launch.p10_hours <= plan.hours <= plan.launch.p90_hours
    paid = sum(float(line.billed_hours) * line.nodes for line in plan.lines)
    assert paid == pytest.approx(plan.launch.spot_hours + plan.launch.on_demand_hours, abs=1e-3)


def test_the_parts_cost_what_two_fleets_of_their_runs_cost() -> None:
    whole = planned(PAIR, half_on_spot())
    falling = planned(PAIR, falling_back(3, LIMITS))
    firm = planned([ON_DEMAND], falling_back(3, LIMITS))
    assert in_parts(whole) and falling.launch is not None and falling.launch.in_turn
    assert abs(whole.total_usd - falling.total_usd - firm.total_usd) < CENT
    assert whole.hours == pytest.approx(max(falling.hours, firm.hours), rel=1e-9)
    assert falling.risk is not None and firm.risk is not None and whole.risk is not None
    chances = [one.risk.p_meet_deadline for one in (falling, firm, whole) if one.risk is not None]
    assert chances[2] == pytest.approx((chances[0] or 0.0) + (chances[1] or 0.0) - 1.0, abs=1e-9)


@pytest.mark.parametrize(
    "changes",
    [
        {"spot": {"fallback": "none"}},
        {"constraints": {"purchase_options": ["spot"]}},
        {"constraints": {"min_throughput": {"tokens_per_s": 1.0}}},
        {"constraints": {"deadline": None}},
        {"fleet": {"max_spot_share": 0.0}},
        {"fleet": {"max_spot_share": 1.0}},
        {"fleet": {"runs": 1}},
    ],
)
def test_no_parts_where_none_falls_back_or_one_part_is_cheapest(changes: dict[str, Any]) -> None:
    job = half_on_spot()
    for section, values in changes.items():
        job[section] = {**job.get(section, {}), **values}
    job["constraints"] = {name: value for name, value in job["constraints"].items() if value is not None}
    assert not in_parts(planned([*PAIR, FIRM], job))


def test_a_share_of_each_offer_or_region_sends_the_other_part_elsewhere() -> None:
    for limit in ("max_share_per_offer", "max_share_per_region"):
        job = falling_back(6, LIMITS, **{limit: 0.5})
        plan = planned([*PAIR, FIRM], job)
        assert in_parts(plan) and plan.lines[2].region == FIRM.region
        assert not in_parts(planned(PAIR, job))


def drawn(seed: int) -> tuple[dict[str, Any], list[Offer]]:
    rng = random.Random(seed)
    offers: dict[str, Offer] = {}
    for number in range(rng.randint(1, 3)):
        kind = rng.choice((V100, A10G, L4, T4))
        region, price = rng.choice(REGIONS[kind.provider]), rng.randint(60, 400) / 100
        band = rng.choice(["", "<5%", "10-15%", ">20%"]) if kind.provider == "aws" else ""
        capacity = float(rng.choice([1, 2, 4, 99]))
        pair = [
            Offer(kind, region, str(price), capacity=capacity),
            Offer(kind, region, f"{price * rng.uniform(0.2, 0.95):.4f}", "spot", interruption_band=band),
        ]
        for one in pair[: 2 if number < 2 else 1]:
            offers[one.offer_id] = one
    limits = {"max_nodes": rng.randint(2, 6), "deadline": f"{rng.choice([6, 9, 16, 40])}h"}
    shares = rng.choice([{"max_spot_share": rng.choice([0.25, 0.5, 0.75])}, {"max_share_per_offer": 0.5},
                         {"max_share_per_region": 0.6}, {"max_spot_share": 0.5, "max_regions": 1}])  # fmt: skip
    runs = rng.choice([2, 3, 4, 6])
    if rng.random() < 0.25:
        shares = {}
    return falling_back(runs, limits, **shares), [*offers.values()]


def _falling(job: dict[str, Any]) -> int:
    """The most runs that may fall back."""
    names = ("max_spot_share", "max_share_per_offer", "max_share_per_region")
    least = min((job["fleet"][name] for name in names if name in job["fleet"]), default=1.0)
    return int(least * job["fleet"]["runs"] + 1e-9)


def _least(
    bench: Bench, offers: list[Offer], job: dict[str, Any], wanted: tuple[float, ...]
) -> list[float | None]:
    """The cheapest fleet at each chance wanted, by the judge's code: every division, pair and number of workers."""
    best: list[float | None] = [None] * len(wanted)
    all_runs, firm = job["fleet"]["runs"], [one for one in offers if one.purchase_option == "on_demand"]
    for falling in range(1, _falling(job) + 1):
        first = [
            (*made, (spot, later), count)
            for spot in offers
            for later in firm
            for count in range(1, falling + 1)
            if spot.purchase_option == "spot"
            and later.machine == spot.machine
            and later.region == spot.region
            for made in _first(bench, (spot, later), count, falling)
        ]
        rest = all_runs - falling
        second: list[tuple[float, float, Offer | None, int]] = [
            (*made, other, count)
            for other in firm
            for count in range(1, rest + 1)
            for made in _second(bench, other, count, rest)
        ]
        for one in first:
            for other in second if rest else [(0.0, 1.0, None, 0)]:
                if _fits(job, (*one[2], other[2]), one[3], other[3], rest / all_runs):
                    meet, usd = both_in_time(one[1], other[1]), one[0] + other[0]
                    for at, chance in enumerate(wanted):
                        known = best[at]
                        if meet >= chance and (known is None or usd < known):
                            best[at] = usd
    return best


def _first(bench: Bench, offers: tuple[Offer, Offer], count: int, falling: int) -> list[tuple[float, float]]:
    """Cost and chance of workers that fall back; empty where they are too many or too late."""
    spot, later = (bench.goods.offer("", one.offer_id) for one in offers)
    if count > min(spot.capacity, later.capacity):
        return []
    try:
        now = fleet_of(bench, spot, later, 1, count, falling)
    except ImpossibleError:
        return []
    situation, course = now.most.situation, now.most.course
    assert situation is not None and course is not None
    slack = situation.room - situation.course.restart - situation.acquire - situation.steady
    if slack < 0 or now.most.hours > bench.deadline_hours + 1e-9 or course.share >= 0.999:
        return []
    meet = chances_of(bench, now)[0]
    return (
        [(float(sum(total(charges) for charges, _ in charges_of(bench, now)[1])), meet)]
        if meet >= 0.89
        else []
    )


def _second(bench: Bench, offer: Offer, count: int, runs: int) -> list[tuple[float, float]]:
    """Cost and chance of on-demand workers that do `runs`; empty where a slow run ends too late."""
    made = beside_of(bench, Buy(bench.goods.offer("", offer.offer_id), 1), count, runs)
    if made.worker.slow_end > bench.deadline_hours * (1 + 1e-9):
        return []
    return [(float(total(made.bought[0][0])), chance_beside(bench, made))]


def _fits(
    job: dict[str, Any], offers: tuple[Offer, Offer, Offer | None], count: int, beside: int, rest: float
) -> bool:
    """Whether both together keep machines, capacity and the shares; `rest`: of the work, by the second part."""
    spot, later, other = offers
    at_other = beside + (count if other is not None and other.offer_id == later.offer_id else 0)
    if count + beside > job["constraints"]["max_nodes"]:
        return False
    if other is None:
        return True
    if at_other > other.capacity:
        return False
    limits, apart = (
        job["fleet"],
        spot.region != other.region or spot.machine.provider != other.machine.provider,
    )
    offer_share = 1.0 if other.offer_id == later.offer_id else rest
    if offer_share > limits.get("max_share_per_offer", 1.0) + 1e-9:
        return False
    if (rest if apart else 1.0) > limits.get("max_share_per_region", 1.0) + 1e-9:
        return False
    return not (apart and limits.get("max_regions") == 1)


def check_parts(seed: int) -> bool:
    """The answer costs no more than any pair, nor than the same question without fall-backs, and is one of them."""
    job, offers = drawn(seed)
    catalog = make_catalog(offers)
    plan = plan_on(catalog, job, gap=0.0).plan
    bench = Memory(catalog, Path()).bench(loaded(job).workload, NOW)
    least, most = _least(bench, offers, job, (0.9 + 3e-5, 0.9 - 1e-6)) if _falling(job) else (None, None)
    if plan.status == "infeasible":
        assert least is None, seed
        return False
    assert plan.risk is not None and plan.risk.p_meet_deadline is not None, seed
    assert plan.risk.p_meet_deadline >= 0.9 - 1e-9, seed
    assert least is None or float(plan.total_usd) <= least * (1.0 + 1e-4), seed
    if in_parts(plan):
        assert most is not None and float(plan.total_usd) >= most * (1.0 - 1e-4), seed
    return in_parts(plan)


def test_parts_equal_every_division_by_the_judge() -> None:
    count = share_of(24)
    assert sum(check_parts(seed) for seed in range(count)) >= count / 8


@pytest.mark.parametrize("option", ["spot", "on_demand"])
def test_quotas_count_the_workers_of_both_parts(option: str) -> None:
    job = falling_back(8, {"max_nodes": 8, "deadline": "12h"}, max_spot_share=0.5)
    free = planned(PAIR, job)
    assert in_parts(free)
    needed = sum(line.nodes for line in free.lines if line.purchase_option == option)
    quota = {"provider": "aws", "region": "us-east-1", "quota": QUOTAS[option], "unit": "instances"}
    enough = {**job["constraints"], "quota": [{**quota, "limit": needed}]}
    assert planned(PAIR, {**job, "constraints": enough}).total_usd == free.total_usd
    short = {**job["constraints"], "quota": [{**quota, "limit": needed - 1}]}
    bound = planned(PAIR, {**job, "constraints": short})
    drawn = sum(line.nodes for line in bound.lines if line.purchase_option == option)
    assert bound.status == "infeasible" or (drawn < needed and bound.total_usd >= free.total_usd)


def test_machines_at_once_are_those_of_both_parts_and_not_of_three_lines() -> None:
    plan = planned(PAIR, half_on_spot())
    at_once = plan.lines[0].nodes + plan.lines[2].nodes
    job = half_on_spot()
    same = {**job, "constraints": {**job["constraints"], "max_nodes": at_once}}
    assert planned(PAIR, same).total_usd == plan.total_usd
    assert len(quota_lines(plan)) == 3  # spot and on-demand of AWS have quotas of their own


def test_a_budget_holds_both_parts() -> None:
    job = half_on_spot()
    free = planned(PAIR, job)
    enough = {**job["constraints"], "budget_usd": float(free.total_usd + CENT)}
    assert planned(PAIR, {**job, "constraints": enough}).total_usd == free.total_usd
    short = {**job["constraints"], "budget_usd": float(free.total_usd - CENT)}
    none = planned(PAIR, {**job, "constraints": short})
    assert none.status == "infeasible"
    (change,) = none.relaxations
    assert change.constraint == "budget"
    assert free.total_usd <= Decimal(change.needed.removeprefix("$")) < free.total_usd + CENT


@pytest.mark.parametrize("way", ["object", "local_nvme"])
def test_pairs_are_compared_by_what_they_cost(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part pays for the requests of its own runs, in the search as on the bill."""
    seen: list[parts.Parts] = []

    def see(_: object, one: parts.Parts) -> bool:
        seen.append(one)
        return True

    monkeypatch.setattr(parts._Search, "_is_within_budget", see)
    planned([*PAIR, FIRM], {**half_on_spot(), "storage": {"data": way}, "data": {"size": "50GB"}})
    assert seen
    for one in seen:
        search = one.asked.found
        usd = one.falling.cost_usd(search)[0] + one.firm.cost_usd(search)[0]
        assert usd == pytest.approx(float(parts.bill_of_parts(one)[0]), abs=1e-6)


@pytest.mark.parametrize(("limit", "most"), [({"max_nodes": 1}, 0), ({"budget_usd": 14.0}, 2)])
def test_pairs_beyond_a_limit_cost_no_search(
    limit: dict[str, Any], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[float] = []

    def grow(search: Any, one: Any, wanted: float) -> Any:
        tried.append(wanted)
        return grown_sure(search, one, wanted)

    monkeypatch.setattr(parts, "grown_sure", grow)
    job = half_on_spot()
    offers = [*PAIR, *(replace(FIRM, region=region) for region in REGIONS["aws"] if region != PAIR[0].region)]
    plan = planned(offers, {**job, "constraints": {**job["constraints"], **limit}})
    assert not in_parts(plan) and len(tried) <= most


def test_the_screen_says_what_falls_back_and_each_part_starts_its_own_runs() -> None:
    plan = planned(PAIR, half_on_spot(runs=7, max_spot_share=0.3))
    assert "in time with at least " in str(front(plan))
    text = bought(plan)
    assert "spot, else on_demand in aws/us-east-1" in text and "(29 %" in text
    assert "on_demand" in choice_words(plan).split(" + ")[1]
    assert "export PLAN.json --to skypilot" in str(front(plan))
    first, second = launch_of(plan).parts
    assert [(part.begin, part.tasks, part.all_tasks) for part in (first, second)] == [(0, 2, 7), (2, 5, 7)]
    assert [part.instances for part in (first, second)] == [plan.lines[0].nodes, plan.lines[2].nodes]
    assert (first.moves, second.moves) == (True, False)


def test_a_plan_in_parts_verifies_itself_and_a_broken_one_does_not() -> None:
    job, catalog = half_on_spot(), make_catalog(PAIR)
    answer = json.loads(json.dumps(plan_on(catalog, job).plan.to_dict()))

    def faults(changed: dict[str, Any], asked: dict[str, Any] = job) -> tuple[str, ...]:
        return tuple(judge_saved(changed, loaded(asked), memory=Memory(catalog, Path())).faults)

    assert faults(answer) == ()
    less = half_on_spot(max_spot_share=0.4)
    assert any("shares allow 2" in fault for fault in faults(answer, less))
    for name in ("max_share_per_offer", "max_share_per_region"):
        # on-demand of both parts is in one place, which may have to do all
        apart = falling_back(6, LIMITS, **{"max_spot_share": 0.5, name: 0.5})
        assert any(f"in one place: {name}" in fault for fault in faults(answer, apart)), name
    few = {**job, "constraints": {**job["constraints"], "max_nodes": 1}}
    assert any("max_nodes" in fault for fault in faults(answer, few))
    other = json.loads(json.dumps(answer))
    other["launch"]["p_meet_deadline"] = other["risk"]["p_meet_deadline"] = 0.95
    assert any("p_meet_deadline" in fault for fault in faults(other))
    moved = json.loads(json.dumps(answer))
    assert moved["choices"][1]["kinds"] == ["one_offer", "on_demand"]
    moved["choices"][1]["kinds"].reverse()
    assert any("its kinds are not in their order" in fault for fault in faults(moved))
