"""The thresholds of tracking and of the alert rules of an export: one table for both."""

from __future__ import annotations

import csv
import functools
from importlib.resources import files

from planner.records import record


@record(frozen=True)
class Threshold:
    """One row of planner/data/alert_thresholds.csv: `value` in `unit`, passed for `for_minutes`."""

    name: str
    value: float
    unit: str
    for_minutes: float
    severity: str
    source: str


@functools.cache
def thresholds() -> dict[str, Threshold]:
    """All thresholds by name."""
    with files("planner.data").joinpath("alert_thresholds.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return {
        row["name"]: Threshold(
            row["name"],
            float(row["value"]),
            row["unit"],
            float(row["for_minutes"]),
            row["severity"],
            row["source"],
        )
        for row in rows
    }
