"""One job bought in parts: brute force over all splits, laws, the MILP twin, verification of tampered plans."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from planner.job.model import SingleInput, build_single, solve_single
from planner.job.model_mix import MixInput
from planner.judge.lines import verify_plan
from planner.plan.certificates.enumeration import check
from planner.workloads.certificate import certify
from tests.draws import share_of
from tests.few_remedies import of_each
from tests.lp_text import lp_text
from tests.planner.fleet.test_model_goldens import FOLDER
from tests.planner.job.test_frontier import front_of
from tests.planner.job.test_spine_brute_force import ONE_WAY, compare
from tests.planner.judge.tampering import resum
from tests.planner.spine_catalogs import (
    A10G,
    NAN,
    REGIONS,
    T4,
    V100,
    Offer,
    bought_on,
    chosen,
    cost_of,
    loaded,
    make_catalog,
    make_world,
    not_dearer,
    plan_on,
    work,
)

Json = dict[str, Any]
QUOTAS = {
    "g5": "L-DB2E81BA",
    "p3": "L-417A185B",
}  # on demand and reserved; spot and own machines do not count


def random_mix(seed: int) -> tuple[Json, list[Offer]]:
    """Offers of one or two places, most of them of limited capacity, and a job that wants more than one holds."""
    rng = random.Random(f"mixed {seed}")
    machine = rng.choice([A10G, V100, T4])
    region = REGIONS[machine.provider][0]
    samples = rng.choice([5_000_000, 9_000_000, 20_000_001])
    work_hours = samples / {A10G: 1.5e6, V100: 1.9e6, T4: 0.84e6}[machine]
    with_spot = seed % 4 == 0
    offers: dict[str, Offer] = {}
    for option in rng.sample(["on_demand", "owned", "reserved_1y", "dedicated"], rng.randint(2, 3)):
        low, high = (150, 500) if option == "on_demand" else (20, 200)
        offers[option] = _offer(rng, Offer(machine, region, str(rng.randint(low, high) / 100), option))
    if with_spot:
        offers["spot"] = _offer(rng, Offer(machine, region, str(rng.randint(10, 200) / 100), "spot"))
    if rng.random() < 0.3:
        offers["far"] = Offer(machine, REGIONS[machine.provider][1], str(rng.randint(20, 500) / 100))
    limits: Json = {"max_nodes": rng.choice([3, 4] if with_spot else [4, 5, 6])}
    if rng.random() < 0.8:
        # about a third to all of the hours that one machine needs: more machines than one offer holds
        hours = work_hours * rng.choice([0.25, 0.3, 0.4, 0.6, 1.0]) + 0.7
        limits |= {"deadline": f"{hours:.3f}h", "deadline_confidence": rng.choice([0.5, 0.8])}
    if rng.random() < 0.25:
        limits["budget_usd"] = rng.choice([5, 12, 30, 80])
    if machine.family in QUOTAS and {"on_demand", "reserved_1y"} & offers.keys() and rng.random() < 0.4:
        quota = {"provider": "aws", "quota": QUOTAS[machine.family], "limit": rng.choice([8, 16, 24])}
        limits["quota"] = [quota]
    training = {
        "samples": samples, "global_batch": 240, "sequence_length": 128,
        "precision": "fp16",
    }  # fmt: skip
    wishes = {"objective": "time" if rng.random() < 0.2 else "cost"}
    job = work(
        training=training, data={"size": rng.choice(["1GB", "20GB"])}, constraints=limits, preferences=wishes,
        spot=ONE_WAY,
    )  # fmt: skip
    return job, [*offers.values()]


def _offer(rng: random.Random, offer: Offer) -> Offer:
    """Give an offer a zone and a capacity; a commitment's price is per hour of its whole year."""
    scarce = offer.purchase_option != "on_demand" or rng.random() < 0.2
    capacity = float(rng.randint(1, 2)) if scarce and rng.random() < 0.9 else NAN
    offer = replace(offer, capacity=capacity, zone=rng.choice(["", "", "a", "b"]))
    if offer.purchase_option == "reserved_1y":
        return replace(offer, price_per_hour=str(rng.randint(1, 30) / 10_000), term_hours=8760.0)
    return offer


def check_mix(seed: int) -> str:
    """Hold a cluster bought in parts against every split; returns what the plan is."""
    job, offers = random_mix(seed)
    return compare(plan_on(make_catalog(offers), job), job, offers, seed)


@pytest.mark.parametrize("block", range(2))
def test_splits_equal_brute_force(block: int) -> None:
    """The first seeds; `python -m benchmarks.brute_force --family "bought in parts"` tries more."""
    seen = of_each(check_mix, range(block * 50, (block + 1) * 50))
    assert seen.count("mixed") >= 5, seen
    assert seen.count("planned") >= 5


def test_the_milp_chooses_the_same_splits() -> None:
    def by_milp(seed: int) -> str:
        job, offers = random_mix(seed)
        answer = plan_on(make_catalog(offers), job, solver="milp")  # raises where the two methods differ
        assert answer.plan.proof is not None
        assert answer.plan.status == "infeasible" or "MILP" in answer.plan.proof.method
        return compare(answer, job, offers, seed)

    assert of_each(by_milp, range(1_000, 1_050)).count("mixed") >= 8


def test_golden_lp() -> None:
    mix = MixInput(
        fixed=np.array([5.0, 40.0]), need=np.array([8, 6]), choice=np.array([0, 0, 1]),
        unit=np.array([0.0, 30.0, 20.0]), most=np.array([4.0, 8.0, 6.0]), limit=np.array([500.0]),
        limit_fixed=np.array([[0.0, 96.0]]), limit_unit=np.array([[0.0, 96.0, 96.0]]),
    )  # fmt: skip
    job = SingleInput((("p4d", 8),), np.array([300.0]), np.array([10.0]), mix=mix)
    path = FOLDER / "single_mix.lp"
    text = lp_text(build_single(job))
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    result = solve_single(job)
    assert result.key == ("mix", 0)
    assert result.objective_usd == pytest.approx(5.0 + 4 * 30.0)


OWNED = {
    "provider": "aws",
    "region": "us-east-1",
    "instance_type": "g5.2xlarge",
    "purchase_option": "reserved_1y",
}
LISTED = [
    Offer(A10G, "us-east-1", "1.10"),
    Offer(A10G, "us-east-1", "0.50", "spot"),
    Offer(A10G, "eu-west-1", "1.05"),
]


EIGHT = {"samples": 20_000_000, "global_batch": 3840, "sequence_length": 128, "precision": "fp16"}


def hours_on(nodes: int) -> float:
    """Hours of the job on machines that nobody takes back."""
    found = bought_on(make_catalog(LISTED[:1]), work(training=EIGHT, constraints={"max_nodes": 8})).found
    assert found is not None
    return float(found.candidates.hours[found.candidates.nodes == nodes][0])


def eight_nodes(owned: int, **limits: Any) -> Json:
    """A job that keeps its deadline on eight machines only (240 divides by 6 and 8, not by 7); some are owned."""
    hours = (hours_on(6) + hours_on(8)) / 2
    bounds = {"max_nodes": 8, "deadline": f"{hours:.4f}h", "deadline_confidence": 0.5, **limits}
    job = work(training=EIGHT, constraints=bounds)
    return {**job, "commitments": [{**OWNED, "nodes": owned}]} if owned else job


def test_owned_machines_are_topped_up() -> None:
    job = eight_nodes(4, purchase_options=["on_demand", "reserved_1y"])
    catalog = make_catalog(LISTED)
    answer = plan_on(catalog, job)
    plan = answer.plan
    owned = "aws/us-east-1/-/g5.2xlarge/reserved_1y/already_owned"
    assert chosen(answer) == [(owned, 4), ("aws/us-east-1/-/g5.2xlarge/on_demand/-", 4)]
    alone = plan_on(catalog, eight_nodes(0, purchase_options=["on_demand"])).plan
    assert plan.total_usd < alone.total_usd * Decimal("0.56")
    assert plan.performance == alone.performance
    assert sum(line.throughput_per_s for line in plan.lines) == pytest.approx(alone.lines[0].throughput_per_s)
    kinds = [cost.kind for line in plan.lines for cost in line.costs]
    assert kinds.count("checkpoint_storage") == 1
    assert kinds.count("data_storage") == 2  # the copy in the region, and the requests that read it
    assert any("one cluster bought in parts" in text for text in plan.warnings)
    assert plan.savings is not None
    assert plan.savings.baseline is not None
    assert plan.savings.baseline.purchase_option == "on_demand"
    assert {other.purchase_option for other in plan.alternatives} == {"on_demand"}
    assert verify_plan(plan.to_dict(), loaded(job).workload, catalog.offers) == []


def test_a_mix_with_spot_pays_the_owned_machines_while_it_waits() -> None:
    fast = plan_on(make_catalog(LISTED), eight_nodes(0)).plan.performance
    assert fast is not None
    floor = {"tokens_per_s": fast.throughput_per_s * 0.9}
    job = eight_nodes(6, purchase_options=["spot", "reserved_1y"], deadline="900h", min_throughput=floor)
    answer = plan_on(make_catalog(LISTED), job)
    assert answer.plan.status == "planned"
    by_option = {line.purchase_option: line for line in answer.plan.lines}
    assert set(by_option) == {"spot", "reserved_1y"}
    assert by_option["reserved_1y"].billed_hours > by_option["spot"].billed_hours
    assert answer.plan.risk is not None
    assert answer.plan.risk.expected_interruptions > 0
    assert answer.plan.risk.worst_cost_usd >= answer.plan.total_usd


def _more_than_owned(plan: Json) -> None:
    """Five of the four owned machines, three bought."""
    for line, nodes in zip(plan["lines"], (5, 3), strict=True):
        line["nodes"] = nodes
        item = next(cost for cost in line["costs"] if cost["kind"] == "compute")
        if line["option_variant"] != "already_owned":
            item["quantity"] = str(Decimal(line["billed_hours"]) * nodes)
    resum(plan)


def _other_region(plan: Json) -> None:
    line = plan["lines"][1]
    line.update(region="eu-west-1", price_per_hour="1.05")
    line["offer_id"] = "aws/eu-west-1/-/g5.2xlarge/on_demand/-"
    for cost in line["costs"]:
        cost["unit_price"] = "1.05"
    resum(plan)


def _storage_twice(plan: Json) -> None:
    first, second = plan["lines"]
    second["costs"] += [cost for cost in first["costs"] if cost["kind"] == "checkpoint_storage"]
    resum(plan)


def _fewer_hours(plan: Json) -> None:
    line = plan["lines"][1]
    line["billed_hours"] = str(Decimal(line["billed_hours"]) / 2)
    item = next(cost for cost in line["costs"] if cost["kind"] == "compute")
    item["quantity"] = str(Decimal(line["billed_hours"]) * line["nodes"])
    resum(plan)


def _only_owned(plan: Json) -> None:
    plan["lines"] = plan["lines"][:1]
    resum(plan)


def _other_layout(plan: Json) -> None:
    plan["lines"][1]["layout"]["data_parallel"] += 1


def _zones(plan: Json) -> None:
    for line, zone in zip(plan["lines"], ("use1-az1", "use1-az2"), strict=True):
        line["zone"] = zone


@pytest.mark.parametrize(
    ("tamper", "told"),
    [
        (_more_than_owned, "5 nodes of commitments that hold 4"),
        (_other_region, "lines of different region"),
        (_storage_twice, "charged by more than one line"),
        (_fewer_hours, "h billed, in use for"),
        (_only_owned, "ranks on"),
        (_other_layout, "lines of different layout"),
        (_zones, "2 zones"),
    ],
)
def test_a_tampered_mix_is_refused(tamper: Callable[[Json], None], told: str) -> None:
    job = eight_nodes(4, purchase_options=["on_demand", "reserved_1y"])
    catalog = make_catalog(LISTED)
    plan = copy.deepcopy(plan_on(catalog, job).plan.to_dict())
    assert verify_plan(plan, loaded(job).workload, catalog.offers) == []
    tamper(plan)
    assert told in "; ".join(verify_plan(plan, loaded(job).workload, catalog.offers))


def test_a_catalog_capacity_is_verified() -> None:
    offers = [Offer(A10G, "us-east-1", "0.10", "owned", capacity=4.0), *LISTED]
    job, catalog = eight_nodes(0), make_catalog(offers)
    plan = plan_on(catalog, job).plan.to_dict()
    assert [(line["purchase_option"], line["nodes"]) for line in plan["lines"]] == [
        ("owned", 4),
        ("on_demand", 4),
    ]
    fewer = make_catalog([replace(offers[0], capacity=3.0), *LISTED])
    assert "4 nodes, the catalog has 3" in "; ".join(verify_plan(plan, loaded(job).workload, fewer.offers))


def test_more_owned_capacity_never_raises_the_cost() -> None:
    catalog, last = make_catalog(LISTED), None
    used = []
    for owned in range(9):
        answer = bought_on(catalog, eight_nodes(owned))
        assert not_dearer(cost_of(answer), last)
        last = cost_of(answer)
        used.append(dict(chosen(answer)).get("aws/us-east-1/-/g5.2xlarge/reserved_1y/already_owned", 0))
    assert used == sorted(used)
    assert used[-1] == 8


@pytest.mark.parametrize("seed", range(1, 1 + 6 * share_of(20), 6))
def test_laws_of_mixes(seed: int) -> None:
    job, offers = random_mix(seed)
    cost = cost_of(bought_on(make_world(offers), {**job, "preferences": {"objective": "cost"}}))
    job = {**job, "preferences": {"objective": "cost"}}
    fewer = cost_of(bought_on(make_world(offers[1:]), job))
    assert not_dearer(cost, fewer), "one more offer"
    roomier = [replace(offer, capacity=offer.capacity + 1) for offer in offers]
    assert not_dearer(cost_of(bought_on(make_world(roomier), job)), cost), "one more machine of each"
    twice = bought_on(make_world([*offers, *offers]), job)
    assert cost_of(twice) == cost, "a listed duplicate shares the capacity"
    mixed = bought_on(make_world(random.Random(seed).sample(offers, len(offers))), job)
    assert chosen(mixed) == chosen(bought_on(make_world(offers), job)), "order of rows"
    if "deadline" in job["constraints"]:
        later = {**job["constraints"], "deadline": "40h"}
        assert not_dearer(cost_of(bought_on(make_world(offers), {**job, "constraints": later})), cost)


def test_two_owned_commitments_of_one_kind_add_up() -> None:
    job = eight_nodes(3, purchase_options=["on_demand", "reserved_1y"])
    job["commitments"] = [{**OWNED, "nodes": 3}, {**OWNED, "nodes": 2}]
    answer = plan_on(make_catalog(LISTED), job)
    assert sorted(line.nodes for line in answer.plan.lines) == [2, 3, 3]
    assert verify_plan(answer.plan.to_dict(), loaded(job).workload) == []


def test_a_capacity_block_is_a_cluster_of_its_own() -> None:
    block = Offer(A10G, "us-east-1", "0.20", "capacity_block", capacity=4.0)
    plan = plan_on(
        make_catalog([block, *LISTED]), eight_nodes(0, purchase_options=["on_demand", "capacity_block"])
    ).plan
    assert [line.purchase_option for line in plan.lines] == ["on_demand"]


def test_the_certificate_names_all_parts() -> None:
    answer = plan_on(make_catalog(LISTED), eight_nodes(4, purchase_options=["on_demand", "reserved_1y"]))
    certificate = certify(answer)
    assert check(certificate) == []
    assert "4 x aws/us-east-1/-/g5.2xlarge/on_demand/-" in certificate["offers"][certificate["chosen"]]


def test_a_job_that_nothing_fits_is_told_how_much_later() -> None:
    answer = plan_on(make_catalog(LISTED), eight_nodes(4, deadline="1h", purchase_options=["on_demand"]))
    assert answer.plan.status == "infeasible"
    deadline = next(item for item in answer.plan.relaxations if item.constraint == "deadline")
    assert deadline.best is not None
    assert deadline.best.nodes == 8


@pytest.mark.parametrize("seed", [*range(2, 40, 3), 4, 8, 12])
def test_each_point_of_the_frontier_is_the_plan_of_its_deadline(seed: int) -> None:
    job, offers = random_mix(seed)
    limits = {"max_nodes": job["constraints"]["max_nodes"], "deadline_confidence": 0.8}
    points = front_of(offers, {**job, "constraints": limits}).points
    times = [*(point.deadline_hours for point in points), float("inf")]
    for point, after in zip(points, times[1:], strict=True):
        later = point.deadline_hours * 1.0015  # whole seconds, and spot times are worked out to 0.1 %
        if later < after * 0.998:
            within = {**limits, "deadline": f"{later * 3600:.0f}s"}
            plan = {**job, "constraints": within, "preferences": {"objective": "cost"}}
            assert cost_of(bought_on(make_catalog(offers), plan)) == point.best.cost_usd


def test_a_pool_on_which_nothing_runs_has_no_splits() -> None:
    offers = [
        Offer(V100, "us-east-1", "1", option, capacity=2.0) for option in ("owned", "spot", "on_demand")
    ]
    long = {"tokens": 1e9, "global_batch": 8, "sequence_length": 8192, "precision": "fp16"}
    job = work(model={"preset": "gpt3-175b"}, training=long, constraints={"max_nodes": 4})
    answer = plan_on(make_catalog(offers), job)
    assert answer.plan.status == "infeasible"
    assert answer.found is not None
    assert answer.found.candidates.mixes is None
