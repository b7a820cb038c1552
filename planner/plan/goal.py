"""What a plan was asked for: a part of it (`planner.plan.model`)."""

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
