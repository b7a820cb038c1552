"""Scales of the hazard model, fitted once and kept as data (hazard_scales.csv), and sizes of recorded types."""

from __future__ import annotations

import csv
from functools import cache

from planner.spot.hazards_cells import DATA_DIRECTORY


def scale(name: str, side: str) -> float:
    """One figure of hazard_scales.csv."""
    return float(scale_rows()[name][side])


@cache
def scale_rows() -> dict[str, dict[str, str]]:
    """All figures by name: texts of the columns `down` and `up`."""
    with (DATA_DIRECTORY / "hazard_scales.csv").open(encoding="utf-8", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


@cache
def recorded_types() -> dict[str, int]:
    """Accelerators of one instance, by recorded instance type (recorded_types.csv)."""
    with (DATA_DIRECTORY / "recorded_types.csv").open(encoding="utf-8", newline="") as file:
        return {row["instance_type"]: int(row["accelerators"]) for row in csv.DictReader(file)}
