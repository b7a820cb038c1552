"""Re-check what a plan with spot says of its launch, from its lines alone; shares no code with what made it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Json = dict[str, Any]
_HOURS = 1e-6
_CHANCE = 1e-9
# Billing rounds a line up: at most to the next whole hour.
_ROUNDED_UP = 1.0
_WORK = ("training_steps", "evaluation", "beside_steps", "checkpoints")


def runs_in_turn(plan: Json) -> bool:
    """Whether the lines are used one after another: on-demand after spot, or spot in one zone after another."""
    launch = plan.get("launch")
    if not launch:
        return False
    if plan["kind"] == "fleet":  # each of its workers is on one of its lines at a time
        return bool(launch["strategy"] == "spot_with_fallback")
    several = launch["strategy"] == "spot" and len(plan["lines"]) > 1
    return bool(launch["strategy"] == "spot_with_fallback" or several)


def at_once(plan: Json, amounts: Sequence[float]) -> float:
    """What lines take together, an amount each: the most of those that the same machines are on in turn."""
    launch = plan.get("launch")
    if runs_in_turn(plan):
        return max(amounts)
    if launch and launch["strategy"] == "fallback_in_fleet":
        return max(amounts[:2]) + sum(amounts[2:])
    return sum(amounts)


def check_launch(plan: Json) -> list[str]:
    """Return every fault of the section `launch` against the plan's lines, hours and total."""
    launch, lines = plan.get("launch"), plan["lines"]
    spot = [line for line in lines if line["purchase_option"] == "spot"]
    if plan["kind"] == "fleet" or "launch" not in plan:
        return []
    if launch is None:
        return ["spot without what to expect of it at launch"] if spot else []
    faults = [*_spread(plan, launch), *_chances(plan, launch), *_checkpoints(launch)]
    if not spot:
        faults.append("what to expect of spot at launch, though no line is spot")
    place_ids = [place["offer_id"] for place in launch["places"]]
    if place_ids != [line["offer_id"] for line in spot]:
        faults.append(f"the places of spot at launch are not the spot lines: {', '.join(place_ids)}")
    faults += _hours(plan, launch, spot)
    return faults + (_in_turn(plan, launch, spot) if runs_in_turn(plan) else [])


def _spread(plan: Json, launch: Json) -> list[str]:
    faults = []
    expected = Fraction(launch["expected_cost_usd"])
    if expected != Fraction(plan["total_usd"]):
        faults.append(f"expected cost {launch['expected_cost_usd']} is not the total {plan['total_usd']}")
    if not Fraction(launch["cost_p10_usd"]) <= expected <= Fraction(launch["cost_p90_usd"]):
        faults.append("the expected cost is outside its own P10-P90")
    if abs(launch["expected_hours"] - plan["hours"]) > _HOURS * max(1.0, plan["hours"]):
        faults.append(f"expected hours {launch['expected_hours']} are not the plan's {plan['hours']}")
    if not launch["p10_hours"] - _HOURS <= plan["hours"] <= launch["p90_hours"] + _HOURS:
        faults.append("the expected hours are outside their own P10-P90")
    return faults


def _chances(plan: Json, launch: Json) -> list[str]:
    faults = []
    stated, risk = launch["p_meet_deadline"], plan["risk"]["p_meet_deadline"]
    if (stated is None) != (plan["deadline"] is None):
        faults.append("P(deadline met) at launch does not fit the deadline")
    elif stated is not None and (risk is None or abs(stated - risk) > 1e-9):
        faults.append(f"P(deadline met) {stated} at launch is not the risk's {risk}")
    alone = launch["p_meet_spot_only_ratio"]
    needed = launch["p_on_demand_needed_ratio"]
    if stated is not None and alone is not None and stated < alone - _CHANCE:
        faults.append(f"P(deadline met) {stated} is below that of spot alone, {alone}")
    if launch["strategy"] == "spot_with_fallback" and alone is not None and needed < 1.0 - alone - _CHANCE:
        faults.append(f"on-demand is needed with {needed}, spot alone is late with {1.0 - alone}")
    values = (stated, alone, needed)
    return faults + [
        f"{value} is not a probability" for value in values if value is not None and not 0 <= value <= 1
    ]


def _checkpoints(launch: Json) -> list[str]:
    saved = launch["checkpoints"]
    fits = saved["notice_s"] is not None and saved["write_s"] <= saved["notice_s"]
    return (
        []
        if fits == saved["fits_in_notice"]
        else ["whether a checkpoint fits into the notice is reported wrongly"]
    )


def _hours(plan: Json, launch: Json, spot: list[Json]) -> list[str]:
    """Billed hours cover the expected ones line by line, and the hours paid cover the work."""
    faults = []
    for line, place in zip(spot, launch["places"], strict=False):
        faults += _covers(line, place["spot_hours"])
    spot_hours = sum(place["spot_hours"] for place in launch["places"])
    if abs(spot_hours - launch["spot_hours"]) > _HOURS * max(1.0, spot_hours):
        faults.append(f"spot hours of the places sum to {spot_hours}, not {launch['spot_hours']}")
    work = sum(part["hours"] for part in plan["timeline"] if part["id"] in _WORK)
    paid = launch["spot_hours"] + launch["on_demand_hours"]
    if paid < work * (1 - 1e-6) - _HOURS:
        faults.append(f"{paid} h are paid for, the work takes {work} h")
    if paid + launch["waiting_hours"] > plan["hours"] + _HOURS * max(1.0, plan["hours"]) + 1e-3:
        faults.append(
            f"{paid} h paid and {launch['waiting_hours']} h of waiting are more than {plan['hours']} h"
        )
    return faults


def _covers(line: Json, hours: float) -> list[str]:
    billed = float(line["billed_hours"])
    if hours - _HOURS <= billed <= hours + _ROUNDED_UP:
        return []
    return [f"{line['offer_id']}: {line['billed_hours']} h billed for {hours} h expected"]


def _in_turn(plan: Json, launch: Json, spot: list[Json]) -> list[str]:
    """Spot of one type and gang in one place after another, and at most one on-demand line after it."""
    lines, faults = plan["lines"], []
    other = [line for line in lines if line["purchase_option"] != "spot"]
    if launch["strategy"] == "spot_with_fallback":
        if len(other) != 1 or other[0]["purchase_option"] != "on_demand":
            faults.append("a fall-back is one on-demand line")
        else:
            faults += _covers(other[0], launch["on_demand_hours"])
            faults += [_dear(line) for line in spot if _usd(line) >= _usd(other[0])]
        if plan["deadline"] is None:
            faults.append("a fall-back without a deadline")
    elif other:
        faults.append("spot alone has no other line")
    if len({line["nodes"] for line in lines}) > 1:
        faults.append("lines used one after another have different numbers of nodes")
    places = [(line["provider"], line["region"], line["zone"]) for line in spot]
    if len(set(places)) < len(places):
        faults.append("one zone is used by two lines")
    regions = {(line["provider"], line["region"]) for line in spot}
    carried = any(item["id"] == "checkpoint_transfer" for line in lines for item in line["costs"])
    if len(regions) > 1 and not carried:
        faults.append(f"spot in {len(regions)} regions, but no checkpoint is carried between them")
    return faults


def _usd(line: Json) -> Fraction:
    return Fraction(line["price_per_hour"]) * Fraction(line["usd_per_currency"])


def _dear(line: Json) -> str:
    return f"{line['offer_id']}: spot at or above the on-demand price is not a discount"
