"""A cost that is not exceeded with a probability asked for: a part of the plan (`planner optimize --quote`)."""

from __future__ import annotations

from decimal import Decimal

from planner.errors import InputError
from planner.records import record

LEAST_LEVEL, MOST_LEVEL = 0.5, 0.999


@record(frozen=True)
class Quote:
    """What a plan costs and when it ends at most, each with probability `level_ratio` by the plan's distributions.

    Attributes:
        level_ratio: the level asked for, 0.5 to 0.999.
        cost_usd: quantile of the cost, never below the expected cost: over speed, interruptions and spot prices.
        hours: quantile of the elapsed hours, never below the expected ones, given that capacity comes.
        finish: the moment so many hours after the start.
    """

    level_ratio: float
    cost_usd: Decimal
    hours: float
    finish: str


def as_given(level: float) -> float:
    """A level without what a division by 100 adds to its last digits: 99.9 / 100 is above 0.999."""
    return round(level, 12)


def check_level(level: float | None) -> None:
    """Refuse a level that the distributions cannot answer.

    Args:
        level: as a ratio; None: nothing is quoted.

    Raises:
        InputError: it is outside 0.5 to 0.999.
    """
    if level is not None and not LEAST_LEVEL <= as_given(level) <= MOST_LEVEL:
        raise InputError(
            f"--quote: {100 * level:g}% is outside {100 * LEAST_LEVEL:g}% to {100 * MOST_LEVEL:g}%: "
            "ask for a level between them, such as 95%"
        )
