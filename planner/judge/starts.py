"""How long an offer's capacity takes to come and how often it never does: waiting.csv and the workload, read anew."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.inputs.schema import Constraints
    from planner.judge.goods import Offer


def waits(offers: Sequence[Offer], nodes: int, limits: Constraints, start: datetime) -> tuple[float, float]:
    """Hours until the last purchase is there, each asked at the size of the whole cluster, and P(all come).

    Spot has no wait of this kind: it waits as its records say.
    """
    each = [start_of(offer, nodes, limits, start) for offer in offers if not offer.is_spot]
    return max((hours for hours, _ in each), default=0.0), min((had for _, had in each), default=1.0)


def start_of(offer: Offer, nodes: int, limits: Constraints, start: datetime) -> tuple[float, float]:
    """Hours from asking for `nodes` instances to having them, and the probability that they come."""
    provider, option = offer.text("provider"), offer.text("purchase_option")
    region, accelerator = offer.text("region"), str(offer.kind["accelerator"])
    told = [
        own
        for own in limits.waiting
        if fnmatchcase(provider, own.provider or "*")
        if fnmatchcase(option, own.purchase_option)
        if fnmatchcase(region, own.region) and fnmatchcase(accelerator, own.accelerator)
    ]
    if told:
        return told[-1].hours, 1.0 - min(told[-1].never_ratio, 0.5)
    if offer.text("option_variant") == "already_owned":
        return 0.0, 1.0
    for row in _table("waiting"):
        here = fnmatchcase(provider, row["provider"]) and fnmatchcase(option, row["purchase_option"])
        if here and fnmatchcase(accelerator, row["accelerator"]):
            most = most_by_asking(provider, region, accelerator, option, limits)
            part = offer.accelerators * nodes / (float(row["accelerators"]) if most is None else most)
            lead, rest = _lead(float(row["lead_hours"]), row["start_utc"], start), float(row["hours"]) * part
            never, size = float(row["never_ratio"]) * part, offer.accelerators * nodes
            free = 0.0 if row["start_utc"] else lead  # of a calendar
            longer, oftener = _learnt(offer, limits, (free, rest / size, never / size))
            wait = (lead if row["start_utc"] else lead * longer) + rest * longer
            return wait, 1.0 - min(never * oftener, 0.5)
    return 0.0, 1.0


def _learnt(offer: Offer, limits: Constraints, table: tuple[float, float, float]) -> tuple[float, float]:
    """How much longer capacity takes, and how much more often it never comes, by the user's requests.

    Args:
        offer: what was asked for.
        limits: the workload's.
        table: hours whatever the size, hours and chance of never coming of each accelerator.
    """
    prior = {row["name"]: float(row["value"]) for row in _table("waiting_prior")}
    names = [offer.text("provider"), offer.text("purchase_option"), offer.text("region")]
    longer, came, missed, expected = prior["requests"], prior["requests"], prior["nevers"], prior["nevers"]
    for one in limits.waited:
        rules = zip(names, (one.provider or "*", one.purchase_option, one.region), strict=True)
        fits = all(fnmatchcase(text, rule) for text, rule in rules)
        usual = table[0] + table[1] * one.accelerators
        if not fits or not fnmatchcase(str(offer.kind["accelerator"]), one.accelerator) or usual <= 0:
            continue
        longer += one.waited_hours / usual
        came += one.came
        missed += not one.came and one.waited_hours >= prior["never_after_hours"]
        expected += min(table[2] * one.accelerators, 0.5)
    return longer / came, missed / expected


def booked_from(offer: Offer, start: datetime, planned_at: datetime) -> str:
    """The day from which an offer can be booked for `start`; "" where that day has come, or no window is known."""
    days = offer.rule.book_days
    if not days or offer.text("purchase_option") not in (
        "capacity_block",
        "future_reservation",
        "flex_start",
    ):
        return ""
    opens = start - timedelta(days=days)
    return f"{opens:%Y-%m-%d}" if opens > planned_at else ""


def most_by_asking(
    provider: str, region: str, accelerator: str, option: str, limits: Constraints
) -> float | None:
    """Most accelerators that asking brings at once: the user's word, else obtainable.csv; None: firm."""
    told = [
        own.accelerators
        for own in limits.obtainable
        if fnmatchcase(accelerator, own.accelerator) and fnmatchcase(region, own.region)
        if own.purchase_option == option and own.provider in (None, provider)
    ]
    if told:
        return told[-1]
    for row in _table("obtainable"):
        if row["purchase_option"] == option and fnmatchcase(accelerator, row["accelerator"]):
            return float(row["most_accelerators"])
    return None


@cache
def _table(name: str) -> list[dict[str, str]]:
    path = Path(__file__).parents[1] / "data" / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _lead(hours: float, clock: str, start: datetime) -> float:
    """Hours until the earliest start; the next such hour of the day where there is a calendar."""
    if not clock:
        return hours
    at = start.astimezone(UTC) + timedelta(hours=hours)
    hour, minute = (int(part) for part in clock.split(":"))
    begin = at.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if begin < at:
        begin += timedelta(days=1)
    return (begin - start).total_seconds() / 3600.0
