"""The interval of a candidate's cost, as `planner optimize` gives it, and that of a sum of such costs."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from planner.candidates.plan_parts.launch import launch_of
from planner.candidates.plan_parts.timeline import cost_between, risk_of
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.candidates.plan_parts.bought import Source


@record(frozen=True)
class Spread:
    """P10 and P90 of a cost over speed, interruptions and, on spot, prices; `p_meet`: chance to meet the deadline."""

    low_usd: Decimal
    high_usd: Decimal
    p_meet: float | None


def spread_of(source: Source, at: int, expected_usd: Decimal) -> Spread:
    """The interval of candidate `at`.

    Args:
        source: its candidates and their run.
        at: the candidate.
        expected_usd: its cost, the sum of its lines.
    """
    launch = launch_of(source.made, at, expected_usd)
    if launch is not None:
        return Spread(launch.cost_p10_usd, launch.cost_p90_usd, launch.p_meet_deadline)
    low, high = cost_between(source.made, at, expected_usd)
    return Spread(low, high, risk_of(source.made, at, expected_usd, None).p_meet_deadline)


def together(spreads: Sequence[Spread], certain_usd: Decimal) -> tuple[Decimal, Decimal]:
    """P10 and P90 of a sum whose parts err alike, which no other dependence of them exceeds by much.

    Speeds err by one model and spot prices move together, so the ends are added, not their squares.

    Args:
        spreads: of the uncertain parts.
        certain_usd: of the rest.
    """
    low = sum((one.low_usd for one in spreads), certain_usd)
    return low, sum((one.high_usd for one in spreads), certain_usd)
