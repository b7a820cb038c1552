"""The bound of a candidate's cost and end at a level asked for: the same distributions as P10 and P90.

Without spot: the distribution of the log speed, and that of the end with failures of machines. With spot the outcomes
behind P10 and P90 (`planner.candidates.ways.outcomes`), 9 speeds by 41 courses of luck: too few for a tail. Beyond P90
the quantile of level q is the larger of theirs and median x (P90 / median)^(z_q / z_90), that of the log-normal
distribution through both; spot prices add the distance of their own quantile in squares.

The log speed is normal also beyond P90: of the tails of Student's t, that of the most degrees is the most likely for
the errors of 19 published runs and of 27 others (`python -m benchmarks.quote` prints both).
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.launch import HIGH, outcomes_of, quantile
from planner.candidates.plan_parts.timeline import cost_at
from planner.normal import Z80
from planner.plan.quote import Quote, as_given

if TYPE_CHECKING:
    from catalogs.tables.table import Floats
    from planner.candidates.model import Candidates, Part


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
        hours = tail_quantile(all_hours, level)
        usd = _with_prices(candidates, at, spot, float(total), tail_quantile(all_usd, level), level)
    else:
        usd, hours = cost_at(candidates, at, level, NormalDist().inv_cdf(level))
    cost = max(Decimal(repr(round(usd, 6))), total)
    hours = max(hours, float(candidates.hours[at]))
    finish = candidates.context.dates.start + timedelta(hours=min(hours, 1e6))
    return Quote(level, cost, hours, finish.isoformat(timespec="minutes"))


def tail_quantile(values: Floats, level: float) -> float:
    """Quantile of equally likely positive values, beyond P90 at least with a log-normal tail.

    Args:
        values: shape `(n,)`.
        level: 0.5 to 0.999.
    """
    seen = quantile(values, level)
    if level <= HIGH:
        return seen
    middle, high = quantile(values, 0.5), quantile(values, HIGH)
    return max(seen, middle * (high / middle) ** (NormalDist().inv_cdf(level) / Z80)) if middle > 0 else seen


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
