"""Public trace formats: sample lists in JSON, the 2022 text files, and the rounds of the H100 prober."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from planner.errors import InputError
from planner.files.limited import MAX_RECORD_BYTES, open_text
from planner.spot.trace import ZoneTrace
from planner.spot.traces.samples import (
    UNKNOWN_START,
    ZoneSamples,
    check_polarity,
    on_even_grid,
    polarity_shift,
    trace_of,
)

Polarity = Literal["auto", "instances", "preempted"]


def read_sample_lists(
    paths: Sequence[Path], *, gang: int | None = None, polarity: Polarity = "auto", tick_hours: float = 0.1
) -> tuple[ZoneTrace, ...]:
    """Read JSON files of `metadata.gap_seconds` and `data`, a zone each; the zone is the file's (or folder's) name.

    Two public copies differ in what 1 means: in skypilot-org/spot-traces the number of instances that can be had, in
    the simulator files of the same data that the zone is *preempted*.

    Args:
        paths: files of one collection; they are judged together.
        gang: instances needed; None takes the largest number seen (1 for 0/1 files).
        polarity: what a value means; `auto` finds out (values above 1 count instances, prices beside the samples mark
            a simulator file, else the published availability of the zones decides).
        tick_hours: grid of the answer.

    Raises:
        InputError: not such a file, the wrong way round, or `auto` cannot tell.
    """
    loaded = [(path, *_sample_list(path)) for path in paths]
    zones = [zone for _, zone, _ in loaded]
    where = str(paths[0] if len(paths) == 1 else paths[0].parent)
    if polarity == "auto":
        polarity = _polarity(zones, any(simulator for _, _, simulator in loaded), where)
    if polarity == "preempted":
        zones = [_turned(zone, path) for path, zone, _ in loaded]
    check_polarity(zones, where)
    return tuple(
        trace_of(zone, gang or max(int(zone.instances.max(initial=1)), 1), tick_hours, str(path.name))
        for (path, _, _), zone in zip(loaded, zones, strict=True)
    )


def read_failed_text(
    path: Path, *, gang: int | None = None, tick_hours: float = 0.1
) -> tuple[ZoneTrace, ...]:
    """Read a probe text of 2022: `number,time,failed` per line; the third column is 1 when the request failed.

    Raises:
        InputError: not such a file, or the wrong way round.
    """
    times, failed = [], []
    with open_text(path, MAX_RECORD_BYTES) as file:
        for number, row in enumerate(csv.reader(file), start=1):
            if not row:
                continue
            try:
                times.append(_utc(row[1]))
                failed.append(_flag(row[2]))
            except (IndexError, ValueError) as error:
                raise InputError(
                    f"{path}: line {number}: expected `number,time,failed`: {str(error)[:200]}"
                ) from error
    up = 1.0 - np.asarray(failed, dtype=float)
    runs = on_even_grid(times, up, np.full(len(up), np.nan))
    zones = [ZoneSamples(path.stem, start, gap, value, price) for start, gap, value, price in runs]
    check_polarity(zones, str(path))
    return tuple(trace_of(zone, gang or 1, tick_hours, path.name) for zone in zones)


def read_rounds(
    paths: Sequence[Path], *, gang: int | None = None, tick_hours: float = 0.1
) -> tuple[ZoneTrace, ...]:
    """Read the rounds of the H100 prober: one JSON per round, `zone_results.ZONE.instances_created` of 16 requested.

    Args:
        paths: the rounds, any order.
        gang: instances needed together; None takes the number requested. The paper's figures count a zone as up from
            one instance on; sixteen are much scarcer.
        tick_hours: grid of the answer.

    Raises:
        InputError: not such files.
    """
    times: dict[str, list[datetime]] = {}
    created: dict[str, list[float]] = {}
    requested = 0
    for path in paths:
        found = _json(path)
        try:
            when = _utc(str(found["scheduled_at"]))
            for zone, result in found["zone_results"].items():
                times.setdefault(zone, []).append(when)
                created.setdefault(zone, []).append(float(result["instances_created"]))
                requested = max(requested, int(result["instances_requested"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{path}: not a round of the prober: {error!r}") from error
    out = []
    for zone in sorted(times):
        blank = np.full(len(times[zone]), np.nan)
        for start, gap, value, price in on_even_grid(times[zone], created[zone], blank):
            samples = ZoneSamples(zone, start, gap, value, price)
            out.append(trace_of(samples, gang or max(requested, 1), tick_hours, f"{len(paths)} rounds"))
    return tuple(out)


def _sample_list(path: Path) -> tuple[ZoneSamples, bool]:
    """The zone of a file, and whether it is a simulator's."""
    found = _json(path)
    try:
        meta = found["metadata"]
        values = np.asarray(found["data"], dtype=np.float64)
        price_info = meta.get("price_info") or {}
        given = found.get("prices")
        price = float(price_info.get("price", np.nan))
        prices = np.full(len(values), price) if given is None else np.asarray(given, dtype=np.float64)
        start = _utc(str(meta["start_time"])) if "start_time" in meta else _start_in(path)
        listed = price_info.get("on_demand_price")
        name = str(
            meta.get("zone") or (path.parent.name if re.fullmatch(r"full|\d+", path.stem) else path.stem)
        )
        gap = float(meta["gap_seconds"]) / 3600.0
        if values.ndim != 1 or len(prices) != len(values) or not np.isfinite(values).all() or gap <= 0:
            raise ValueError("samples and prices must be lists of equal length and finite")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(
            f"{path}: not a sample list (`metadata.gap_seconds` and `data`): {str(error)[:200]}"
        ) from error
    on_demand = None if listed is None else float(listed)
    return ZoneSamples(name, start, gap, values, prices, on_demand), bool(price_info) or given is not None


def _polarity(zones: Sequence[ZoneSamples], simulator: bool, where: str) -> Polarity:
    if any(zone.instances.max(initial=0) > 1 for zone in zones):
        return "instances"
    if simulator:
        return "preempted"
    shift = polarity_shift(zones)
    if shift is None or abs(shift) < 0.1:
        raise InputError(
            f"{where}: nothing tells whether 1 means available or preempted (no published figure of these zones is "
            "clearly nearer either way): give polarity `instances` or `preempted`"
        )
    return "preempted" if shift > 0 else "instances"


def _turned(zone: ZoneSamples, path: Path) -> ZoneSamples:
    if zone.instances.max(initial=0) > 1:
        raise InputError(f"{path}: values above 1 count instances; they cannot mean preempted")
    return zone._replace(instances=1.0 - zone.instances)


def _json(path: Path) -> Mapping[str, Any]:
    try:
        found = json.load(open_text(path, MAX_RECORD_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise InputError(f"{path}: holds no JSON object")
    return found


def _utc(text: str) -> datetime:
    when = datetime.fromisoformat(text.strip())
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def _flag(text: str) -> float:
    known = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0, "0.0": 0.0, "1.0": 1.0}
    try:
        return known[text.strip().lower()]
    except KeyError:
        raise ValueError(f"{text!r} is neither 0 nor 1") from None


def _start_in(path: Path) -> datetime:
    """A date in the folder's name (`aws-02-15-2023`, `2022-10-26T22-05`), else unknown."""
    for part in reversed(path.parent.parts):
        us = re.search(r"(\d{2})-(\d{2})-(\d{4})$", part)
        iso = re.search(r"(\d{4})-(\d{2})-(\d{2})", part)
        if us:
            return datetime(int(us[3]), int(us[1]), int(us[2]), tzinfo=UTC)
        if iso:
            return datetime(int(iso[1]), int(iso[2]), int(iso[3]), tzinfo=UTC)
    return UNKNOWN_START
