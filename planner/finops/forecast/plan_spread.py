"""How far the cost of saved plans may be off, joined with the interval of a forecast and with P(over).

A plan's cost has an 80 % interval (interruptions, speed, prices). Plans err independently of each other and of the
bill; the runs of one recurring plan err together, because one model predicts them. So half-widths of plans, and that of
the bill, join as the root of the sum of squares, upwards and downwards apart. P(over) is the mean over equally likely
costs of the plans, split normal through P10, the expected cost and P90.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

from planner.finops.forecast.plans import runs_by_day
from planner.normal import Z80
from planner.records import record

if TYPE_CHECKING:
    from planner.finops.forecast.plans import Days, PlannedCost

_OUTCOMES = 25  # equally likely costs of the plans


@record(frozen=True)
class PlanSpread:
    """By how much plans may cost less and more than expected in a period: half-widths of their 80 % interval."""

    below: float = 0.0
    above: float = 0.0

    def widened(self, expected: float, low: float, high: float, level: float) -> tuple[float, float]:
        """The ends of an interval at `level` with the plans' part in it."""
        scale = NormalDist().inv_cdf(0.5 + level / 2.0) / Z80
        if self.below > 0.0:
            low = expected - math.hypot(max(expected - low, 0.0), self.below * scale)
        if self.above > 0.0:
            high = expected + math.hypot(max(high - expected, 0.0), self.above * scale)
        return low, high

    def times(self, factor: float) -> PlanSpread:
        """The spread of plans whose cost is multiplied by `factor`."""
        return PlanSpread(self.below * factor, self.above * factor)

    def p_over(self, of_the_rest: Callable[[float], float], amount: float) -> float:
        """Probability that the rest (`of_the_rest` of an amount) and the plans cost more than `amount`.

        Args:
            of_the_rest: probability that all with plans at their expected cost is above an amount.
            amount: that must not be exceeded.
        """
        if self.below <= 0.0 and self.above <= 0.0:
            return of_the_rest(amount)
        places = [NormalDist().inv_cdf((k + 0.5) / _OUTCOMES) / Z80 for k in range(_OUTCOMES)]
        more = [z * (self.above if z > 0 else self.below) for z in places]
        return math.fsum(of_the_rest(amount - usd) for usd in more) / _OUTCOMES


def plan_spread(planned: Sequence[PlannedCost], days: Days) -> PlanSpread:
    """How far the plans may be off on these days together."""
    runs = [float(runs_by_day(one, days).sum()) for one in planned]
    halves = [
        (count * max(one.cost - one.cheap, 0.0), count * max(one.dear - one.cost, 0.0))
        for one, count in zip(planned, runs, strict=True)
    ]
    return PlanSpread(
        math.hypot(*(below for below, _ in halves)), math.hypot(*(above for _, above in halves))
    )
