"""How well a plan's cost and hours are known, and figures rounded to that."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from decimal import Decimal

from planner.plan.launch import Launch
from planner.plan.model import Plan, Risk
from planner.records import record
from planner.render.numbers import UNKNOWN
from planner.render.precision import DAY_FROM, dollars, known_places, moment_known, rounded

_SURE, _UNSURE = 0.99, 0.01
_CENTS = 2
_ROUNDED_BY = timedelta(minutes=30)  # the most by which a moment is rounded up
_NOT_STATED = (
    0.1  # half-width, relative, that is assumed where no interval is known: speeds are predictions too
)


@record(frozen=True)
class Scale:
    """The intervals of a plan; other figures are rounded as far, relative to their size.

    Attributes:
        low_usd, high_usd: P10 and P90 of the cost, None where not known.
        high_hours: P90 of the elapsed hours, None where not known.
        usd_ratio, hours_ratio: half-width of each interval over the figure itself; 0: no interval is known.
        total_usd, hours, start, deadline: the plan's.
    """

    low_usd: Decimal | None
    high_usd: Decimal | None
    high_hours: float | None
    usd_ratio: float
    hours_ratio: float
    total_usd: Decimal
    hours: float
    start: datetime
    deadline: str | None

    @classmethod
    def of(cls, plan: Plan) -> Scale:
        """The intervals of a found plan: both sides of one on spot, else the worst case alone."""
        launch, risk = plan.launch, plan.risk
        low = high = late = None
        if launch is not None:
            low, high, late = launch.cost_p10_usd, launch.cost_p90_usd, launch.p90_hours
        elif risk is not None:  # a block costs the same however long the run takes within it
            high = risk.worst_cost_usd if risk.worst_cost_usd > plan.total_usd else None
            late = risk.worst_hours if risk.worst_hours > plan.hours else None
        start = datetime.fromisoformat(plan.start)
        ratios = half_ratios(plan.total_usd, plan.hours, launch, risk)
        return cls(low, high, late, *ratios, plan.total_usd, plan.hours, start, plan.deadline)

    def places(self, usd: Decimal) -> int:
        """Decimals to which a cost of this size is known."""
        return cost_places(usd, self.usd_ratio)

    def usd(self, value: Decimal, like: Decimal | None = None) -> str:
        """A cost in the digits that are known of it, or of another one."""
        return dollars(value, self.places(value if like is None else like))

    def known(self, value: Decimal) -> Decimal:
        """A cost rounded to what is known of it."""
        return rounded(value, self.places(value))

    def moment(self, text: str, hours: float | None = None) -> str:
        """A moment as well as it is known.

        Args:
            text: ISO moment.
            hours: from the start, default the plan's.
        """
        span = self.hours_ratio * (self.hours if hours is None else hours)
        return moment_known(text, span, self.start.year)

    def bound(self, text: str) -> str:
        """A moment that the end does not exceed with some probability: not rounded beyond a deadline that it keeps."""
        if self.deadline is not None:
            left = datetime.fromisoformat(self.deadline) - datetime.fromisoformat(text)
            if timedelta(0) <= left <= _ROUNDED_BY and self.hours_ratio * self.hours < DAY_FROM:
                return moment_known(text, 0.0, self.start.year)
        return self.moment(text)

    def after(self, hours: float) -> str:
        """The bound so many hours after the start, as well as the plan's end is known."""
        if not math.isfinite(hours):
            return UNKNOWN
        return self.bound((self.start + timedelta(hours=min(hours, 1e6))).isoformat())


def half_ratios(
    total_usd: Decimal, hours: float, launch: Launch | None, risk: Risk | None
) -> tuple[float, float]:
    """Half of the intervals of a plan's cost and hours over the figures themselves; 0: none is known."""
    half_usd = half_hours = 0.0
    if launch is not None:
        half_usd = float(launch.cost_p90_usd - launch.cost_p10_usd) / 2.0
        half_hours = (launch.p90_hours - launch.p10_hours) / 2.0
    elif risk is not None:
        half_usd, half_hours = float(risk.worst_cost_usd - total_usd), risk.worst_hours - hours
    return _over(half_usd, float(total_usd)), _over(half_hours, hours)


def cost_places(usd: Decimal | float, usd_ratio: float) -> int:
    """Decimals to which a cost is known whose interval is so wide, relative to it; never below a cent.

    Where no interval is known two or three digits are printed.
    """
    return min(known_places(float(usd), abs(float(usd)) * (usd_ratio or _NOT_STATED)), _CENTS)


def _over(part: float, whole: float) -> float:
    return part / whole if whole > 0 and part > 0 else 0.0


def chance(ratio: float | None, asked: float = 0.0) -> str:
    """A probability in whole per cent, never certain; of one surer than `asked`, as much as was asked."""
    if ratio is None:
        return UNKNOWN
    if ratio > _SURE:
        return f">{100 * (asked if _SURE < asked < ratio else _SURE):.6g} %"
    return f"<{100 * _UNSURE:.0f} %" if ratio < _UNSURE else f"{100 * ratio:.0f} %"


def bounds_chance(plan: Plan) -> bool:
    """Whether the chance stated of the deadline is a lower bound, as of a fleet in two parts."""
    return plan.launch is not None and plan.launch.in_parts


def chance_words(ratio: float | None, *, is_bound: bool) -> str:
    """A probability as `chance` says it; of one of which a lower bound is known, as one."""
    text = chance(ratio)
    return f">={text}" if is_bound and ratio is not None and not text.startswith((">", "<")) else text


def chance_or_bound(ratio: float | None, *, is_bound: bool) -> float | str:
    """A probability in a table: empty where there is none, a lower bound as text that says so."""
    if ratio is None:
        return ""
    return chance_words(ratio, is_bound=True) if is_bound else ratio
