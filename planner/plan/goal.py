"""What a plan was asked for, and how often it comes again: parts of it (`planner.plan.model`)."""

from __future__ import annotations

from decimal import Decimal

from planner.records import record


@record(frozen=True)
class Goal:
    """What was asked for: `units` of work (tokens or samples) in all, how surely in time, and for how much at most."""

    units: float
    unit: str
    deadline_confidence_ratio: float | None
    budget_usd: Decimal | None


@record(frozen=True)
class Recurring:
    """A run that comes again: `times` in all, each `every_hours` after the start of the one before."""

    every_hours: float
    times: int
