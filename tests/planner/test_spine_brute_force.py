"""The exact choice against plain loops: own formulas for hours, billing, storage and risk, given only step times."""

from __future__ import annotations

import functools
import json
import math
import random
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from catalogs.accelerators import load_accelerators
from catalogs.table import Table
from planner.assumptions import load_assumptions
from planner.offers import ACCELERATOR_COLUMNS, HARDWARE_COLUMNS
from planner.performance.search import estimate_shapes
from planner.resolve import resolve_job
from planner.risk.renewal import spot_outcome
from planner.workload.schema import Workload
from tests.planner.spine_catalogs import (
    MACHINES,
    NAN,
    NOW,
    REGIONS,
    Machine,
    Offer,
    bundled_tariffs,
    loaded,
    make_catalog,
    plan_on,
    usd_per_currency,
    work,
)

# (provider, option) -> (granularity s, minimum s); from the providers' pages, written down here a second time
SECONDS = {"aws": 60, "gcp": 60, "azure": 0, "alibaba": 0}
BLOCK_DAYS = (*range(1, 15), *range(21, 183, 7))
YEAR_HOURS = 8760
FLEX_START_HOURS = 168
Z80 = 1.2815515655446004
GIB_PER_GB = 1e9 / 2**30
HERMITE = np.polynomial.hermite_e.hermegauss(5)


@dataclass(frozen=True)
class Best:
    """One candidate of the brute force."""

    offer_id: str
    nodes: int
    cost: float
    hours: float


@functools.cache
def _steps(machine: Machine, job_key: str, most: int) -> dict[int, tuple[float, float, float]]:
    """Step seconds (middle, low, high) per node count that fits, straight from the performance model."""
    workload = Workload.model_validate(json.loads(job_key))
    job = resolve_job(workload, NOW.date())
    accelerators = load_accelerators()
    at = accelerators["accelerator"].tolist().index(machine.accelerator)
    row = {name: [getattr(machine, name)] for name in HARDWARE_COLUMNS}
    row |= {name: [accelerators[name][at]] for name in ACCELERATOR_COLUMNS}
    shapes = estimate_shapes(job.model, job.training, Table(row), list(range(1, most + 1)))
    return {
        int(shape["nodes"]): (shape["step_time_s"], shape["step_time_low_s"], shape["step_time_high_s"])
        for shape in shapes.rows()
        if shape["fits"]
    }


def brute_force(sections: dict[str, Any], offers: list[Offer]) -> list[Best]:
    """Every candidate that satisfies all limits, in no order."""
    found = []
    for offer in offers:
        for nodes in range(1, sections["constraints"]["max_nodes"] + 1):
            made = _candidate(sections, offer, nodes)
            if made is not None:
                found.append(made)
    return found


def _candidate(sections: dict[str, Any], offer: Offer, nodes: int) -> Best | None:
    limits, assume = sections["constraints"], load_assumptions()
    training = sections["training"]
    job_key = json.dumps(
        {key: sections[key] for key in ("version", "name", "model", "training", "data", "checkpoint")}
    )
    times = _steps(offer.machine, job_key, 8).get(nodes)
    if times is None or (not math.isnan(offer.capacity) and nodes > offer.capacity):
        return None
    step, low, high = times
    steps = math.ceil(training["samples"] / training["global_batch"])
    tokens_per_s = training["global_batch"] * training["sequence_length"] / step
    if "min_throughput" in limits and tokens_per_s < limits["min_throughput"]["tokens_per_s"]:
        return None
    work_hours = steps * step / 3600 * (1 + assume.evaluation_share_ratio)
    write = 1.0 / (assume.checkpoint_write_gb_per_s_per_node * nodes) / 3600
    spot = offer.purchase_option == "spot"
    waiting = (assume.provision_s + (0 if spot else assume.on_demand_acquire_s)) / 3600
    data_gb = float(sections["data"]["size"].removesuffix("GB"))
    waiting += data_gb * 8 / assume.user_upload_gbps / 3600
    read = min(assume.object_store_read_gb_per_s_per_node * nodes, assume.object_store_read_gb_per_s_total)
    fixed = (
        (assume.image_pull_s + assume.compile_warmup_s + assume.export_s) / 3600
        + write
        + data_gb / read / 3600
    )
    sigma = math.log(high / low) / (2 * Z80)
    interval = 0.5
    if spot:
        course, paid, p_of = _spot(offer, nodes, work_hours, write, interval, sigma)
    else:
        failures = assume.machine_failures_per_node_hour * nodes
        stretch = (1 + write / interval) * (1 + failures * (interval / 2 + assume.restart_time_s / 3600))
        course = paid = work_hours * stretch

        def p_of(left: float) -> float:
            return 0.5 * (1 + math.erf(math.log(left / course) / sigma / math.sqrt(2)))

    hours, used = waiting + fixed + course, fixed + paid
    billed = _billed(offer, used)
    if billed is None:
        return None
    rate = usd_per_currency(offer.currency)
    owed = nodes * billed * float(offer.price_per_hour) * rate
    owed += nodes * float(offer.upfront_per_instance or 0) * rate
    tariffs = bundled_tariffs()
    if "system_disk_separate" in offer.flags:
        fee = tariffs.system_disk_fee(offer.machine.provider, offer.region)
        if fee is not None:
            owed += nodes * billed * float(fee.price_per_hour) * usd_per_currency(fee.currency)
    storage = tariffs.storage_price(offer.machine.provider, offer.region)
    assert storage is not None
    owed += (data_gb + 2) * GIB_PER_GB * hours / 730 * float(storage.usd_per_gib_month)
    if "budget_usd" in limits and owed > limits["budget_usd"]:
        return None
    if "deadline" in limits:
        deadline = float(limits["deadline"].removesuffix("h"))
        left = deadline - waiting - fixed
        if hours > deadline or left <= 0 or p_of(left) < limits["deadline_confidence"]:
            return None
    return Best(offer.offer_id, nodes, owed, hours)


def _billed(offer: Offer, used: float) -> float | None:
    """Hours billed per instance, None where the option cannot be used that long."""
    if offer.purchase_option == "reserved_1y":
        return math.ceil(used / YEAR_HOURS) * YEAR_HOURS
    if offer.purchase_option == "capacity_block":
        return next((24.0 * days for days in BLOCK_DAYS if 24 * days >= used), None)
    if offer.purchase_option == "flex_start" and used > FLEX_START_HOURS:
        return None
    return max(math.ceil(used * 3600 - 1e-9 * 3600), SECONDS[offer.machine.provider]) / 3600


def _spot(offer: Offer, nodes: int, work_hours: float, write: float, interval: float, sigma: float) -> Any:
    """Expected hours and the deadline probability by the renewal model, one candidate at a time."""
    assume = load_assumptions()
    machine = offer.machine
    prior = bundled_tariffs().interruption_prior(
        machine.provider, machine.family, machine.accelerator, offer.interruption_band
    )
    notice = {"aws": 120, "gcp": 30, "azure": 30, "alibaba": 300}[machine.provider] / 3600

    def run(hours: float, deadline: float) -> Any:
        return spot_outcome(
            np.asarray([hours]), rate_per_hour=prior.rate_per_hour, nodes=float(nodes),
            gang_exponent=prior.gang_exponent, mean_wait_hours=prior.mean_wait_hours * nodes**prior.wait_exponent,
            checkpoint_interval_hours=interval, checkpoint_write_hours=write,
            restart_hours=assume.restart_time_s / 3600, notice_hours=notice, deadline_hours=deadline,
            frailty_sd=assume.spot_frailty_sd, with_distribution=math.isfinite(deadline),
        )  # fmt: skip

    expected = run(work_hours, math.inf)

    def p_of(left: float) -> float:
        weights = HERMITE[1] / HERMITE[1].sum()
        parts = [
            weight * float(run(work_hours * math.exp(sigma * node), left).p_meet_deadline[0])
            for node, weight in zip(HERMITE[0], weights, strict=True)
        ]
        return math.fsum(parts)

    return float(expected.expected_elapsed_hours[0]), float(expected.expected_paid_hours[0]), p_of


def random_instance(seed: int) -> tuple[dict[str, Any], list[Offer]]:
    """A workload and two to six offers; about a quarter of the instances have no solution."""
    rng = random.Random(seed)
    offers: dict[str, Offer] = {}
    for _ in range(rng.randint(2, 6)):
        offer = _random_offer(rng, spot=seed % 8 == 0)
        offers[offer.offer_id] = offer
    constraints: dict[str, Any] = {"max_nodes": rng.randint(1, 3 if seed % 8 == 0 else 6)}
    if rng.random() < 0.6:
        constraints["deadline"] = f"{rng.choice([2, 4, 6, 9, 14, 22])}h"
        constraints["deadline_confidence"] = rng.choice([0.5, 0.8, 0.9, 0.99])
    if rng.random() < 0.4:
        constraints["budget_usd"] = rng.choice([3, 8, 15, 30, 80, 200])
    if rng.random() < 0.2:
        constraints["min_throughput"] = {"tokens_per_s": rng.choice([1e5, 4e5, 1e6])}
    training = {
        "samples": rng.choice([5_000_000, 20_000_000, 40_000_001]), "global_batch": 256, "sequence_length": 128,
        "precision": "fp16",
    }  # fmt: skip
    data = {"size": rng.choice(["1GB", "20GB", "300GB"])}
    objective = "time" if rng.random() < 0.25 else "cost"
    wishes = {"objective": objective}
    return work(training=training, data=data, constraints=constraints, preferences=wishes), [*offers.values()]


def _random_offer(rng: random.Random, *, spot: bool) -> Offer:
    machine = rng.choice(MACHINES)
    option = {
        "aws": ("reserved_1y", "capacity_block"), "gcp": ("flex_start",), "azure": ("reserved_1y",), "alibaba": (),
    }[machine.provider]  # fmt: skip
    bought = rng.choice(["on_demand", "on_demand", *(["spot"] if spot else []), *option])
    offer = Offer(
        machine, rng.choice(REGIONS[machine.provider]), str(rng.randint(20, 600) / 100), bought,
        zone=rng.choice(["", "a", "b"]), capacity=rng.choice([NAN, NAN, 1.0, 3.0]),
    )  # fmt: skip
    if bought == "reserved_1y":
        offer = replace(offer, price_per_hour=str(rng.randint(1, 90) / 10_000), term_hours=float(YEAR_HOURS))
    if bought == "reserved_1y" and rng.random() < 0.5:
        offer = replace(offer, upfront_per_instance=str(rng.randint(1, 20)))
    if machine.provider == "alibaba":
        flags = rng.choice(["", "system_disk_separate"])
        offer = replace(offer, currency="CNY", flags=flags)
    return offer


def check(seed: int, **options: Any) -> str:
    """Hold the planner against the brute force; returns the plan's status."""
    sections, offers = random_instance(seed)
    answer = plan_on(make_catalog(offers), sections, **options)
    all_of = brute_force(sections, offers)
    if not all_of:
        assert answer.plan.status == "infeasible", (seed, answer.plan.total_usd)
        return "infeasible"
    assert answer.plan.status == "planned", (seed, all_of)
    first = sections["preferences"]["objective"]

    def value(made: Best) -> float:
        return made.cost if first == "cost" else made.hours

    best = min(all_of, key=value)
    line = answer.plan.lines[0]
    reached = float(answer.plan.total_usd) if first == "cost" else answer.plan.hours
    assert reached == pytest.approx(value(best), rel=1e-8), (seed, best, line.offer_id, line.nodes)
    same = [made for made in all_of if (made.offer_id, made.nodes) == (line.offer_id, line.nodes)]
    assert same, (seed, "the planner's choice is not feasible", line.offer_id, line.nodes)
    assert float(answer.plan.total_usd) == pytest.approx(same[0].cost, rel=1e-8)
    assert answer.plan.hours == pytest.approx(same[0].hours, rel=1e-8)
    assert answer.plan.n_feasible == len(all_of), seed
    return "planned"


@pytest.mark.parametrize("block", range(10))
def test_the_choice_equals_brute_force(block: int) -> None:
    seen = [check(seed) for seed in range(block * 105, (block + 1) * 105)]
    assert 10 < seen.count("planned") < 100  # both answers are exercised


@pytest.mark.parametrize("backend", ["scipy"])
def test_the_milp_gives_the_same_answer(backend: str) -> None:
    seen = 0
    for seed in range(2_000, 2_090):
        if check(seed, solver="milp", backend=backend) == "infeasible":
            continue
        sections, offers = random_instance(seed)
        by_milp = plan_on(make_catalog(offers), sections, solver="milp", backend=backend).plan
        exact = plan_on(make_catalog(offers), sections).plan
        assert by_milp.proof is not None
        assert "MILP" in by_milp.proof.method
        assert float(by_milp.proof.objective_usd) >= 0
        assert (by_milp.lines, by_milp.total_usd, by_milp.hours) == (
            exact.lines,
            exact.total_usd,
            exact.hours,
        )
        seen += 1
    assert seen >= 30


def test_deadlines_of_the_brute_force_are_those_of_the_planner() -> None:
    sections = work(constraints={"max_nodes": 1, "deadline": "9h", "deadline_confidence": 0.5})
    assert loaded(sections).workload.constraints.deadline == timedelta(hours=9)
