"""One sentence that says why: what is seen, what the record lets one expect, and what the alternative would cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.render.numbers import usd

if TYPE_CHECKING:
    from collections.abc import Iterable

    from planner.advice.model import Advice
    from planner.spot.hazards import HazardTable
    from planner.spot.policy.job import ZoneState

_NO_DISCOUNT = "spot costs as much as on-demand or more, so it is not a discount"


def reason(advice: Advice) -> str:
    """Why this action and not the next best."""
    if advice.status == "late":
        return _late(advice)
    if advice.decided_by == "guard":
        return (
            f"on-demand must be requested now: {advice.time_left_hours:.1f} h are left for "
            f"{advice.work_left_hours:.1f} h of work and {_start_hours(advice):.1f} h until on-demand makes progress"
        )
    by_mode = {"idle": _waiting, "spot": _spot, "on_demand": _on_demand}
    return by_mode[advice.chosen.action.mode](advice) + _instead(advice)


def _late(advice: Advice) -> str:
    lead = (
        f"even on-demand requested now would end {-advice.no_return_hours:.1f} h after the deadline"
        if advice.no_return_hours < 0
        else "on-demand can no longer end in time"
    )
    action = advice.chosen.action
    if action.mode == "spot" and advice.question.state.mode == "spot":
        return f"{lead}, but the run on spot still can if it is not interrupted: it is left running"
    if action.mode == "spot":
        return f"{lead}, but spot in {action.zone}, started now, still can if it is not interrupted"
    return f"{lead}; nothing is sure to end sooner"


def _start_hours(advice: Advice) -> float:
    return advice.time_left_hours - advice.work_left_hours - advice.no_return_hours


def _waiting(advice: Advice) -> str:
    slack = f"{advice.no_return_hours:.1f} h may pass before on-demand must start"
    up = [zone for zone in advice.question.state.zones if zone.available]
    if up and not _cheaper(advice, up):
        return f"{_NO_DISCOUNT}, and {slack}"
    if up:
        best = min(up, key=lambda zone: zone.usd_per_hour)
        return f"{best.name} is up but for too short or at too high a price to pay for a restart, and {slack}"
    hours = min(remaining_hours(advice.tables[zone.name], zone) for zone in advice.question.state.zones)
    return f"no zone is up; by the record, one is up again within about {hours:.1f} h, and {slack}"


def _spot(advice: Advice) -> str:
    question, name = advice.question, advice.chosen.action.zone
    zone = next(zone for zone in question.state.zones if zone.name == name)
    share = zone.usd_per_hour / question.job.on_demand_usd_per_hour
    life = remaining_hours(advice.tables[zone.name], zone)
    return (
        f"{zone.name} is up at {100 * share:.0f} % of the on-demand price, and a spell of its age lasts about "
        f"{life:.1f} h more"
    )


def _on_demand(advice: Advice) -> str:
    state = advice.question.state
    if not _cheaper(advice, state.zones):
        return _NO_DISCOUNT
    slack = f"{advice.no_return_hours:.1f} h of slack are left"
    if state.mode == "on_demand":
        return f"{slack}: leaving on-demand for spot would pay a restart for too little"
    return f"{slack}: spot is too scarce for it, and on-demand now costs less than a race later"


def _cheaper(advice: Advice, zones: Iterable[ZoneState]) -> bool:
    """Whether spot costs less than on-demand in any of the zones."""
    return any(zone.usd_per_hour < advice.question.job.on_demand_usd_per_hour for zone in zones)


def _instead(advice: Advice) -> str:
    """What the next best action would cost more."""
    if not advice.others:
        return ""
    other = advice.others[0]
    more = other.cost_usd - advice.chosen.cost_usd
    place = (
        f" in {other.action.zone}" if other.action.zone and other.word in ("start spot", "migrate") else ""
    )
    if other.word == "switch to on-demand":
        place = " for now"  # and back to spot when that costs less again
    if abs(more) < 0.005 * max(abs(advice.chosen.cost_usd), 0.01):
        return f"; to {_verb(other.word)}{place} instead costs about the same"
    if more < 0:
        return ""
    return f"; to {_verb(other.word)}{place} instead would cost about {usd(more)} more"


def _verb(word: str) -> str:
    return "start" if word == "start spot" else word


def remaining_hours(table: HazardTable, zone: ZoneState) -> float:
    """Mean hours until the present spell ends, by its age.

    With hazard `h` constant within each age bucket: `sum of S (1 - exp(-h w)) / h` over what is left of the buckets,
    `S` the chance to live that long and `w` the width of a bucket's rest (as `planner.spot.hazards.mean_spell_hours`).
    """
    hazard = np.maximum(table.down_per_hour if zone.available else table.up_per_hour, 1e-9)
    start = np.maximum(table.age_edges_hours, zone.since_hours)
    end = np.maximum(np.append(table.age_edges_hours[1:], np.inf), zone.since_hours)
    width = end - start
    survive = np.exp(-np.concatenate(([0.0], np.cumsum(hazard[:-1] * width[:-1]))))
    return float((survive * -np.expm1(-hazard * width) / hazard).sum())
