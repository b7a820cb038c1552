"""The quote of a plan, recomputed: what its cost and end do not exceed at the level that it states."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import exp, hypot, log
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from planner.judge import frame
from planner.judge.bench import Bench, Candidate
from planner.judge.completion import sure, until_there
from planner.judge.findings import Between, Near
from planner.judge.launch_figures import SPREAD_RATIO, outcomes_of
from planner.judge.prices import Z80
from planner.judge.spot_policies import quantile

if TYPE_CHECKING:
    from planner.judge.document import Node

# Where the wait has a spread, the search reads the normal distribution from a table, the judge computes it.
_TABLE_RATIO = 1e-5

_LEAST, _MOST = 0.5, 0.999
_SPREAD_LEVEL = 0.9


def quote_of(bench: Bench, plan: Node, candidate: Candidate, grid: float) -> dict[str, Any]:
    """What the section must say, empty where the plan has none.

    Args:
        bench: the job.
        plan: the plan as stated.
        candidate: what it buys, recomputed.
        grid: how far the search for hours of steady capacity may end above them, in the logarithm.
    """
    if "quote" not in plan:
        return {}
    quote = plan["quote"]
    if quote.is_null:
        return {"quote": None}
    level = quote["level_ratio"].number()
    if not _LEAST <= level <= _MOST:
        quote["level_ratio"].fail(f"a level from {_LEAST} to {_MOST}")
    hours, usd = _bounds(bench, plan, candidate, level, grid)
    return {
        "quote": {
            "level_ratio": Between(_LEAST, _MOST), "cost_usd": usd, "hours": hours,
            "finish": frame.finish(bench, quote["hours"].number()),
        }
    }  # fmt: skip


def _bounds(bench: Bench, plan: Node, candidate: Candidate, level: float, grid: float) -> tuple[Any, Any]:
    """Hours and US dollars of the level."""
    z = NormalDist().inv_cdf(level)
    if candidate.situation is not None:
        hours, usd = (_tail(values, level, z) for values in outcomes_of(bench, candidate))
        whole = float(plan["total_usd"].money())
        usd = whole + hypot(max(usd - whole, 0.0), _prices_above(candidate, level))
        return Near(max(hours, candidate.hours), SPREAD_RATIO), Near(Fraction(usd), SPREAD_RATIO, 0.011)
    before = candidate.waiting + candidate.steps.fixed
    sure = sure_hours(candidate, level, candidate.steps.sigma)
    stated = plan["quote"]["hours"].number()
    cost = max(bench.cost_if(candidate, exp(z * candidate.steps.sigma), stated), candidate.cost)
    most = max(before + (sure - before) * exp(grid), candidate.hours)
    return Between(max(sure * (1.0 - table_ratio(candidate)), candidate.hours), most), Near(cost, 1e-9, 2e-6)


def _tail(values: Sequence[float], level: float, z: float) -> float:
    """Quantile of the outcomes, beyond P90 at least that of the log-normal distribution through median and P90."""
    seen = quantile(values, level)
    middle, high = quantile(values, 0.5), quantile(values, _SPREAD_LEVEL)
    if level <= _SPREAD_LEVEL or middle <= 0:
        return seen
    return max(seen, middle * exp(z / Z80 * log(high / middle)))


def _prices_above(candidate: Candidate, level: float) -> float:
    """By how much the quantile of spot prices exceeds those expected, USD."""
    above = 0.0
    for part in candidate.parts:
        if part.offer.is_spot:
            quote = part.offer.quote
            paid = float(next(charge.usd for charge in part.charges if charge.kind == "compute"))
            above += paid * (quote.at_level(level) / quote.expected - 1.0)
    return above


def table_ratio(candidate: Candidate) -> float:
    """How far, of themselves, stated hours of steady capacity may be off `sure_hours`."""
    return 0.0 if candidate.waits is None or candidate.waits.are_certain else _TABLE_RATIO


def sure_hours(candidate: Candidate, level: float, sigma: float) -> float:
    """Hours from the start that steady capacity keeps with probability `level`, the log of its speed off by `sigma`."""
    if candidate.waits is None or candidate.waits.are_certain:
        slow = exp(NormalDist().inv_cdf(level) * sigma)
        return candidate.waiting + candidate.steps.fixed + candidate.need * slow
    before = (
        until_there(candidate.waits, candidate.waiting, 0.0) - candidate.waits.at(0.0) + candidate.steps.fixed
    )
    return before + sure(candidate.waits, candidate.need, level, sigma)
