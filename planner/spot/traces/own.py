"""Our own CSV of availability, and a user's probe log: `time,zone,available` and more columns where known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from planner.errors import InputError
from planner.files.limited import MAX_RECORD_BYTES, open_text
from planner.files.tables import csv_rows
from planner.inputs.faults import need_columns
from planner.spot.trace import ZoneTrace
from planner.spot.traces.samples import ZoneSamples, check_polarity, on_even_grid, trace_of

COLUMNS = (
    "time", "provider", "region", "zone", "instance_type", "gang", "available", "spot_usd_per_hour",
    "on_demand_usd_per_hour",
)  # fmt: skip
_NEEDED = ("time", "zone", "available")
_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "up": 1.0, "down": 0.0}


def read_csv_log(path: Path, *, gang: int | None = None, tick_hours: float = 0.1) -> tuple[ZoneTrace, ...]:
    """Read a log of probes, evenly spaced or not.

    `available` is the number of instances that could be had, or 0/1, yes/no, up/down. Times are ISO, UTC unless they
    say otherwise. A hole longer than three usual intervals ends a record; the zone then gives several.

    Args:
        path: the file.
        gang: instances needed together; None takes the file's `gang` column, else 1. Where `gang` says that a 1 in
            `available` stands for the whole gang, a value of 1 is enough.
        tick_hours: grid of the answer.

    Raises:
        InputError: a column or a figure is missing or wrong; the message names the row.
    """
    groups: dict[tuple[str, ...], list[tuple[datetime, float, float, float]]] = {}
    try:
        with open_text(path, MAX_RECORD_BYTES) as file:
            reader = csv_rows(file, path)
            need_columns(path, reader.fieldnames, _NEEDED)
            for number, row in enumerate(reader, start=2):
                key = tuple(
                    (row.get(n) or "").strip()
                    for n in ("provider", "region", "zone", "instance_type", "gang")
                )
                groups.setdefault(key, []).append(_probe(path, number, row))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if not groups:
        raise InputError(f"{path}: holds no probe")
    out: list[ZoneTrace] = []
    for key, probes in groups.items():
        out += _traces(path, key, probes, gang, tick_hours)
    return tuple(out)


def _probe(path: Path, number: int, row: dict[str, str]) -> tuple[datetime, float, float, float]:
    """Time, instances, spot price and on-demand price of a row."""
    try:
        when = datetime.fromisoformat(row["time"].strip())
        when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
        text = row["available"].strip().lower()
        instances = _WORDS[text] if text in _WORDS else float(text)
        price = _price(row, "spot_usd_per_hour") if "spot_usd_per_hour" in row else _price(row, "price")
        if not (math.isfinite(instances) and instances >= 0):
            raise ValueError(f"available is {text!r}")
        return when, instances, price, _price(row, "on_demand_usd_per_hour")
    except (ValueError, AttributeError, TypeError) as error:
        raise InputError(f"{path}: row {number}: {str(error)[:200]}") from error


def _price(row: dict[str, str], name: str) -> float:
    text = (row.get(name) or "").strip()
    price = float(text) if text else math.nan
    if text and not (math.isfinite(price) and price > 0):
        raise ValueError(f"{name} is {text!r}, expected a price above 0, or nothing where it is unknown")
    return price


def _traces(
    path: Path, key: tuple[str, ...], probes: Sequence[tuple[datetime, float, float, float]], gang: int | None,
    tick_hours: float,
) -> list[ZoneTrace]:  # fmt: skip
    provider, region, zone, instance_type, listed_gang = key
    if listed_gang and not (listed_gang.isdigit() and int(listed_gang) > 0):
        raise InputError(f"{path}: zone {zone}: gang is {listed_gang!r}, expected a whole number from 1")
    own = int(listed_gang) if listed_gang else 1
    value = np.asarray([probe[1] for probe in probes])
    if own > 1 and value.max() <= 1:
        value = value * own  # 1 stands for the whole gang
    seen: dict[datetime, float] = {}
    for when, count, _, _ in probes:
        if seen.setdefault(when, count) != count:
            raise InputError(
                f"{path}: zone {zone}: two probes of {when.isoformat()} disagree "
                f"({seen[when]:g} and {count:g}): keep one"
            )
    price = [probe[2] for probe in probes]
    listed = [probe[3] for probe in probes if not math.isnan(probe[3])]
    out = []
    for start, gap, instances, prices in on_even_grid([probe[0] for probe in probes], value, price):
        samples = ZoneSamples(
            zone, start, gap, instances, prices, listed[0] if listed else None, instance_type, provider, region
        )  # fmt: skip
        check_polarity([samples], str(path))
        out.append(trace_of(samples, gang or own, tick_hours, path.name))
    return out
