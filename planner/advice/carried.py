"""Hazards that a plan file carries, so that a launcher's first question fits no records (docs/spot/drivers.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.advice.hazards import derived_table
from planner.advice.saved_plan import Capacity
from planner.plan.launch import SpotHazards, hazards_sha256
from planner.spot.hazards import load_hazards
from planner.spot.policy.job import SpotZone

if TYPE_CHECKING:
    from planner.plan.launch import SpotPlace
    from planner.plan.model import Plan, PlanLine
    from planner.spot.hazards_table import HazardTable


def with_hazards(plan: Plan) -> Plan:
    """The plan with the hazards of each of its spot places; as it is where `planner advise` cannot follow it.

    Places whose own records the plan holds get none beside them. A table has ten ages, a place about a kilobyte.
    """
    launch = plan.launch
    if (
        plan.kind == "fleet"
        or launch is None
        or plan.deadline is None
        or not (launch.in_turn or len(plan.lines) == 1)
    ):
        return plan
    lines = {line.offer_id: line for line in plan.lines}
    places = tuple(_with_table(place, lines[place.offer_id]) for place in launch.places)
    return replace(plan, launch=replace(launch, places=places))


def _with_table(place: SpotPlace, line: PlanLine) -> SpotPlace:
    """The place with its table, as `planner advise` would work it out."""
    if place.records is not None:
        return place
    zone = SpotZone(
        line.zone or line.region, line.region, line.instance_type, 0.0, line.provider, line.nodes,
        accelerators=round(line.accelerators_per_node),
    )  # fmt: skip
    capacity = Capacity(place.mean_up_hours, place.mean_wait_hours, place.evidence)
    table = derived_table(capacity, zone, load_hazards, own=False) or load_hazards().table_for(zone)
    return replace(place, hazards=_as_json(table))


def _as_json(table: HazardTable) -> SpotHazards:
    """The table as the plan holds it, with its hash."""
    hazards = SpotHazards(
        tuple(table.age_edges_hours.tolist()), tuple(table.down_per_hour.tolist()), tuple(table.up_per_hour.tolist()),
        float(table.frailty_sd_down), float(table.frailty_sd_up), float(table.hours_seen), bool(table.of_family),
        None if table.observed_ratio is None else float(table.observed_ratio), table.source, "",
    )  # fmt: skip
    return replace(hazards, sha256=hazards_sha256(hazards))
