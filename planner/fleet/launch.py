"""What a fleet with spot says before it starts; its chances: `planner.fleet.chance`.

P10 and P90 of the cost hold interruptions, independent from line to line, and spot prices, which move together and
independently of interruptions: both distances from the expected cost add in squares.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.launch import HIGH, checkpoints_of, spot_places
from planner.fleet.chance import progress_of
from planner.market.price_path import NAMES
from planner.plan.launch import Launch

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.asked.model import Dates
    from planner.candidates.engine import Found
    from planner.fleet.mix import Mix
    from planner.market.offers import OfferSet

    FloatArray = npt.NDArray[np.float64]
    IntArray = npt.NDArray[np.int64]


def fleet_launch(found: Found, mix: Mix, total: Decimal) -> Launch | None:
    """Describe a mix at launch, None where it has no spot.

    Args:
        found: all candidates.
        mix: the workers chosen.
        total: cost of the fleet, the sum of its lines.
    """
    context = found.candidates.context
    workers, made = mix.workers, found.candidates
    spot = context.market.is_spot[workers.rows]
    if not spot.any():
        return None
    at, told = np.flatnonzero(spot), progress_of(found, mix)
    money = workers.price(context.market, mix.hours)
    spread = told.spread(mix.hours)  # relative, of a line's workers together
    usd_sd = float(np.sqrt(((money.worker_usd * mix.count * spread)[at] ** 2).sum()))
    deadline = context.dates.deadline_hours
    coming = told.coming()
    early = min(coming.hours_for(1.0 - HIGH, mix.work), mix.period)
    late = max(coming.hours_for(HIGH, mix.work), mix.period)
    paid = mix.hours * workers.paid_ratio + workers.fixed_hours
    course = made.hours[workers.at] - made.waiting_hours[workers.at] - made.fixed_hours[workers.at]
    runs = mix.count * mix.hours / course
    luck = NormalDist().inv_cdf(HIGH) * usd_sd
    sides = _price_sides(context.market.offer_set, mix, money.instance_hours, at)
    low, high = (float(np.hypot(luck, side)) for side in sides)
    first = int(at[np.argmax((mix.count * paid)[at])])
    place = at[np.argsort(context.market.id_rank[workers.rows[at]], kind="stable")]
    return Launch(
        strategy="spot_in_fleet",
        p_meet_deadline=None if deadline is None else told.chance(deadline, mix.work),
        p_meet_spot_only_ratio=None, p_on_demand_needed_ratio=0.0, expected_cost_usd=total,
        cost_p10_usd=max(total - _cents(low), Decimal(0)), cost_p90_usd=total + _cents(high),
        expected_hours=mix.period, p10_hours=early, p90_hours=late,
        finish_p10=_moment(context.dates, early), finish_p90=_moment(context.dates, late),
        expected_interruptions=float((made.interruptions[workers.at] * runs)[at].sum()),
        spot_hours=float((mix.count * paid)[at].sum()), on_demand_hours=float((mix.count * paid)[~spot].sum()),
        waiting_hours=float((mix.count * mix.hours * (1.0 - workers.paid_ratio))[at].sum()),
        lost_hours=float((made.lost_hours[workers.at] * runs)[at].sum()),
        on_demand_acquire_s=context.asked.assumptions.on_demand_acquire_s,
        checkpoints=checkpoints_of(made, int(workers.at[first]), [int(workers.rows[first])]),
        places=spot_places(context, workers.rows[place], workers.nodes[place], (mix.count * paid)[place]),
        notes=("hours are summed over workers; the finish is that of all work at this size of the fleet",),
    )  # fmt: skip


def _price_sides(offers: OfferSet, mix: Mix, instance_hours: FloatArray, at: IntArray) -> tuple[float, float]:
    """USD from the cost to its P10 and P90 by the prices of the spot lines `at`, which move together."""
    rows = mix.workers.rows[at]
    run = (mix.workers.lead_hours + mix.hours)[at]
    mean, p10, p90 = (offers.book.during(name, rows, run) for name in NAMES)
    usd = offers.usd_during(rows, run) * instance_hours[at] * mix.count[at]
    return float((usd * (1.0 - p10 / mean)).sum()), float((usd * (p90 / mean - 1.0)).sum())


def _cents(value: float) -> Decimal:
    return Decimal(repr(round(value, 2)))


def _moment(dates: Dates, hours: float) -> str:
    return (dates.start + timedelta(hours=min(hours, 1e6))).isoformat(timespec="minutes")
