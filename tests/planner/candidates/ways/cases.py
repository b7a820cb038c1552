"""Catalogs with spot and on-demand of one type in several places, and jobs with a deadline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planner.workloads.answer import Answer
from tests.planner.spine_catalogs import Machine, Offer, make_world, plan_on, work

V100 = Machine("aws", "p3.2xlarge", "p3", "v100-16gb-sxm", accelerator_memory_gib=16.0, internode_gbps=10.0)
A10G = Machine("aws", "g5.2xlarge", "g5", "a10g-24gb-pcie")
HOME = "us-east-1"
AWAY = "eu-west-1"


def on_demand(price: str = "3.00", machine: Machine = V100, region: str = HOME) -> Offer:
    return Offer(machine, region, price)


def spot(price: str = "0.90", zone: str = "", machine: Machine = V100, region: str = HOME) -> Offer:
    return Offer(machine, region, price, "spot", zone=zone)


# one place with one zone; the same with two more zones in another order of price; and another region
ONE_ZONE = [on_demand(), spot(zone="use1-az1")]
THREE_ZONES = [*ONE_ZONE, spot("0.93", "use1-az2"), spot("0.95", "use1-az3")]
TWO_REGIONS = [*ONE_ZONE, spot("0.85", region=AWAY), on_demand("3.30", region=AWAY)]


def answer(
    offers: list[Offer], deadline_hours: float | None, confidence: float = 0.9, **changes: Any
) -> Answer:
    limits: dict[str, Any] = {"max_nodes": changes.pop("max_nodes", 1), **changes.pop("constraints", {})}
    if deadline_hours is not None:
        limits |= {"deadline": f"{deadline_hours * 3600:.0f}s", "deadline_confidence": confidence}
    folder = changes.pop("folder", Path())
    return plan_on(make_world(offers), work(constraints=limits, **changes), folder=folder)
