"""The exact choice against plain loops: own formulas for hours, billing, storage and risk, given only step times."""

from __future__ import annotations

import functools
import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from catalogs.tables.accelerators import load_accelerators
from catalogs.tables.table import Table
from planner.asked.assumptions import Assumptions, load_assumptions
from planner.asked.job import resolve_job
from planner.candidates.constraints.registry import BIT
from planner.candidates.model import SINGLE
from planner.inputs.schema import Workload
from planner.judge.prices import Quote, quotes_of
from planner.market.machines import ACCELERATOR_COLUMNS, HARDWARE_COLUMNS
from planner.performance.search import estimate_shapes
from planner.spot.pools import find_pool
from planner.spot.renewal import p_meet_deadline, spot_outcome
from planner.workloads.answer import Answer
from tests.few_remedies import of_each
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
# One offer for the whole run; ways to run in turn have their own brute force (tests/planner/strategy).
ONE_WAY = {"fallback": "none", "zones": "single"}
HERMITE = np.polynomial.hermite_e.hermegauss(5)


@dataclass(frozen=True)
class Best:
    """One candidate of the brute force; `chance`: of being done within hours, once the machines are there."""

    offer_id: str
    nodes: int
    cost: float
    hours: float
    begin: float
    chance: Callable[[float], float] = field(compare=False)

    def keeps(self, deadline: float, confidence: float) -> bool:
        """Whether it ends by then, in hours, as surely as asked."""
        left = deadline - self.begin
        return self.hours <= deadline and left > 0 and self.chance(left) >= confidence


@functools.cache
def assumptions() -> Assumptions:
    """The bundled figures, read once."""
    return load_assumptions()


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
    """Every candidate of one offer that satisfies all limits, in no order."""
    sizes = range(1, sections["constraints"]["max_nodes"] + 1)
    quotes = expected_quotes(tuple(offers))
    made = [candidate(sections, [(offer, nodes)], quotes) for offer in offers for nodes in sizes]
    return [best for best in made if best is not None]


def brute_force_mixes(sections: dict[str, Any], offers: list[Offer]) -> list[Best]:
    """Every split of a cluster among offers of one place, one of which cannot hold the largest cluster alone."""
    most, found = sections["constraints"]["max_nodes"], {}
    places, quotes = {(offer.machine, offer.region) for offer in offers}, expected_quotes(tuple(offers))
    for machine, region in places:
        here = [offer for offer in offers if (offer.machine, offer.region) == (machine, region)]
        here = [offer for offer in here if offer.purchase_option != "capacity_block"]  # a cluster of its own
        for zone in {offer.zone for offer in here}:
            pool = [offer for offer in here if offer.zone in ("", zone)]
            if all(math.isnan(offer.capacity) or offer.capacity >= most for offer in pool):
                continue
            for counts in itertools.product(range(most + 1), repeat=len(pool)):
                parts = [(offer, count) for offer, count in zip(pool, counts, strict=True) if count]
                spot = sum(offer.purchase_option == "spot" for offer, _ in parts)
                if len(parts) < 2 or sum(counts) > most or spot > 1:
                    continue
                made = candidate(sections, parts, quotes)
                if made is not None:
                    found[made.offer_id] = made
    return list(found.values())


def name_of(parts: Sequence[tuple[str, int]]) -> str:
    """One text for offer ids with their instances, whatever their order."""
    return " + ".join(f"{count} x {name}" for name, count in sorted(parts))


@functools.lru_cache(maxsize=8)
def expected_quotes(offers: tuple[Offer, ...]) -> dict[str, Quote]:
    """What is expected of each price, by the judge's own code."""
    usd = [float(offer.price_per_hour) * usd_per_currency(offer.currency) for offer in offers]
    made = quotes_of(make_catalog(offers).offers, usd, False, NOW.date(), NOW.date())
    return {offer.offer_id: quote for offer, quote in zip(offers, made, strict=True)}


def candidate(
    sections: dict[str, Any], parts: list[tuple[Offer, int]], quotes: dict[str, Quote]
) -> Best | None:
    """Time and price the instances bought in `parts`, None where a limit is broken."""
    limits, assume = sections["constraints"], assumptions()
    training, machine = sections["training"], parts[0][0].machine
    nodes = sum(count for _, count in parts)
    job_key = json.dumps(
        {key: sections[key] for key in ("version", "name", "model", "training", "data", "checkpoint")}
    )
    times = _steps(machine, job_key, 8).get(nodes)
    if times is None or any(count > offer.capacity for offer, count in parts):
        return None
    step, low, high = times
    steps = math.ceil(training["samples"] / training["global_batch"])
    tokens_per_s = training["global_batch"] * training["sequence_length"] / step
    if "min_throughput" in limits and tokens_per_s < limits["min_throughput"]["tokens_per_s"]:
        return None
    for quota in limits.get("quota", []):
        if sum(count * machine.vcpus for offer, count in parts if _draws(offer, quota)) > quota["limit"]:
            return None
    work_hours = steps * step / 3600 * (1 + assume.evaluation_share_ratio + assume.beside_steps_ratio)
    write = 1.0 / (assume.checkpoint_write_gb_per_s_per_node * nodes) / 3600
    spot = next((part for part in parts if part[0].purchase_option == "spot"), None)
    others = nodes - (spot[1] if spot else 0)
    waiting = (assume.provision_s + (assume.on_demand_acquire_s if others else 0)) / 3600
    data_gb = float(sections["data"]["size"].removesuffix("GB"))
    waiting += data_gb * 8 / assume.user_upload_gbps / 3600
    read = min(assume.object_store_read_gb_per_s_per_node * nodes, assume.object_store_read_gb_per_s_total)
    fixed = (assume.image_pull_s + assume.compile_warmup_s + assume.export_s) / 3600 + write
    sigma = math.hypot(math.log(high / low) / (2 * Z80), assume.whole_run_log_sd)
    interval = 0.5
    restart = assume.restart_time_s / 3600 + 1.0 / read / 3600
    failing = 1 + assume.machine_failures_per_node_hour * others * (interval / 2 + restart)
    if spot:
        course, paid, p_of = _spot(*spot, work_hours * failing, write, restart, interval, sigma)
    else:
        course = paid = work_hours * (1 + write / interval) * failing

        def p_of(left: float) -> float:
            return 0.5 * (1 + math.erf(math.log(left / course) / sigma / math.sqrt(2)))

    hours, owed = waiting + fixed + course, 0.0
    for offer, count in parts:
        used = fixed + (paid if offer.purchase_option == "spot" else course)
        late = _overrun(fixed, course, sigma) if offer.purchase_option == "capacity_block" else 0.0
        part = _owed(offer, count, used, late, quotes[offer.offer_id].during(hours).expected)
        if part is None:
            return None
        owed += part
    storage = bundled_tariffs().storage_price(machine.provider, parts[0][0].region)
    assert storage is not None
    owed += (data_gb + 2) * GIB_PER_GB * hours / 730 * float(storage.usd_per_gib_month)
    owed += _read_usd(machine, data_gb, training, nodes)
    if "budget_usd" in limits and owed > limits["budget_usd"]:
        return None
    name = parts[0][0].offer_id
    if len(parts) > 1:
        name = name_of([(offer.offer_id, count) for offer, count in parts])
    made = Best(name, nodes, owed, hours, waiting + fixed, p_of)
    deadline = float(limits["deadline"].removesuffix("h")) if "deadline" in limits else math.inf
    return made if math.isinf(deadline) or made.keeps(deadline, limits["deadline_confidence"]) else None


def _read_usd(machine: Any, data_gb: float, training: dict[str, Any], nodes: int) -> float:
    """Requests for objects of 128 MB: for copies that are there with the image, else for what the steps read."""
    disk_gb, once = (
        machine.local_nvme_gib / GIB_PER_GB,
        training["samples"] * training["sequence_length"] * 2 / 1e9,
    )
    share = data_gb if once > data_gb else data_gb / nodes  # who reads the set again needs all of it
    copied_s = share / min(1.25, 12.5 / nodes, 0.29 * disk_gb / 1000)
    read_gb = share * nodes if copied_s <= 180 and disk_gb >= 1.25 * share else once
    usd = {"aws": 0.0004, "gcp": 0.0004}.get(machine.provider, 0.00044)
    return math.ceil(round(read_gb / 0.128, 6)) / 1000 * usd


def _draws(offer: Offer, quota: dict[str, Any]) -> bool:
    rule = bundled_tariffs().quota_rule(
        offer.machine.provider, offer.machine.family, offer.machine.accelerator, offer.purchase_option
    )
    return rule is not None and quota["quota"] in (rule.code, rule.name)


def _overrun(fixed: float, work: float, sigma: float) -> float:
    """Expected hours of longer blocks: what a run that is not done when its block ends buys, length by length."""
    ends = [24.0 * days for days in BLOCK_DAYS]
    return sum(
        (after - end) * 0.5 * (1 - math.erf(math.log((end - fixed) / work) / sigma / math.sqrt(2)))
        for end, after in zip(ends, [*ends[1:], ends[-1] + 168.0], strict=True)
        if end >= fixed + work
    )


def _owed(offer: Offer, count: int, used: float, late: float, over_quote: float) -> float | None:
    """What `count` instances cost for `used` hours each and `late` more, at a price over the quote, without storage."""
    if offer.option_variant == "already_owned":
        return 0.0
    billed = _billed(offer, used)
    if billed is None:
        return None
    billed += late
    rate = usd_per_currency(offer.currency)
    owed = count * billed * float(offer.price_per_hour) * over_quote * rate
    owed += count * float(offer.upfront_per_instance or 0) * rate
    if "system_disk_separate" in offer.flags:
        fee = bundled_tariffs().system_disk_fee(offer.machine.provider, offer.region)
        if fee is not None:
            owed += count * billed * float(fee.price_per_hour) * usd_per_currency(fee.currency)
    return owed


def _billed(offer: Offer, used: float) -> float | None:
    """Hours billed per instance, None where the option cannot be used that long."""
    if offer.purchase_option == "reserved_1y":
        return math.ceil(used / YEAR_HOURS) * YEAR_HOURS
    if offer.purchase_option == "capacity_block":
        return next((24.0 * days for days in BLOCK_DAYS if 24 * days >= used), None)
    if offer.purchase_option == "flex_start" and used > FLEX_START_HOURS:
        return None
    if offer.purchase_option == "dedicated":
        return float(max(math.ceil(used - 1e-9), 1))
    if offer.purchase_option == "owned":
        return math.ceil(used * 3600 - 1e-9 * 3600) / 3600
    return max(math.ceil(used * 3600 - 1e-9 * 3600), SECONDS[offer.machine.provider]) / 3600


def _spot(
    offer: Offer, nodes: int, work_hours: float, write: float, restart: float, interval: float, sigma: float
) -> Any:
    """Expected hours and the deadline probability by the renewal model, one candidate at a time."""
    assume = assumptions()
    machine = offer.machine
    prior = bundled_tariffs().interruption_prior(
        machine.provider, machine.family, machine.accelerator, offer.interruption_band
    )
    pool = find_pool(machine.provider, machine.instance_type, offer.region, offer.zone)
    if prior.basis == "measured" and pool is not None:
        rate, wait, first_wait, frailty, dispersion = (
            float(np.exp(np.interp(np.log(nodes), np.log(pool.gangs), np.log(column))))
            for column in pool.values.T
        )
    else:
        measured = prior.basis == "measured"
        frailty = assume.spot_frailty_sd if measured else assume.spot_unrecorded_frailty_sd
        rate = prior.rate_per_hour * nodes**prior.gang_exponent * math.exp(frailty**2 / 2)
        wait = prior.mean_wait_hours * nodes**prior.wait_exponent * math.exp(frailty**2 / 2)
        first_wait, dispersion = wait * assume.spot_first_wait_ratio, assume.spot_dispersion_ratio
    notice = {"aws": 120, "gcp": 30, "azure": 30, "alibaba": 300}[machine.provider] / 3600

    pool_and_job = {
        "rate_per_hour": rate, "nodes": 1.0, "gang_exponent": 0.0, "mean_wait_hours": wait,
        "first_wait_hours": first_wait, "dispersion": dispersion, "checkpoint_interval_hours": interval,
        "checkpoint_write_hours": write, "restart_hours": restart, "notice_hours": notice, "frailty_sd": frailty,
    }  # fmt: skip
    expected = spot_outcome(work_hours, **pool_and_job)

    def p_of(left: float) -> float:
        weights = HERMITE[1] / HERMITE[1].sum()
        parts = [
            weight
            * float(
                p_meet_deadline(work_hours * math.exp(sigma * node), deadline_hours=left, **pool_and_job)[0]
            )
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
    sections = work(training=training, data=data, constraints=constraints, preferences=wishes, spot=ONE_WAY)
    return sections, [*offers.values()]


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
    return compare(plan_on(make_catalog(offers), sections, **options), sections, offers, seed)


def compare(answer: Answer, sections: dict[str, Any], offers: list[Offer], seed: int) -> str:
    """Hold an answer against all ways to buy `offers`: `infeasible`, `planned`, or `mixed` for several lines."""
    single = brute_force(sections, offers)
    all_of = single + brute_force_mixes(sections, offers)
    if not all_of:
        assert answer.plan.status == "infeasible", (seed, answer.plan.total_usd)
        return "infeasible"
    assert answer.plan.status == "planned", (seed, all_of)
    first = sections["preferences"]["objective"]

    def value(made: Best) -> float:
        return made.cost if first == "cost" else made.hours

    best = min(all_of, key=value)
    lines = answer.plan.lines
    named = lines[0].offer_id if len(lines) == 1 else name_of([(line.offer_id, line.nodes) for line in lines])
    nodes = sum(line.nodes for line in lines)
    reached = float(answer.plan.total_usd) if first == "cost" else answer.plan.hours
    assert reached == pytest.approx(value(best), rel=1e-8), (seed, best, named, nodes)
    same = [made for made in all_of if (made.offer_id, made.nodes) == (named, nodes)]
    assert same, (seed, "the planner's choice is not feasible", named, nodes)
    assert float(answer.plan.total_usd) == pytest.approx(same[0].cost, rel=1e-8)
    assert answer.plan.hours == pytest.approx(same[0].hours, rel=1e-8)
    assert answer.found is not None
    made = answer.found.candidates
    # spot that is not a discount is left to on-demand, which serves as well
    kept = (made.bits[made.kind == SINGLE] & ~BIT["no_discount"]) == 0
    assert int(kept.sum()) == len(single), seed
    return "mixed" if len(lines) > 1 else "planned"


@pytest.mark.parametrize("block", range(3))
def test_the_choice_equals_brute_force(block: int) -> None:
    """The first seeds; `python -m benchmarks.brute_force --family "job: plan"` tries as many as the clock allows."""
    seen = of_each(check, range(block * 50, (block + 1) * 50))
    assert 5 < len(seen) - seen.count("infeasible") < 48  # both answers are exercised


@pytest.mark.parametrize("backend", ["scipy"])
def test_the_milp_gives_the_same_answer(backend: str) -> None:
    def agree(seed: int) -> bool:
        sections, offers = random_instance(seed)
        answer = plan_on(make_catalog(offers), sections, solver="milp", backend=backend)
        if compare(answer, sections, offers, seed) == "infeasible":
            return False
        by_milp = answer.plan
        exact = plan_on(make_catalog(offers), sections).plan
        assert by_milp.proof is not None
        assert "MILP" in by_milp.proof.method
        assert float(by_milp.proof.objective_usd) >= 0
        assert (by_milp.lines, by_milp.total_usd, by_milp.hours) == (
            exact.lines,
            exact.total_usd,
            exact.hours,
        )
        return True

    assert sum(of_each(agree, range(2_000, 2_040))) >= 12


def test_deadlines_of_the_brute_force_are_those_of_the_planner() -> None:
    sections = work(constraints={"max_nodes": 1, "deadline": "9h", "deadline_confidence": 0.5})
    assert loaded(sections).workload.constraints.deadline == timedelta(hours=9)
