"""Fleets whose workers fall back on on-demand: a single job for one run, every number of workers by the judge, laws."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.candidates.plan_parts.launch import quantile
from planner.candidates.ways.outcomes import Task, possible_outcomes
from planner.fleet import fallback_search, parts
from planner.fleet.fallback_launch import shrink_of, usd_of_workers
from planner.fleet.luck import luck_at
from planner.judge.bench import Bench, ImpossibleError
from planner.judge.fleet_fallback_workers import chances_of, charges_of, fleet_of
from planner.judge.judge import judge_saved
from planner.judge.lines import verify_plan
from planner.judge.memory import Memory
from planner.judge.money import total
from planner.plan.model import Plan
from planner.spot.distribution import SpotPool
from planner.workloads.answer import Answer
from tests.draws import draws, share_of
from tests.planner.fleet.simulate_fallback import Worker, fleet_costs
from tests.planner.fleet.test_spine_fleet import fleet
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
    not_dearer,
    plan_on,
)

SPOT = Offer(A10G, "us-east-1", "0.30", "spot")
ON_DEMAND = Offer(A10G, "us-east-1", "1.10")
PAIR = [SPOT, ON_DEMAND]
CENT = Decimal("0.01")
QUOTAS = {"spot": "All G and VT Spot Instance Requests", "on_demand": "Running On-Demand G and VT instances"}


def falling_back(runs: int, limits: dict[str, Any] | None = None, **wishes: Any) -> dict[str, Any]:
    """A fleet whose spot may fall back, as is the default."""
    return {name: section for name, section in fleet(runs, limits, **wishes).items() if name != "spot"}


def planned(offers: list[Offer], job: dict[str, Any]) -> Plan:
    return plan_on(make_catalog(offers), job, gap=0.0).plan


def falls_back(plan: Plan) -> bool:
    return plan.launch is not None and plan.launch.strategy == "spot_with_fallback"


def workers(plan: Plan) -> int:
    return plan.lines[0].nodes


def test_spot_without_a_record_runs_with_a_fallback() -> None:
    plan = planned(PAIR, falling_back(6, {"max_nodes": 20, "deadline": "60h"}))
    assert falls_back(plan) and plan.launch is not None
    assert [line.purchase_option for line in plan.lines] == ["spot", "on_demand"]
    assert [line.nodes for line in plan.lines] == [workers(plan)] * 2
    assert plan.launch.p_meet_deadline is not None and plan.launch.p_meet_spot_only_ratio is not None
    assert plan.launch.p_meet_deadline >= max(0.9, plan.launch.p_meet_spot_only_ratio)
    assert plan.launch.cost_p10_usd < plan.total_usd < plan.launch.cost_p90_usd
    assert plan.launch.p10_hours <= plan.hours <= plan.launch.p90_hours <= 60.0
    paid = sum(float(line.billed_hours) * line.nodes for line in plan.lines)
    assert paid == pytest.approx(plan.launch.spot_hours + plan.launch.on_demand_hours, abs=1e-6)
    assert plan.savings is not None and plan.savings.saved_usd is not None and plan.savings.saved_usd > 0


@pytest.mark.parametrize(
    "changes",
    [
        {"spot": {"fallback": "none"}},
        {"constraints": {"purchase_options": ["spot"]}},
        {"constraints": {"min_throughput": {"tokens_per_s": 1.0}}},
        {"fleet": {"max_spot_share": 0.5}},
        {"fleet": {"max_share_per_offer": 0.5}},
        {"constraints": {"deadline": None}},
    ],
)
def test_no_fallback_where_it_is_not_wanted_or_a_share_is_limited(changes: dict[str, Any]) -> None:
    job = falling_back(6, {"max_nodes": 20, "deadline": "60h"})
    for section, values in changes.items():
        job[section] = {**job.get(section, {}), **values}
    job["constraints"] = {name: value for name, value in job["constraints"].items() if value is not None}
    assert not falls_back(planned([*PAIR, Offer(V100, "us-east-1", "3.00")], job))


def test_a_fallback_is_dearer_of_the_same_type_and_region() -> None:
    job = falling_back(6, {"max_nodes": 20, "deadline": "60h"})
    elsewhere = replace(ON_DEMAND, region="eu-west-1")
    for other in (elsewhere, replace(ON_DEMAND, price_per_hour="0.30"), Offer(V100, "us-east-1", "3.00")):
        assert not falls_back(planned([SPOT, other], job))


@pytest.mark.parametrize(
    ("kind", "deadline"),
    [
        *((A10G, deadline) for deadline in ("3h", "5h", "9h", "30h", "200h")),
        (T4, "9h"),
        (L4, "5h"),
        (L4, "30h"),
    ],
)
def test_a_fleet_of_one_run_costs_what_the_job_costs(kind: Any, deadline: str) -> None:
    """In one place; a job may also use several zones, and a fall-back in another region."""
    region = REGIONS[kind.provider][0]
    offers = [Offer(kind, region, "0.30", "spot"), Offer(kind, region, "1.10")]
    one = falling_back(1, {"max_nodes": 1, "deadline": deadline})
    one["assumptions"] = {"beside_steps_ratio": 0, "whole_run_log_sd": 0}  # costs that two cents are much of
    job = {**{name: section for name, section in one.items() if name != "fleet"}, "kind": "training"}
    single, alone = planned(offers, job), planned(offers, one)
    assert single.status == alone.status
    if single.status != "planned":
        return
    assert [line.offer_id for line in single.lines] == [line.offer_id for line in alone.lines]
    assert abs(single.total_usd - alone.total_usd) < CENT
    assert alone.hours == pytest.approx(single.hours, rel=1e-9)
    if falls_back(single):
        assert single.launch is not None and alone.launch is not None
        for name in (
            "spot_hours",
            "on_demand_hours",
            "waiting_hours",
            "lost_hours",
            "expected_interruptions",
        ):
            assert getattr(alone.launch, name) == pytest.approx(getattr(single.launch, name), rel=1e-6), name
        for name in ("cost_p10_usd", "cost_p90_usd"):
            assert abs(getattr(alone.launch, name) - getattr(single.launch, name)) <= 2 * CENT, name


def _drawn(seed: int) -> tuple[dict[str, Any], list[Offer]]:
    rng = random.Random(seed)
    offers: dict[str, Offer] = {}
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice((V100, A10G, L4, T4))
        region, price = rng.choice(REGIONS[kind.provider]), rng.randint(60, 400) / 100
        band = rng.choice(["", "<5%", "10-15%", ">20%"]) if kind.provider == "aws" else ""
        capacity = float(rng.choice([1, 2, 4, 99]))
        for one in (
            Offer(kind, region, str(price), capacity=capacity),
            Offer(kind, region, f"{price * rng.uniform(0.2, 0.95):.4f}", "spot", interruption_band=band),
        ):
            offers[one.offer_id] = one
    limits = {"max_nodes": rng.randint(1, 6), "deadline": f"{rng.choice([4, 6, 9, 16, 40])}h"}
    return falling_back(rng.choice([1, 2, 3, 5, 8]), limits), [*offers.values()]


def _least(
    bench: Bench, offers: list[Offer], job: dict[str, Any], wanted: tuple[float, ...]
) -> list[float | None]:
    """The cheapest fleet that falls back at each chance wanted, by the judge's own code: every number of workers."""
    best: list[float | None] = [None] * len(wanted)
    runs, limit = job["fleet"]["runs"], job["constraints"]["max_nodes"]
    for spot in (one for one in offers if one.purchase_option == "spot"):
        same = [
            one for one in offers if one.machine == spot.machine and one.region == spot.region and one != spot
        ]
        for later in same:
            goods = [bench.goods.offer("", one.offer_id) for one in (spot, later)]
            for count in range(1, min(limit, runs if runs > 1 else limit) + 1):
                if count > min(offer.capacity for offer in goods):
                    continue
                try:
                    now = fleet_of(bench, goods[0], goods[1], 1, count)
                except ImpossibleError:
                    continue
                meet, _, _ = chances_of(bench, now)
                situation, course = now.most.situation, now.most.course
                assert situation is not None and course is not None
                slack = situation.room - situation.course.restart - situation.acquire - situation.steady
                late = now.most.hours > bench.deadline_hours + 1e-9 or course.share >= 0.999
                if meet < min(wanted) or slack < 0 or late:
                    continue
                usd = float(sum(total(charges) for charges, _ in charges_of(bench, now)[1]))
                for at, chance in enumerate(wanted):
                    known = best[at]
                    if meet >= chance and (known is None or usd < known):
                        best[at] = usd
    return best


def check_fallback(seed: int) -> bool:
    """The answer costs no more than any fleet that falls back, and is one where it costs less than all others."""
    job, offers = _drawn(seed)
    catalog = make_catalog(offers)
    plan = plan_on(catalog, job, gap=0.0).plan
    without = plan_on(catalog, {**job, "fleet": {**job["fleet"], "max_share_per_offer": 1.0}}, gap=0.0).plan
    assert without.total_usd == plan.total_usd, seed  # a share of all limits nothing
    bench = Memory(catalog, Path()).bench(loaded(job).workload, NOW)
    least, most = _least(bench, offers, job, (0.9 + 1e-6, 0.9 - 1e-6))
    if plan.status == "infeasible":
        assert least is None, seed
        return False
    assert plan.risk is not None and plan.risk.p_meet_deadline is not None, seed
    assert plan.risk.p_meet_deadline >= 0.9 - 1e-9, seed
    assert least is None or float(plan.total_usd) <= least * (1.0 + 1e-4), seed
    if falls_back(plan):
        assert most is not None and float(plan.total_usd) >= most * (1.0 - 1e-4), seed
    return falls_back(plan)


def test_fallbacks_equal_every_number_of_workers_by_the_judge() -> None:
    count = share_of(24)
    assert sum(check_fallback(seed) for seed in range(count)) >= count / 5


@draws(12)
@given(seed=st.integers(0, 10_000), later=st.sampled_from([1.1, 1.5, 3.0]))
def test_a_later_deadline_or_one_more_machine_never_costs_more(seed: int, later: float) -> None:
    job, offers = _drawn(seed)
    before = planned(offers, job)
    if before.status != "planned":
        return
    hours = float(job["constraints"]["deadline"].removesuffix("h")) * later
    more = {**job, "constraints": {**job["constraints"], "deadline": f"{hours}h"}}
    wider = {**job, "constraints": {**job["constraints"], "max_nodes": job["constraints"]["max_nodes"] + 1}}
    for other in (more, wider):
        plan = planned(offers, other)
        # mixes keep what they hold in reserve by bisection; fleets that fall back are enumerated
        assert not_dearer(plan.total_usd, before.total_usd) or not falls_back(before)
    if falls_back(before):
        firm = {**job["constraints"], "exclude_purchase_options": ["spot"]}
        without = planned(offers, {**job, "constraints": firm})
        assert without.status != "planned" or not_dearer(before.total_usd, without.total_usd)


@pytest.mark.parametrize("option", ["spot", "on_demand"])
def test_quotas_of_both_pools_bound_the_workers(option: str) -> None:
    job = falling_back(8, {"max_nodes": 8, "deadline": "9h"})
    free = planned(PAIR, job)
    assert falls_back(free) and workers(free) > 2
    quota = {
        "provider": "aws",
        "region": "us-east-1",
        "quota": QUOTAS[option],
        "limit": 2,
        "unit": "instances",
    }
    bound = planned(PAIR, {**job, "constraints": {**job["constraints"], "deadline": "40h", "quota": [quota]}})
    assert falls_back(bound) and workers(bound) <= 2
    few = {"provider": "aws", "accelerator": "a10g*", "purchase_option": option, "accelerators": 2}
    bound = planned(
        PAIR, {**job, "constraints": {**job["constraints"], "deadline": "40h", "obtainable": [few]}}
    )
    assert falls_back(bound) and workers(bound) <= 2


def test_a_budget_holds_what_is_expected() -> None:
    job = falling_back(6, {"max_nodes": 20, "deadline": "60h"})
    free = planned(PAIR, job)
    assert falls_back(free)
    enough = {**job, "constraints": {**job["constraints"], "budget_usd": float(free.total_usd + CENT)}}
    assert planned(PAIR, enough).total_usd == free.total_usd
    short = {**job, "constraints": {**job["constraints"], "budget_usd": float(free.total_usd - CENT)}}
    none = planned(PAIR, short)
    assert none.status == "infeasible"
    (change,) = none.relaxations
    assert change.constraint == "budget"
    needed = Decimal(change.needed.removeprefix("$"))
    assert free.total_usd <= needed < free.total_usd + CENT


def test_fleets_whose_chance_is_not_worked_out_are_within_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """On-demand of the cheaper region often never comes, so its fleets are as likely in time as spot alone is."""
    dear = [replace(SPOT, region="eu-west-1", price_per_hour="0.50"), replace(ON_DEMAND, region="eu-west-1")]
    job = falling_back(2, {"max_nodes": 4, "deadline": "200h"})
    rare = {"purchase_option": "on_demand", "region": "us-east-1", "hours": 0, "never_ratio": 0.3}
    job["constraints"]["waiting"] = [*job["constraints"]["waiting"], rare]
    judged = planned([*PAIR, *dear], job)
    assert falls_back(judged) and judged.lines[0].region == "us-east-1"
    assert judged.proof is not None and judged.proof.status == "optimal"
    monkeypatch.setattr(fallback_search, "MOST_JUDGED", 0)
    catalog = make_catalog([*PAIR, *dear])
    plan = plan_on(catalog, job, gap=0.0).plan
    assert falls_back(plan) and plan.lines[0].region == "eu-west-1"
    assert plan.proof is not None and plan.proof.status == "feasible"
    assert plan.proof.bound_usd <= judged.total_usd + CENT < plan.total_usd
    answer = json.loads(json.dumps(plan.to_dict()))
    assert judge_saved(answer, loaded(job), memory=Memory(catalog, Path())).faults == ()


def _rare(*, never_ratio: float = 0.3, hours: str = "200h") -> dict[str, Any]:
    """On-demand of us-east-1 that often never comes, so that fleets there are as likely in time as spot alone is."""
    job = falling_back(2, {"max_nodes": 4, "deadline": hours})
    rare = {
        "purchase_option": "on_demand",
        "region": "us-east-1",
        "hours": 0,
        "never_ratio": never_ratio,
    }
    job["constraints"]["waiting"] = [*job["constraints"]["waiting"], rare]
    return job


def test_no_fleet_is_not_proven_impossible_where_some_were_not_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = _rare()
    assert falls_back(planned(PAIR, job))
    monkeypatch.setattr(fallback_search, "MOST_JUDGED", 0)
    none = planned(PAIR, job)
    assert none.status == "infeasible" and none.proof is not None
    assert "this is not proven impossible" in none.proof.note and "fall-back" in none.proof.note


def test_a_mix_is_no_better_than_fleets_that_were_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    firm = Offer(V100, "eu-west-1", "3.00")
    judged = planned([*PAIR, firm], _rare())
    assert falls_back(judged)
    for room in (fallback_search, parts):
        monkeypatch.setattr(room, "MOST_JUDGED", 0)
    catalog = make_catalog([*PAIR, firm])
    plan = plan_on(catalog, _rare(), gap=0.0).plan
    assert [line.purchase_option for line in plan.lines] == ["on_demand"]
    assert plan.proof is not None and plan.proof.status == "feasible"
    assert plan.proof.bound_usd <= judged.total_usd + CENT < plan.total_usd
    assert "probability was not worked out" in plan.proof.note
    answer = json.loads(json.dumps(plan.to_dict()))
    assert judge_saved(answer, loaded(_rare()), memory=Memory(catalog, Path())).faults == ()


def test_the_plan_says_why_and_shows_the_best_fleet_of_one_offer_without_a_fallback() -> None:
    job = falling_back(6, {"max_nodes": 20, "deadline": "60h"})
    elsewhere = [
        replace(SPOT, region="eu-west-1", price_per_hour="0.45"),
        replace(ON_DEMAND, region="eu-west-1"),
    ]
    catalog = make_catalog([*PAIR, *elsewhere])
    plan = plan_on(catalog, job, gap=0.0).plan
    assert falls_back(plan) and plan.launch is not None
    steady, record, other = plan.launch.why
    alone = planned([ON_DEMAND], job)
    assert steady.startswith(f"on-demand alone would cost ${alone.total_usd:,.2f}")
    assert record.startswith("no recorded spot availability there")
    there = planned(
        [*PAIR, *elsewhere], {**job, "constraints": {**job["constraints"], "regions": ["aws/eu-west-1"]}}
    )
    assert falls_back(there) and other.startswith(f"in another region it would cost ${there.total_usd:,.2f}")
    assert other.endswith("aws/eu-west-1")
    one = next(choice for choice in plan.choices if "one_offer" in choice.kinds)
    assert one.best is not None and one.best.cost_usd == pytest.approx(alone.total_usd, abs=CENT)
    answer = json.loads(json.dumps(plan.to_dict()))
    assert judge_saved(answer, loaded(job), memory=Memory(catalog, Path())).faults == ()
    at = next(number for number, choice in enumerate(answer["choices"]) if "one_offer" in choice["kinds"])
    answer["choices"][at]["best"]["cost_usd"] = "1.00"
    assert judge_saved(answer, loaded(job), memory=Memory(catalog, Path())).faults


def test_the_plan_verifies_itself_and_a_broken_one_does_not() -> None:
    job = falling_back(6, {"max_nodes": 20, "deadline": "60h"})
    catalog = make_catalog(PAIR)
    answer: Answer = plan_on(catalog, job)
    plan = answer.plan.to_dict()
    assert verify_plan(plan, loaded(job).workload, catalog.offers) == []
    narrow = {**job, "constraints": {**job["constraints"], "max_nodes": workers(answer.plan) - 1}}
    assert any("max_nodes" in fault for fault in verify_plan(plan, loaded(narrow).workload, catalog.offers))
    assert any(
        "quota" in fault
        for fault in verify_plan(
            plan,
            loaded({**job, "constraints": {**job["constraints"], "quota": [
                {"provider": "aws", "region": "us-east-1", "quota": QUOTAS["spot"], "limit": workers(answer.plan) - 1,
                 "unit": "instances"}]}}).workload,
            catalog.offers,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("work", "room", "rate", "wait"), [(10.0, 20.0, 0.3, 3.0), (10.0, 40.0, 0.3, 3.0), (20.0, 30.0, 0.1, 4.0)]
)
@pytest.mark.parametrize("count", [1, 4, 16])
def test_costs_are_those_of_simulated_workers(
    work: float, room: float, rate: float, wait: float, count: int
) -> None:
    """Workers that come and go independently at common levels of the hazards, and at a common speed."""
    worker = Worker(work, 0.2, 0.5, room, rate, wait, spot_usd=1.0, on_demand_usd=3.5)
    sigma, frailty_sd = 0.2, 0.35
    simulated = fleet_costs(worker, count, 600, 3, sigma, frailty_sd)
    one = [np.asarray([value]) for value in (rate, wait, frailty_sd, 1.0)]
    task = Task(
        work=work, interval=1.0, write=1e-4, restart=0.2, notice=0.1, steady=work, sigma=sigma, room=room,
        acquire=0.3, has_fallback=True,
    )  # fmt: skip
    outcomes = possible_outcomes(task, SpotPool(one[0], one[1], one[1], one[2], one[3]))
    usd = outcomes.spot * worker.spot_usd + outcomes.on_demand * worker.on_demand_usd
    together = usd_of_workers(usd, count, shrink_of(luck_at(*one), room, count))
    assert together.mean() == pytest.approx(simulated.mean(), rel=0.06)
    assert quantile(together, 0.1) == pytest.approx(np.quantile(simulated, 0.1), rel=0.1)
    assert quantile(together, 0.9) == pytest.approx(np.quantile(simulated, 0.9), rel=0.07)


def test_a_baseline_that_emits_too_much_is_named_so_and_verified() -> None:
    job = falling_back(6, {"max_nodes": 20, "deadline": "60h"})
    offers = [
        Offer(L4, "us-central1", "0.15", "spot"),
        Offer(L4, "us-central1", "3.00"),
        Offer(A10G, "us-east-1", "0.60"),
    ]
    free = planned(offers, job)
    assert falls_back(free) and free.carbon is not None and free.carbon.operational_kgco2e is not None
    assert free.savings is not None and free.savings.baseline is not None
    assert free.savings.baseline.operational_kgco2e is not None
    limit = (free.carbon.operational_kgco2e + free.savings.baseline.operational_kgco2e) / 2.0
    assert limit > free.carbon.operational_kgco2e
    job["constraints"] = {**job["constraints"], "max_kgco2e": limit}
    plan = planned(offers, job)
    assert falls_back(plan) and "limits_aside" in plan.choices[-1].kinds
    verdict = judge_saved(
        json.loads(json.dumps(plan.to_dict())), loaded(job), memory=Memory(make_catalog(offers), Path())
    )
    assert verdict.faults == ()
