"""Run-length JSON: `zones` of `rle` pairs (instances obtainable, samples), `gap_seconds`, `requested`, prices."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from planner.errors import InputError
from planner.risk.trace import FloatArray, ZoneTrace
from planner.risk.traces.grid import first_samples, up_on_grid


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
        found = json.loads(path.read_text(encoding="utf-8"))
        gap = float(found["gap_seconds"]) / 3600.0
        need = int(found["requested"] if gang is None else gang)
        label = f"{found.get('set', path.stem)} {found.get('block', '')}".strip()
        return tuple(_zone(name, zone, gap, need, tick_hours, label) for name, zone in found["zones"].items())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: not a run-length trace: {error!r}") from error


def expand(pairs: Sequence[Sequence[float]]) -> FloatArray:
    """The samples of run-length pairs, shape `(n_samples,)`."""
    return np.repeat(
        np.asarray([pair[0] for pair in pairs], dtype=np.float64), [int(pair[1]) for pair in pairs]
    )


def region_of(zone: str) -> tuple[str, str]:
    """Provider and region of a zone id: AWS ends in a letter, GCP in a dash and a letter."""
    base = zone.split("_", 1)[0]
    if len(base) > 2 and base[-2] == "-" and base[-1].isalpha():
        return "gcp", base[:-2]
    if base and base[-1].isalpha() and base[-2:-1].isdigit():
        return "aws", base[:-1]
    return "", base


def _zone(
    name: str, zone: Mapping[str, Any], gap: float, gang: int, tick_hours: float, label: str
) -> ZoneTrace:
    samples = expand(zone["rle"])
    at = first_samples(len(samples), gap, tick_hours)
    if "spot_price_rle" in zone:
        prices = expand(zone["spot_price_rle"])
        price = prices[np.minimum(at, len(prices) - 1)]
    else:
        price = np.full(len(at), float(zone.get("spot_price", np.nan)))
    provider, region = region_of(name)
    listed = zone.get("on_demand_price")
    return ZoneTrace(
        provider, region, name, str(zone.get("itype", "")), gang, datetime.fromisoformat(zone["start_utc"]),
        tick_hours, up_on_grid(samples >= gang, gap, tick_hours), price,
        None if listed is None else float(listed), label,
    )  # fmt: skip
