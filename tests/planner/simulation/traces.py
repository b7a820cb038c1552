"""Small made-up recordings: zones that go up and down, at prices that move."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from planner.spot.trace import ZoneTrace
from tests.planner.spot.csv_log import csv_log_text

START = datetime(2026, 3, 2, tzinfo=UTC)


def zone(
    name: str, seed: int, *, ticks: int = 900, leave: float = 0.04, gang: int = 1, source: str = "made up"
) -> ZoneTrace:
    """Geometric spells; spot at about a third of on-demand at $3."""
    rng = np.random.default_rng(seed)
    up = np.cumsum(rng.random(ticks) < leave) % 2 == seed % 2
    price = 1.0 + 0.1 * seed + 0.2 * np.repeat(rng.random(ticks // 100 + 1), 100)[:ticks]
    return ZoneTrace("aws", "zz-1", f"zz-1{name}", "m.big", gang, START, 0.1, up, price, 3.0, source)


def write_recording(folder: Path, names: Sequence[str] = ("a", "b"), ticks: int = 900) -> str:
    """A folder with one CSV of these zones."""
    traces = [zone(name, number, ticks=ticks) for number, name in enumerate(names)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recording.csv").write_text(csv_log_text(traces), encoding="utf-8")
    return str(folder)
