"""One job bought in parts: brute force over all splits, laws, the MILP twin, verification of tampered plans."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.planner.spine_catalogs import (
    A10G,
    NAN,
    REGIONS,
    T4,
    V100,
    Offer,
    make_catalog,
    plan_on,
    work,
)
from tests.planner.test_spine_brute_force import compare

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
    with_spot = seed % 4 == 0
    offers: dict[str, Offer] = {}
    for option in rng.sample(["on_demand", "owned", "reserved_1y", "dedicated"], rng.randint(2, 3)):
        offers[option] = _offer(rng, Offer(machine, region, str(rng.randint(20, 500) / 100), option))
    if with_spot:
        offers["spot"] = _offer(rng, Offer(machine, region, str(rng.randint(10, 200) / 100), "spot"))
    if rng.random() < 0.3:
        offers["far"] = Offer(machine, REGIONS[machine.provider][1], str(rng.randint(20, 500) / 100))
    limits: Json = {"max_nodes": rng.randint(2, 4 if with_spot else 6)}
    if rng.random() < 0.8:
        limits |= {
            "deadline": f"{rng.choice([1.5, 2, 2.5, 3, 4, 6])}h",
            "deadline_confidence": rng.choice([0.5, 0.8, 0.9]),
        }
    if rng.random() < 0.3:
        limits["budget_usd"] = rng.choice([5, 12, 30, 80])
    if machine.family in QUOTAS and {"on_demand", "reserved_1y"} & offers.keys() and rng.random() < 0.4:
        quota = {"provider": "aws", "quota": QUOTAS[machine.family], "limit": rng.choice([8, 16, 24])}
        limits["quota"] = [quota]
    training = {
        "samples": rng.choice([4_000_000, 6_000_000, 9_000_001]), "global_batch": 240, "sequence_length": 128,
        "precision": "fp16",
    }  # fmt: skip
    wishes = {"objective": "time" if rng.random() < 0.2 else "cost"}
    job = work(
        training=training, data={"size": rng.choice(["1GB", "20GB"])}, constraints=limits, preferences=wishes
    )
    return job, [*offers.values()]


def _offer(rng: random.Random, offer: Offer) -> Offer:
    """Give an offer a zone and a capacity; a commitment's price is per hour of its whole year."""
    scarce = offer.purchase_option != "on_demand" or rng.random() < 0.2
    capacity = float(rng.randint(1, 3)) if scarce and rng.random() < 0.8 else NAN
    offer = replace(offer, capacity=capacity, zone=rng.choice(["", "", "a", "b"]))
    if offer.purchase_option == "reserved_1y":
        return replace(offer, price_per_hour=str(rng.randint(1, 30) / 10_000), term_hours=8760.0)
    return offer


@pytest.mark.parametrize("block", range(6))
def test_splits_equal_brute_force(block: int) -> None:
    seen = []
    for seed in range(block * 100, (block + 1) * 100):
        job, offers = random_mix(seed)
        seen.append(compare(plan_on(make_catalog(offers), job), job, offers, seed))
    assert seen.count("mixed") >= 10, seen
    assert seen.count("planned") >= 10
