"""The quote of a plan as one sentence."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from decimal import Decimal

from planner.normal import Z80
from planner.plan.front_scale import Scale
from planner.plan.model import Plan
from planner.render.numbers import number
from planner.render.precision import MOST_DIGITS, dollars_at_most, moment_known

_DIGITS = MOST_DIGITS - 1
_WIDE = Decimal("1.5")  # of the expected cost: from here on people ask why
_MOST = 2 / 3
_UNKNOWN_END = "; no end can be stated at that confidence"


def quote_sentence(plan: Plan) -> str:
    """Return what a plan's cost and end are bounded by and what the bound counts; empty where none was asked for."""
    quote = plan.quote
    if quote is None:
        return ""
    sure = f"{number(100 * quote.level_ratio, 4)} %"
    prices = "list prices" if plan.launch is None else "prices at the time of the run"
    counted = f"{prices}, interruptions and restarts, and the error of our predicted hours"
    end = f", finishing by {_end(plan, quote.finish)} with the same confidence"
    return (
        f"We expect to pay at most {_at_most(quote.cost_usd)} with {sure} confidence"
        f"{end if math.isfinite(quote.hours) else _UNKNOWN_END}; it counts {counted}{_mainly(plan)}; "
        "without taxes and support plans, and given that capacity can be had"
    )


def _mainly(plan: Plan) -> str:
    """What most of a wide margin above the expected cost is for; empty where it is narrow, of both or without spot.

    Prices, here log-normal through their P90, and the rest add in quadrature: shares are those of the squared margin.
    """
    quote = plan.quote
    if quote is None or plan.launch is None or quote.cost_usd <= _WIDE * plan.total_usd:
        return ""
    from statistics import NormalDist  # no other answer needs it

    steps = NormalDist().inv_cdf(quote.level_ratio) / Z80
    above = sum(
        float(line.cost_usd) * (float(line.price_p90_per_hour / line.price_per_hour) ** steps - 1.0)
        for line in plan.lines
        if line.price_p90_per_hour and line.price_per_hour
    )
    prices = (above / float(quote.cost_usd - plan.total_usd)) ** 2
    if 1 - _MOST < prices < _MOST:
        return ""
    return f"; most of the margin is for {'spot prices' if prices >= _MOST else 'interruptions and longer hours'}"


def _at_most(usd: Decimal) -> str:
    """Rounded up to three digits: a bound is not rounded down."""
    return dollars_at_most(usd, _DIGITS)


def _end(plan: Plan, finish: str) -> str:
    """The end, rounded up to the hour, or to the minute where a plan is known so well."""
    moment, year = datetime.fromisoformat(finish), datetime.fromisoformat(plan.start).year
    scale = Scale.of(plan)
    if scale.hours_ratio * scale.hours < 1.0:
        return moment_known(finish, 0.0, year)  # written up to its minute
    whole = moment.replace(minute=0) + timedelta(hours=1 if moment.minute else 0)
    return moment_known(whole.isoformat(timespec="minutes"), 1.0, year)
