"""The thresholds of alerts, shared by the exported rules and by `planner track` (alert_thresholds.csv)."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from planner.records import record

_DATA = Path(__file__).parents[1] / "data" / "alert_thresholds.csv"


@record(frozen=True)
class Threshold:
    """One bound: `value` in `unit`, broken for `for_minutes` before it is reported.

    `severity` is empty of a value that is only part of another bound.
    """

    name: str
    value: float
    unit: str
    for_minutes: int
    severity: str
    source: str


@cache
def load_thresholds() -> dict[str, Threshold]:
    """Read alert_thresholds.csv by name."""
    with _DATA.open(encoding="utf-8", newline="") as file:
        rows = [
            Threshold(
                row["name"],
                float(row["value"]),
                row["unit"],
                int(row["for_minutes"]),
                row["severity"],
                row["source"],
            )
            for row in csv.DictReader(file)
        ]
    return {row.name: row for row in rows}
