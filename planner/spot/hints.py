"""Weak evidence on zones that nobody recorded: what spot costs there, and how the provider scores them.

A hint only compares: the zones of one instance type in one file with each other. It moves the hazards of zones without
a record of their own; a recorded zone stays as it is. Zones that the file does not name take the mean of their region.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from planner.errors import InputError
from planner.files.limited import MAX_RECORD_BYTES, open_text
from planner.spot.hazards_cells import plain_type, plain_zone, scale
from planner.spot.traces.samples import place_of

PRICE_COLUMNS = ("time", "zone", "instance_type", "spot_usd_per_hour")
SCORE_COLUMNS = ("zone", "instance_type", "score")
_PRICES, _SCORES = "SpotPriceHistory", "SpotPlacementScores"
_TYPES = "InstanceTypes"
_SYSTEM = "Linux"  # prices of other systems carry a licence


class Hint(NamedTuple):
    """What moves the hazards of a place.

    Attributes:
        log_down, log_up: added to the logs of the hazards of leaving up and of leaving down.
        by: what says so.
    """

    log_down: float
    log_up: float
    by: str

    def __add__(self, other: object) -> Hint:
        """Both together."""
        if not isinstance(other, Hint):
            return NotImplemented
        return Hint(self.log_down + other.log_down, self.log_up + other.log_up, f"{self.by}, {other.by}")


Hints = Mapping[tuple[str, str], Hint]
"""Hint by (instance type, zone or region)."""


class _Figure(NamedTuple):
    """A price or a score of a place at a time (hours since 1970; 0 for scores)."""

    type_: str
    region: str
    zone: str
    hours: float
    value: float


def read_hints(path: Path) -> Hints | None:
    """Hints of a file; None where it is neither a price history nor a list of placement scores.

    Read are CSV files with `PRICE_COLUMNS` or `SCORE_COLUMNS` (and `region`), and what `aws ec2
    describe-spot-price-history` and `aws ec2 get-spot-placement-scores` print. The latter does not say what was asked
    for: its key `InstanceTypes` must be added.

    Raises:
        InputError: a row or entry is wrong; the message names it.
    """
    if path.suffix.lower() == ".json":
        return _from_json(path)
    try:
        with open_text(path, MAX_RECORD_BYTES) as file:
            reader = csv.DictReader(file)
            names = {name.strip() for name in reader.fieldnames or ()}
            if "available" in names:
                return None  # a probe log with prices
            rows = [(f"row {number}", row) for number, row in enumerate(reader, start=2)]
    except (OSError, UnicodeDecodeError, csv.Error):
        return None  # said by who reads it as a record
    if names.issuperset(PRICE_COLUMNS):
        return hints_by_price(_figure(path, place, row, "spot_usd_per_hour", "time") for place, row in rows)
    if names.issuperset(SCORE_COLUMNS):
        return hints_by_score(_figure(path, place, row, "score") for place, row in rows)
    return None


def _from_json(path: Path) -> Hints | None:
    try:
        found = json.load(open_text(path, MAX_RECORD_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    if isinstance(found.get(_PRICES), list):
        named = {
            "zone": "AvailabilityZone",
            "instance_type": "InstanceType",
            "spot": "SpotPrice",
            "time": "Timestamp",
        }
        rows = list(_entries(path, _PRICES, found[_PRICES], named))
        rows = [(place, row) for place, row in rows if _SYSTEM in row.get("ProductDescription", _SYSTEM)]
        for _, row in rows:  # names of zones differ from account to account, ids do not
            row["zone"] = row.get("AvailabilityZoneId") or row["zone"]
            row["region"] = place_of(row.get("AvailabilityZone", ""))[1]
        return hints_by_price(_figure(path, place, row, "spot", "time") for place, row in rows)
    if isinstance(found.get(_SCORES), list):
        types = found.get(_TYPES)
        if not (isinstance(types, list) and types and all(isinstance(name, str) for name in types)):
            raise InputError(
                f'{path}: scores do not say what they are of: add the key "{_TYPES}" with the list that was asked for'
            )
        named = {"zone": "AvailabilityZoneId", "region": "Region", "score": "Score"}
        scores = list(_entries(path, _SCORES, found[_SCORES], named))
        return hints_by_score(
            _figure(path, place, {**row, "instance_type": name}, "score")
            for name in types
            for place, row in scores
        )
    return None


def _entries(
    path: Path, key: str, entries: Sequence[Any], named: Mapping[str, str]
) -> Iterable[tuple[str, dict[str, str]]]:
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise InputError(f"{path}: {key}[{number}]: expected an object")
        text = {name: str(value) for name, value in entry.items() if value is not None}
        yield f"{key}[{number}]", {**text, **{own: text.get(name, "") for own, name in named.items()}}


def _figure(
    path: Path, place: str, row: Mapping[str, str | None], name: str, time: str | None = None
) -> _Figure:
    def text(column: str) -> str:
        return (row.get(column) or "").strip()

    try:
        value, hours = float(text(name)), 0.0
        if time is not None:
            moment = datetime.fromisoformat(text(time))
            hours = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / 3600.0
    except ValueError as error:
        raise InputError(f"{path}: {place}: {str(error)[:200]}") from error
    zone = plain_zone(text("zone"))
    region = text("region") or place_of(zone)[1]
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{path}: {place}: {name} is {text(name)[:60]!r}, expected a figure above 0")
    if not (text("instance_type") and (zone or region)):
        raise InputError(f"{path}: {place}: needs an instance type and a zone or region")
    return _Figure(plain_type(text("instance_type")), region, zone, hours, value)


def hints_by_price(figures: Iterable[_Figure]) -> dict[tuple[str, str], Hint]:
    """Hints from spot prices: dear zones are scarce.

    Nine V100 zones show a down hazard growing as price^1.8 (R2 0.69) and nothing certain of the up side; half of it is
    believed (hazard_scales.csv). A price holds until the next one, the last until the last moment of its type.
    """
    return _hints(list(figures), _mean_log_price, ("price_slope", "price_weight"), "spot price")


def hints_by_score(figures: Iterable[_Figure]) -> dict[tuple[str, str], Hint]:
    """Hints from placement scores (1-10), compared with each other and not with 10.

    Very weak, and assumed: no record pairs scores with capacity, and AWS says that a score guarantees none. Since
    2025-09 queries for one type give at most 3 outside the P family, so a low score says nothing then.
    """
    return _hints(list(figures), _mean_score, ("score_step",), "placement score (assumed)")


def _mean_score(figures: Sequence[_Figure], _: float) -> float:
    return sum(figure.value for figure in figures) / len(figures)


def _mean_log_price(figures: Sequence[_Figure], until: float) -> float:
    ordered = sorted(figures, key=lambda f: f.hours)
    lasts = [
        b - a
        for a, b in zip([f.hours for f in ordered], [*(f.hours for f in ordered[1:]), until], strict=True)
    ]
    whole = sum(lasts)
    if whole <= 0:
        return math.log(ordered[-1].value)
    return math.log(sum(f.value * hours for f, hours in zip(ordered, lasts, strict=True)) / whole)


def _hints(
    figures: Sequence[_Figure],
    level_of: Callable[[Sequence[_Figure], float], float],
    factors: tuple[str, ...],
    by: str,
) -> dict[tuple[str, str], Hint]:
    """Hints from how far a place's level lies from the mean of its type; `factors` name rows of hazard_scales.csv."""
    down, up = (math.prod(scale(name, side) for name in factors) for side in ("down", "up"))
    out: dict[tuple[str, str], Hint] = {}
    for type_ in dict.fromkeys(f.type_ for f in figures):
        own = [f for f in figures if f.type_ == type_]
        until = max(f.hours for f in own)
        places: dict[tuple[str, str], list[_Figure]] = {}
        for figure in own:
            places.setdefault((figure.region, figure.zone or figure.region), []).append(figure)
        level = {place: level_of(found, until) for place, found in places.items()}
        middle = sum(level.values()) / len(level)
        regions: dict[str, list[float]] = {}
        for (region, _), value in level.items():
            regions.setdefault(region, []).append(value)
        named = {region: sum(values) / len(values) for region, values in regions.items() if region}
        named |= {place: value for (_, place), value in level.items()}
        for place, value in named.items():
            out[type_, place] = Hint(down * (value - middle), up * (value - middle), by)
    return out
