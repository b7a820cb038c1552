"""Run-length JSON: `zones` of `rle` pairs (instances obtainable, samples), `gap_seconds`, `requested`, prices."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from catalogs.tables.table import Floats
from planner.errors import InputError
from planner.files.limited import MAX_RECORD_BYTES, open_text
from planner.spot.trace import ZoneTrace
from planner.spot.traces.samples import ZoneSamples, trace_of

MOST_SAMPLES = 10_000_000  # of a zone: 19 years by the minute


def read_run_length(path: Path, *, gang: int | None = None, tick_hours: float = 0.1) -> tuple[ZoneTrace, ...]:
    """Read a run-length file: a value is the number of instances obtainable.

    Args:
        path: the file.
        gang: instances needed together; None takes the file's `requested`.
        tick_hours: grid of the answer.

    Raises:
        InputError: not such a file.
    """
    try:
        found = json.load(open_text(path, MAX_RECORD_BYTES))
        gap = float(found["gap_seconds"]) / 3600.0
        need = int(found["requested"] if gang is None else gang)
        label = f"{found.get('set', path.stem)} {found.get('block', '')}".strip()
        return tuple(_zone(name, zone, gap, need, tick_hours, label) for name, zone in found["zones"].items())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise InputError(f"{path}: not a run-length trace: {repr(error)[:200]}") from error


def expand(pairs: Sequence[Sequence[float]]) -> Floats:
    """The samples of run-length pairs, shape `(n_samples,)`.

    Raises:
        ValueError: they are too many.
    """
    counts = [int(pair[1]) for pair in pairs]
    if sum(counts) > MOST_SAMPLES:
        raise ValueError(f"more than {MOST_SAMPLES:,} samples")
    return np.repeat(np.asarray([pair[0] for pair in pairs], dtype=np.float64), counts)


def _zone(
    name: str, zone: Mapping[str, Any], gap: float, gang: int, tick_hours: float, label: str
) -> ZoneTrace:
    values = expand(zone["rle"])
    listed = zone.get("on_demand_price")
    if "spot_price_rle" in zone:
        given = expand(zone["spot_price_rle"])
        prices = given[np.minimum(np.arange(len(values)), len(given) - 1)]
    else:
        prices = np.full(len(values), float(zone.get("spot_price", np.nan)))
    start = datetime.fromisoformat(zone["start_utc"])
    on_demand = None if listed is None else float(listed)
    samples = ZoneSamples(name, start, gap, values, prices, on_demand, str(zone.get("itype", "")))
    return trace_of(samples, gang, tick_hours, label)
