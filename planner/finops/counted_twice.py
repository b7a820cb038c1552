"""Months whose cost a bill states too high, because charges of them are in it twice."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.finops.read.model import Finding

_CHECKS = Path(__file__).resolve().parent / "data" / "quality_checks.csv"


def twice_by_month(findings: Iterable[Finding]) -> dict[date, float]:
    """Billed cost that is counted twice, by first day of the month.

    Args:
        findings: of a bill.
    """
    out: dict[date, float] = {}
    for one in findings:
        if one.code != "repeated_charges":
            continue
        for month, cost in one.by_month or ([(one.month, one.cost or 0.0)] if one.month else []):
            out[month] = out.get(month, 0.0) + cost
    return out


def months_counted_twice(twice: Mapping[date, float], costs: Mapping[date, float]) -> tuple[date, ...]:
    """First days of the months that are too high by more than the quality gate accepts.

    Args:
        twice: of `twice_by_month`.
        costs: cost of each month, as the bill has it.
    """
    return tuple(
        month
        for month, cost in sorted(twice.items())
        if month in costs and abs(cost) > _accepted() * abs(costs[month])
    )


def _accepted() -> float:
    """Share of a month's cost from which the check `repeated` withholds figures."""
    return next(float(row["withhold_at"]) for row in quality_checks() if row["check"] == "repeated")


@lru_cache(maxsize=1)
def quality_checks() -> tuple[Mapping[str, str], ...]:
    """The checks of a month with their thresholds, as `planner.finops.quality` runs them."""
    with _CHECKS.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))
