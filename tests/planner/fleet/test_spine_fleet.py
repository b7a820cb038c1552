"""Fleets from end to end: tiny ones against every possible mix, limits, deadlines and the end of the work."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planner.asked.assumptions import load_assumptions
from planner.judge.lines import verify_plan
from planner.plan.ids import CostId
from planner.plan.model import Plan
from tests.draws import draws
from tests.few_remedies import of_each
from tests.planner.job.test_spine_brute_force import GIB_PER_GB, Z80, _steps
from tests.planner.spine_catalogs import (
    A10,
    A10G,
    L4,
    REGIONS,
    T4,
    V100,
    Offer,
    bought_on,
    bundled_tariffs,
    cost_of,
    loaded,
    make_catalog,
    make_world,
    not_dearer,
    plan_on,
    usd_per_currency,
    work,
)

BILLED = Decimal("1.0005")  # hours are billed in whole seconds, the law holds before rounding
READS = 0.01  # USD: 20 GB read a few times, in objects of 128 MB
SMALL = (V100, A10G, L4, T4, A10)
TRAINING = {"samples": 5_000_000, "global_batch": 256, "sequence_length": 128, "precision": "fp16"}


def fleet(runs: int = 4, limits: dict[str, Any] | None = None, **wishes: Any) -> dict[str, Any]:
    job = work(training=TRAINING, constraints={"max_nodes": 6, "deadline": "8h", **(limits or {})})
    # no record says how spot of these machines comes and goes
    return {**job, "kind": "fleet", "fleet": {"runs": runs, **wishes}, "spot": {"fallback": "none"}}


def finely(runs: int, parts: int, limits: dict[str, Any] | None = None) -> dict[str, Any]:
    """The work of `runs` in runs of a part of it, so that whole runs cost next to nothing."""
    job = fleet(runs * parts, limits)
    return {**job, "training": {**job["training"], "samples": job["training"]["samples"] // parts}}


def exactly(offers: list[Offer], job: dict[str, Any]) -> Plan:
    return plan_on(make_catalog(offers), job, gap=0.0).plan


@dataclass(frozen=True)
class Worker:
    """One on-demand worker: hours before its work, its hours, tokens and dollars per hour at the predicted speed.

    `kept_usd`: most that the copy of the data set costs its place, which the planner's model knows in part only.
    """

    offer: Offer
    lead: float
    most: float
    units_per_hour: float
    fixed_usd: float
    usd_per_hour: float
    second_usd: float
    kept_usd: float

    @property
    def place(self) -> tuple[str, str]:
        return self.offer.machine.provider, self.offer.region


def _worker(job: dict[str, Any], offer: Offer, limit: float) -> Worker:
    """A worker that has `limit` hours from the start to the end of all work."""
    key = json.dumps(
        {name: job[name] for name in ("version", "name", "model", "training", "data", "checkpoint")}
    )
    step, low, high = _steps(offer.machine, key, 8)[1]
    assume = load_assumptions()
    waiting = (assume.provision_s + assume.on_demand_acquire_s) / 3600
    waiting += 20 * 8 / assume.user_upload_gbps / 3600
    write = 1 / assume.checkpoint_write_gb_per_s_per_node / 3600
    fixed = (assume.image_pull_s + assume.compile_warmup_s + assume.export_s) / 3600 + write
    steps = math.ceil(TRAINING["samples"] / TRAINING["global_batch"])  # type: ignore[operator]
    failures = assume.machine_failures_per_node_hour
    course = steps * step / 3600 * (1 + assume.evaluation_share_ratio + assume.beside_steps_ratio)
    restart = (assume.restart_time_s + 1 / assume.object_store_read_gb_per_s_per_node) / 3600
    course *= (1 + write / 0.5) * (1 + failures * (0.25 + restart))
    sigma = math.hypot(math.log(high / low) / (2 * Z80), assume.whole_run_log_sd)
    slow = math.exp(NormalDist().inv_cdf(0.9) * sigma)
    hourly = float(offer.price_per_hour) * usd_per_currency(offer.currency)
    price = bundled_tariffs().storage_price(offer.machine.provider, offer.region)
    assert price is not None
    stored = 2 * GIB_PER_GB / 730 * float(price.usd_per_gib_month)
    return Worker(
        offer=offer, lead=waiting + fixed, most=(limit - waiting - fixed) / slow,
        units_per_hour=steps * 256 * 128 / course, fixed_usd=fixed * hourly + (waiting + fixed) * stored,
        usd_per_hour=hourly + stored, second_usd=hourly / 3600, kept_usd=10 * stored * limit,
    )  # fmt: skip


def _divided(
    workers: list[Worker], counts: tuple[int, ...], runs: int, one_run: float, share: float | None
) -> float | None:
    """Least cost of the hours in which `counts` workers do whole runs, within a share of each place; by trying all."""
    used = [at for at, count in enumerate(counts) if count]
    most = [counts[at] * math.floor(workers[at].most * workers[at].units_per_hour / one_run) for at in used]
    usd = [workers[at].usd_per_hour * one_run / workers[at].units_per_hour for at in used]
    best = None
    for done in itertools.product(*(range(number + 1) for number in most)):
        if sum(done) != runs:
            continue
        places: dict[tuple[str, str], int] = {}
        for at, number in zip(used, done, strict=True):
            places[workers[at].place] = places.get(workers[at].place, 0) + number
        if share is not None and max(places.values()) > share * runs + 1e-9:
            continue
        cost = sum(price * number for price, number in zip(usd, done, strict=True))
        best = cost if best is None else min(best, cost)
    return best


def _cheapest(job: dict[str, Any], offers: list[Offer]) -> tuple[float, float] | None:
    """Least cost over every number of workers, and what rounding up to seconds and the data set may add."""
    limit = float(job["constraints"]["deadline"].removesuffix("h"))
    one_run = math.ceil(TRAINING["samples"] / TRAINING["global_batch"]) * 256 * 128  # type: ignore[operator]
    # a run is not divided: who cannot do one in time, with the confidence asked, is no worker
    workers = [_worker(job, offer, limit) for offer in offers]
    workers = [worker for worker in workers if worker.units_per_hour * worker.most >= one_run]
    best = None
    for counts in itertools.product(*(range(int(worker.offer.capacity) + 1) for worker in workers)):
        used = [at for at, count in enumerate(counts) if count]
        if not used or sum(counts) > job["constraints"]["max_nodes"]:
            continue
        if len({workers[at].place for at in used}) > job["fleet"].get("max_regions", 99):
            continue
        share = job["fleet"].get("max_share_per_region")
        hours = _divided(workers, counts, job["fleet"]["runs"], one_run, share)
        if hours is None:
            continue
        cost = hours + sum(counts[at] * workers[at].fixed_usd for at in used)
        if best is None or cost < best[0]:
            kept = sum({workers[at].place: workers[at].kept_usd for at in used}.values())
            best = cost, READS + kept + sum(counts[at] * workers[at].second_usd for at in used)
    return best


def _random_fleet(seed: int) -> tuple[dict[str, Any], list[Offer]]:
    rng = random.Random(seed)
    offers: dict[str, Offer] = {}
    for _ in range(rng.randint(2, 4)):
        machine = rng.choice(SMALL)
        offer = Offer(
            machine, rng.choice(REGIONS[machine.provider]), str(rng.randint(30, 400) / 100),
            currency="CNY" if machine.provider == "alibaba" else "USD", capacity=float(rng.randint(1, 3)),
        )  # fmt: skip
        offers[offer.offer_id] = offer
    wishes: dict[str, Any] = {}
    if rng.random() < 0.3:
        wishes["max_regions"] = rng.randint(1, 2)
    elif rng.random() < 0.4:
        wishes["max_share_per_region"] = rng.choice([0.5, 0.7])
    limits = {"max_nodes": rng.randint(2, 7), "deadline": f"{rng.choice([5, 8, 14])}h"}
    return fleet(rng.randint(2, 6), limits, **wishes), [*offers.values()]


def check_tiny_fleet(seed: int) -> bool:
    """A tiny fleet equals every possible mix; True where there is one."""
    job, offers = _random_fleet(seed)
    plan = exactly(offers, job)
    best = _cheapest(job, offers)
    if plan.status == "infeasible":
        assert best is None, seed
        return False
    assert best is not None, seed
    cost, granules = best
    assert cost * (1 - 1e-6) <= float(plan.total_usd) <= cost * (1 + 1e-6) + granules + 1e-9, seed
    return True


def test_tiny_fleets_equal_every_possible_mix() -> None:
    assert sum(of_each(check_tiny_fleet, range(30))) >= 15


POOL = [
    Offer(A10G, "us-east-1", "0.40", "spot", interruption_band="<5%"),
    Offer(A10G, "us-east-1", "1.10"),
    Offer(A10G, "eu-west-1", "1.20"),
    Offer(L4, "us-central1", "0.90"),
    Offer(V100, "us-east-1", "3.10"),
    Offer(T4, "eastus", "0.55", "spot"),
]


def share(plan: Plan, hit: Callable[[Any], bool]) -> float:
    total = sum(line.throughput_per_s for line in plan.lines)
    return sum(line.throughput_per_s for line in plan.lines if hit(line)) / total


LIMITS: dict[str, tuple[dict[str, Any], Callable[[Plan], bool]]] = {
    "spot share": ({"max_spot_share": 0.5}, lambda p: share(p, lambda x: x.purchase_option == "spot") <= 0.5 + 1e-9),
    "no spot": ({"max_spot_share": 0.0}, lambda p: all(x.purchase_option != "spot" for x in p.lines)),
    "region share": (
        {"max_share_per_region": 0.5},
        lambda p: all(
            share(p, lambda x, r=r: (x.provider, x.region) == r) <= 0.5 + 1e-9  # type: ignore[misc]
            for r in {(x.provider, x.region) for x in p.lines}
        ),
    ),
    "regions": ({"max_regions": 1}, lambda p: len({(x.provider, x.region) for x in p.lines}) == 1),
    "offer share": (
        {"max_share_per_offer": 0.4},
        lambda p: all(share(p, lambda x, o=o: x.offer_id == o) <= 0.4 + 1e-9 for o in {x.offer_id for x in p.lines}),  # type: ignore[misc]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_diversification_limits_hold(name: str) -> None:
    wishes, holds = LIMITS[name]
    plan = exactly(POOL, fleet(6, {"max_nodes": 20}, **wishes))
    assert plan.status == "planned"
    assert holds(plan)
    free = exactly(POOL, fleet(6, {"max_nodes": 20}))
    assert not_dearer(free.total_usd, plan.total_usd)


def test_node_budget_and_quota_limits_hold() -> None:
    free = exactly(POOL, fleet(6, {"max_nodes": 20}))
    assert sum(line.nodes for line in free.lines) > 2
    few = exactly(POOL, fleet(6, {"max_nodes": 3, "deadline": "40h"}))
    assert sum(line.nodes for line in few.lines) <= 3
    quota = [{"provider": "aws", "quota": "L-3819A6DF", "limit": 8}]
    limited = exactly(POOL, fleet(6, {"max_nodes": 20, "quota": quota}))
    spot = [line for line in limited.lines if line.provider == "aws" and line.purchase_option == "spot"]
    assert sum(line.nodes for line in spot) <= 1
    assert all(line.quota.needed <= 8 for line in spot)
    # a worker that counts against several limits keeps each of them
    both = [{"provider": "aws", "quota": "g5", "unit": "vCPU", "limit": 160},
            {"provider": "aws", "quota": "a10g", "unit": "GPU", "limit": 1}]  # fmt: skip
    several = exactly(POOL, fleet(6, {"max_nodes": 20, "quota": both}))
    assert sum(line.accelerators for line in several.lines if line.accelerator.startswith("a10g")) <= 1
    budget = exactly(POOL, fleet(6, {"max_nodes": 20, "budget_usd": f"{free.total_usd + 1:.2f}"}))
    assert sum((month.amount_usd for month in budget.cash), Decimal(0)) <= free.total_usd + 1
    none = exactly(POOL, fleet(6, {"max_nodes": 20, "budget_usd": "0.5"}))
    assert none.status == "infeasible"


def test_the_deadline_holds_and_no_more_time_is_paid_than_the_work_takes() -> None:
    for deadline in (7, 12, 30, 200):
        plan = exactly(POOL, fleet(6, {"max_nodes": 20, "deadline": f"{deadline}h"}))
        assert plan.status == "planned"
        assert plan.hours <= deadline
        units = sum(line.throughput_per_s for line in plan.lines) * plan.hours * 3600
        work_asked = math.ceil(5_000_000 / 256) * 256 * 128 * 6
        assert work_asked * (1 - 1e-9) <= units
        assert units <= work_asked * 1.001  # cut to the end of the work
        assert sum(part.hours for part in plan.timeline) == pytest.approx(plan.hours)


def test_fleet_plans_verify_and_fleet_limits_are_verified() -> None:
    job = finely(6, 40, {"max_nodes": 20})
    catalog = make_catalog(POOL)
    plan = plan_on(catalog, job).plan
    assert plan.proof is not None
    assert plan.proof.verified
    assert plan.proof.gap_ratio <= 0.05  # the bound leaves out that spot must be sure
    made = plan.to_dict()
    assert verify_plan(made, loaded(job).workload, catalog.offers) == []
    more = fleet(60, {"max_nodes": 20})
    assert verify_plan(made, loaded(more).workload, catalog.offers)


@pytest.mark.parametrize(
    "wish",
    [
        {"max_spot_share": 0.0},
        {"max_spot_share": 0.1},
        {"max_regions": 1},
        {"max_share_per_region": 0.1},
        {"max_share_per_offer": 0.1},
        {"nodes_per_run": 7},
    ],
)
def test_a_fleet_made_for_looser_shares_is_rejected(wish: dict[str, Any]) -> None:
    offers = [replace(offer, capacity=1.0) for offer in POOL]
    job = fleet(6, {"max_nodes": 20, "deadline": "12h"})
    plan = exactly(offers, job)
    assert len({line.region for line in plan.lines}) > 1
    assert any(line.purchase_option == "spot" for line in plan.lines)
    assert verify_plan(plan.to_dict(), loaded(job).workload, make_catalog(offers).offers) == []
    strict = loaded({**job, "fleet": {**job["fleet"], **wish}}).workload
    assert verify_plan(plan.to_dict(), strict, make_catalog(offers).offers)


def test_the_objective_is_the_repriced_plan() -> None:
    for seed in range(40, 60):
        job, offers = _random_fleet(seed)
        plan = exactly(offers, job)
        if plan.status != "planned":
            continue
        assert plan.proof is not None
        assert sum((line.cost_usd for line in plan.lines), Decimal(0)) == plan.total_usd
        assert float(plan.proof.bound_usd) <= float(plan.total_usd) * (1 + 1e-9)
        # the bound is for hours as worked; billing rounds each worker's up to a whole second
        seconds = sum(
            line.nodes * float(line.price_per_hour * line.usd_per_currency) / 3600 for line in plan.lines
        )
        # and has the copies of the data set that workers share in part only
        copies = sum(
            float(cost.amount_usd)
            for line in plan.lines
            for cost in line.costs
            if cost.id == CostId.DATASET_STORAGE
        )
        most = seconds + copies + 1e-6 * float(plan.total_usd)
        assert float(plan.total_usd) - float(plan.proof.bound_usd) <= most


def test_a_duplicate_of_an_offer_shares_its_capacity() -> None:
    scarce = replace(POOL[0], capacity=2.0)
    twice = exactly([scarce, scarce, *POOL[1:3]], fleet(6, {"max_nodes": 20}))
    assert sum(line.nodes for line in twice.lines if line.purchase_option == "spot") <= 2
    assert twice.lines
    once = exactly([scarce, *POOL[1:3]], fleet(6, {"max_nodes": 20}))
    assert twice.total_usd == once.total_usd


def test_a_workers_nodes_are_counted_together() -> None:
    plan = exactly(POOL, fleet(4, {"max_nodes": 9}, nodes_per_run=2))
    assert plan.status == "planned"
    assert all(line.nodes % 2 == 0 for line in plan.lines)
    assert sum(line.nodes for line in plan.lines) <= 9


@draws(25)
@given(st.integers(0, 500))
def test_another_offer_never_costs_more(seed: int) -> None:
    job, offers = _random_fleet(seed)
    before = cost_of(bought_on(make_world(offers), job, gap=0.0))
    more = bought_on(make_world([*offers, Offer(V100, "us-west-2", "1.0", capacity=1.0)]), job, gap=0.0)
    assert not_dearer(cost_of(more), before and before * BILLED)


@draws(25)
@given(st.integers(0, 500), st.floats(0.25, 60))
@example(29, 4.0)
@example(33, 4.0)
@example(148, 4.0)
def test_a_later_deadline_never_costs_more(seed: int, hours_later: float) -> None:
    job, offers = _random_fleet(seed)
    before = cost_of(bought_on(make_world(offers), job, gap=0.0))
    hours = float(job["constraints"]["deadline"].removesuffix("h"))
    later = {**job, "constraints": {**job["constraints"], "deadline": f"{hours + hours_later:.3f}h"}}
    assert not_dearer(cost_of(bought_on(make_world(offers), later, gap=0.0)), before and before * BILLED)


def test_hours_billed_whole_are_planned_whole() -> None:
    """An option without a billing rule is billed by the hour; the rest of the work goes where seconds are billed.

    At the confidence asked spot keeps nothing in reserve: the gap is the price of whole hours alone.
    """
    hourly = Offer(A10G, "us-east-1", "0.30", "dedicated", capacity=3.0)
    job = finely(14, 20, {"max_nodes": 20, "deadline": "12h", "deadline_confidence": 0.5})
    plan = exactly([hourly, *POOL], job)
    lines = [line for line in plan.lines if line.purchase_option == "dedicated"]
    assert lines and {line.purchase_option for line in plan.lines} == {"dedicated", "spot"}
    assert all(line.billed_hours == int(line.billed_hours) for line in lines)
    assert plan.proof is not None
    assert plan.proof.gap_ratio <= 0.02
    budget = str(plan.total_usd + Decimal("0.01"))
    within = exactly([hourly, *POOL], {**job, "constraints": {**job["constraints"], "budget_usd": budget}})
    assert within.status == "planned"
    assert sum((month.amount_usd for month in within.cash), Decimal(0)) <= Decimal(budget)


def test_a_least_throughput_is_sustained() -> None:
    floor = {"min_throughput": {"samples_per_s": 1_500.0}}
    for limits in ({"deadline": "60h"}, {}):
        job = fleet(6, {"max_nodes": 20, **floor, **limits})
        if not limits:
            del job["constraints"]["deadline"]
        plan = exactly(POOL, job)
        assert plan.status == "planned"
        assert plan.performance is not None
        (work,) = [phase.hours for phase in plan.timeline if phase.id == "fleet_work"]
        slower = plan.performance.throughput_per_s / plan.performance.throughput_low_per_s
        cautious = plan.hours - work + work * slower  # what is not work takes no longer for it
        assert cautious * 3600 * 1_500 <= math.ceil(5_000_000 / 256) * 256 * 6 * (1 + 1e-9)
        assert plan.hours * 3600 * 1_500 <= math.ceil(5_000_000 / 256) * 256 * 6 * (1 + 1e-9)


def test_a_block_is_bought_whole_and_a_worker_stays_within_it() -> None:
    block = Offer(V100, "us-east-1", "0.10", "capacity_block", capacity=2.0)
    plan = exactly([block, *POOL], fleet(6, {"max_nodes": 20, "deadline": "60h"}))
    lines = [line for line in plan.lines if line.purchase_option == "capacity_block"]
    assert lines
    assert all(float(line.billed_hours) in (24.0, 48.0, 72.0) for line in lines)
