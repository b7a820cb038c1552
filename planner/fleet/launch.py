"""What a fleet with spot says before it starts.

Workers come and go independently, but those of one offer share the level of its hazards, and all share the error of
the predicted speed. Over h hours a worker is up for a h hours in the mean, a = 1 / (1 + L w), with variance
h 2 L w^2 k / (1 + L w)^3 (alternating renewal process, Cox 1962; k: `dispersion`), and a frailty of log-sd s moves a by
a (1 - a) s. Work and cost of the whole fleet are sums of many such and taken as normal.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.launch import HIGH, checkpoints_of, spot_places
from planner.plan.launch import Launch
from planner.spot.distribution import normal_cdf, normal_quantile

if TYPE_CHECKING:
    import numpy.typing as npt

    from planner.asked.model import Dates
    from planner.candidates.engine import Found
    from planner.fleet.mix import Mix

    FloatArray = npt.NDArray[np.float64]

_SPEEDS = 41


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
    at = np.flatnonzero(spot)
    pool = context.gang_risk(workers.rows[at], workers.nodes[at]).pool
    up, spread = np.ones(len(spot)), np.zeros(len(spot))
    load = pool.rate * pool.wait
    up[at] = 1.0 / (1.0 + load)
    alone = 2.0 * load * pool.wait * pool.dispersion * up[at] ** 3 * mix.hours[at] / mix.count[at]
    level = up[at] * (1.0 - up[at]) * pool.frailty_sd * mix.hours[at]
    spread[at] = np.sqrt(alone + level * level) / (
        up[at] * mix.hours[at]
    )  # relative, of a line's workers together
    money = workers.price(context.market, mix.hours)
    usd_sd = float(np.sqrt(((money.worker_usd * mix.count * spread)[at] ** 2).sum()))
    middle = mix.units * workers.caution
    units, units_sd = float(middle.sum()), float(np.sqrt(((middle * spread) ** 2).sum()))
    sigma = float((made.sigma[workers.at] * middle).sum() / units)
    low, high = (mix.work / value for value in _work_range(units, units_sd, sigma))
    p10, p90 = (max(mix.period * value, 0.0) for value in (high, low))
    early, late = min(p10, mix.period), max(p90, mix.period)
    paid = mix.hours * workers.paid_ratio + workers.fixed_hours
    course = made.hours[workers.at] - made.waiting_hours[workers.at] - made.fixed_hours[workers.at]
    runs = mix.count * mix.hours / course
    sides = float(normal_quantile(np.asarray([HIGH]))[0]) * usd_sd
    first = int(at[np.argmax((mix.count * paid)[at])])
    place = at[np.argsort(context.market.id_rank[workers.rows[at]], kind="stable")]
    return Launch(
        strategy="spot_in_fleet",
        p_meet_deadline=None if context.dates.deadline is None else _p_done(mix.work, units, units_sd, sigma),
        p_meet_spot_only_ratio=None, p_on_demand_needed_ratio=0.0, expected_cost_usd=total,
        cost_p10_usd=max(total - _cents(sides), Decimal(0)), cost_p90_usd=total + _cents(sides),
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


def _work_range(units: float, units_sd: float, sigma: float) -> tuple[float, float]:
    """P10 and P90 of the work done, speed and interruptions as independent logarithms."""
    spread = float(np.hypot(sigma, units_sd / units)) * float(normal_quantile(np.asarray([HIGH]))[0])
    return units * float(np.exp(-spread)), units * float(np.exp(spread))


def _p_done(work: float, units: float, units_sd: float, sigma: float) -> float:
    """P(the fleet does the work): normal interruptions averaged over the speeds."""
    z = normal_quantile((np.arange(_SPEEDS) + 0.5) / _SPEEDS)
    room = units * np.exp(-sigma * z) - work
    sd = np.maximum(units_sd * np.exp(-sigma * z), 1e-9 * work)
    return float(normal_cdf(room / sd).mean())


def _cents(value: float) -> Decimal:
    return Decimal(repr(round(value, 2)))


def _moment(dates: Dates, hours: float) -> str:
    return (dates.start + timedelta(hours=min(hours, 1e6))).isoformat(timespec="minutes")
