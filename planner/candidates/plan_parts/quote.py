"""The bound of a candidate's cost and end at a level asked for: the same distributions as P10 and P90.

Without spot: the distribution of the log speed, and that of the end with failures of machines. With spot the outcomes
behind P10 and P90 (`planner.candidates.ways.outcomes`), 9 speeds by 41 courses of luck: too few for a tail. Beyond P90
the quantile of level q is the larger of theirs and median x (P90 / median)^(z_q / z_90), that of the log-normal
distribution through both, times what the tail of speeds has above a normal one; spot prices add the distance of their
own quantile in squares.

Beyond P90 the speed has the tail of Student's t with 3 degrees of freedom through the same P90, not the normal one:
published whole runs are off further than a normal tail says. Of 1.5 to 100 degrees 3 are the most likely for 19 runs of
14 families, and 3 to 5 with any one family left out (`python -m benchmarks.quote` prints both).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from math import atan, exp, pi, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.launch import HIGH, outcomes_of, quantile
from planner.candidates.plan_parts.timeline import cost_at
from planner.normal import Z80
from planner.plan.quote import Quote, as_given

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.candidates.model import Candidates, Part

    FloatArray = npt.NDArray[np.float64]


def quote_of(candidates: Candidates, at: int, total: Decimal, level: float) -> Quote:
    """Bound the cost and the end of candidate `at`.

    Args:
        candidates: all candidates.
        at: the chosen one, of one job.
        total: its expected cost, USD, the sum of its lines.
        level: probability that each is kept, 0.5 to 0.999.
    """
    level = as_given(level)
    spot = [part for part in candidates.parts(at) if candidates.context.market.is_spot[part.row]]
    if spot:
        all_hours, all_usd = outcomes_of(candidates, at)
        sigma = float(candidates.sigma[at])
        hours = tail_quantile(all_hours, level, sigma)
        usd = _with_prices(candidates, at, spot, float(total), tail_quantile(all_usd, level, sigma), level)
    else:
        z = NormalDist().inv_cdf(level)
        wider = replace(candidates, sigma=candidates.sigma * (speed_z(level) / z if level > HIGH else 1.0))
        usd, hours = cost_at(wider, at, level, z)
    cost = max(Decimal(repr(round(usd, 6))), total)
    hours = max(hours, float(candidates.hours[at]))
    finish = candidates.context.dates.start + timedelta(hours=min(hours, 1e6))
    return Quote(level, cost, hours, finish.isoformat(timespec="minutes"))


def speed_z(level: float) -> float:
    """Standard deviations by which the log speed is off at a level: normal to P90, then Student's t with 3 degrees.

    Args:
        level: 0.5 to 0.999.
    """
    if level <= HIGH:
        return NormalDist().inv_cdf(level)
    return Z80 * _student_3(level) / _student_3(HIGH)


def _student_3(level: float) -> float:
    """Quantile of Student's t with 3 degrees of freedom, by bisection of its distribution in closed form.

    F(t) = 1/2 + (x / (1 + x^2) + atan x) / pi with x = t / sqrt 3 (N. L. Johnson, S. Kotz, N. Balakrishnan, "Continuous
    Univariate Distributions", vol. 2, 1995, ch. 28).
    """
    low, high = 0.0, 100.0
    for _ in range(80):
        x = (low + high) / 2.0 / sqrt(3.0)
        if 0.5 + (x / (1.0 + x * x) + atan(x)) / pi < level:
            low = (low + high) / 2.0
        else:
            high = (low + high) / 2.0
    return (low + high) / 2.0


def tail_quantile(values: FloatArray, level: float, sigma: float = 0.0) -> float:
    """Quantile of equally likely positive values, beyond P90 with a log-normal tail and the one of speeds on top.

    Args:
        values: shape `(n,)`.
        level: 0.5 to 0.999.
        sigma: standard deviation of the log speed.
    """
    seen = quantile(values, level)
    if level <= HIGH:
        return seen
    z = NormalDist().inv_cdf(level)
    middle, high = quantile(values, 0.5), quantile(values, HIGH)
    normal = max(seen, middle * (high / middle) ** (z / Z80)) if middle > 0 else seen
    return normal * exp(sigma * (speed_z(level) - z))


def _with_prices(
    candidates: Candidates, at: int, spot: list[Part], total: float, usd: float, level: float
) -> float:
    """Quantile of the cost with spot prices, which move together and independently of the rest."""
    offer_set, run = candidates.context.market.offer_set, float(candidates.hours[at])
    rows, paid = (np.asarray([getattr(part, name) for part in spot]) for name in ("row", "instance_hours"))
    hours, book = np.full(len(rows), run), offer_set.book
    mean = book.during("expected_ratio", rows, hours)
    price = np.asarray([book.quantile(row, np.asarray([level]), run)[0] for row in rows.tolist()])
    above = float((paid * offer_set.usd_during(rows, hours) * np.maximum(price / mean - 1.0, 0.0)).sum())
    return total + float(np.hypot(max(usd - total, 0.0), above))
