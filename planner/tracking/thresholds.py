"""The thresholds of tracking and of the alert rules of an export: one table for both."""

from __future__ import annotations

import functools

from planner.bundled import bundled_rows
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
    return {
        row["name"]: Threshold(
            row["name"],
            float(row["value"]),
            row["unit"],
            float(row["for_minutes"]),
            row["severity"],
            row["source"],
        )
        for row in bundled_rows("alert_thresholds.csv")
    }
