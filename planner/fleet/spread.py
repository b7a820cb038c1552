"""What the hours and the cost of a fleet may come to: P10 and P90, as a single job has them.

The cost has three causes that know nothing of each other, so distances from the expected cost add in squares; those
below it as ratios, as each cause takes its share of what the others leave:

* speed: its error is common to all workers; the fleet is billed again with all work slowed by exp(+-sigma z);
* interruptions: they cost the work that is repeated, the restarts and the notice, not the wait. The paid time of a run
  is its elapsed time without waits (`planner.spot.moments`); runs of a line share the level of its hazards alone;
* prices of spot, which move together.

The predicted speed is the median of what may come. A block or a term that is bought is paid, however fast the work is.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.launch import HIGH, LOW
from planner.fleet.bill import bill_of
from planner.fleet.chance import progress_of
from planner.market.price_path import NAMES
from planner.normal import Z80
from planner.records import record
from planner.spot.distribution import SPREAD_POINTS, frailties
from planner.spot.moments import compute_moments, split_job

if TYPE_CHECKING:
    from catalogs.tables.table import Floats, Ints
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.fleet.mix import Mix


@record(frozen=True)
class Spread:
    """P10 and P90 of the hours until all work is done, given that all workers come, and of the cost in USD."""

    p10_hours: float
    p90_hours: float
    p10_usd: Decimal
    p90_usd: Decimal


def spread_of(search: CandidateSearch, mix: Mix, total: Decimal) -> Spread:
    """Work out both intervals of a mix.

    Args:
        search: all candidates.
        mix: the workers chosen.
        total: cost of the fleet, the sum of its lines.
    """
    coming = progress_of(search, mix).coming()
    sigma = search.candidates.sigma[mix.workers.at]
    late = coming.hours_for(HIGH, mix.work)
    if not math.isfinite(late):  # what was bought ends before: it is bought anew
        late = float((mix.workers.lead_hours + mix.hours * np.exp(sigma * Z80)).max())
    spot = np.flatnonzero(search.context.market.is_spot[mix.workers.rows])
    luck = Z80 * interruptions_sd(search.candidates, mix, spot)
    usd = []
    for sign, side in zip((-1.0, 1.0), _price_sides(search.candidates, mix, spot), strict=True):
        billed = bill_of(search, _slower(mix, np.exp(sign * sigma * Z80)))[0]
        speed = max(sign * float(billed - total), 0.0)
        distance = math.hypot(speed, luck, side) if sign > 0 else _below(float(total), speed, luck, side)
        usd.append(Decimal(repr(round(sign * distance, 2))))
    return Spread(
        p10_hours=min(coming.hours_for(LOW, mix.work), mix.period),
        p90_hours=max(late, mix.period),
        p10_usd=max(total + usd[0], Decimal(0)),
        p90_usd=total + usd[1],
    )


def _below(total: float, *distances: float) -> float:
    """How far the cost may fall below `total` where causes alone take it down by `distances`, in USD."""
    if max(distances) >= total:
        return total
    return total * -math.expm1(-math.hypot(*(math.log1p(-distance / total) for distance in distances)))


def _slower(mix: Mix, times: Floats) -> Mix:
    """The same shares of the work by workers known to take `times` as long; a purchase holds what it held."""
    workers = replace(
        mix.workers,
        units_per_hour=mix.workers.units_per_hour / times,
        caution=np.maximum(mix.workers.caution / times, 1.0),
        work_log_sd=np.zeros(len(times)),
    )
    return replace(mix, workers=workers, hours=mix.hours * times, limit_hours=math.inf)


def interruptions_sd(candidates: Candidates, mix: Mix, spot: Ints) -> float:
    """Standard deviation in USD by interruptions of the spot lines `spot`."""
    if not len(spot):
        return 0.0
    context, workers = candidates.context, mix.workers.take(spot)
    money = workers.price(context.market, mix.hours[spot])
    runs = mix.runs(context.asked.job.total_units)[spot]
    alone, level = _paid_variances(candidates, workers.at)
    hours_sd = np.sqrt(runs * alone + runs**2 * level)
    return float(np.linalg.norm(money.worker_usd / money.billed_hours * hours_sd))


def _paid_variances(candidates: Candidates, at: Ints) -> tuple[Floats, Floats]:
    """Variance of the paid hours of one run by its own luck, and by the level of the hazards that its line shares."""
    context = candidates.context
    rows, nodes, work = candidates.gang(at)
    write = candidates.write_hours[at]
    restart, notice = context.asked.restart_hours(write), context.spot.figures.notice_hours[rows]
    job = split_job(work, candidates.interval_hours[at], write, restart, notice)
    pool = context.gang_risk(rows, nodes).pool
    alone, mean, square = (np.zeros(len(at)) for _ in range(3))
    for factor, weight in frailties(pool.frailty_sd, SPREAD_POINTS):
        # without waits, what elapses is what is paid
        moments = compute_moments(job, pool.rate * factor, np.zeros(len(at)), variance=True)
        alone += weight * moments.excess_variance * pool.dispersion
        mean += weight * moments.paid_hours
        square += weight * moments.paid_hours**2
    return alone, np.maximum(square - mean**2, 0.0)


def _price_sides(candidates: Candidates, mix: Mix, spot: Ints) -> tuple[float, float]:
    """USD from the cost to its P10 and P90 by the prices of the spot lines `spot`, which move together."""
    offers, workers = candidates.context.market.offer_set, mix.workers.take(spot)
    run, hours = workers.lead_hours + mix.hours[spot], mix.hours[spot]
    mean, p10, p90 = (offers.book.during(name, workers.rows, run) for name in NAMES)
    paid = workers.price(candidates.context.market, hours).instance_hours * mix.count[spot]
    usd = offers.usd_during(workers.rows, run) * paid
    return float((usd * (1.0 - p10 / mean)).sum()), float((usd * (p90 / mean - 1.0)).sum())
