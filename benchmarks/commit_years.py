"""Years of demand to judge commitment purchases by: thirteen months known, twelve to come.

Committed before the purchases were scored. Each year has three to six pools of machines in days. A pool has a level,
growth or decline, a weekly profile, noise, and events at random moments of the 25 months: shifts of the level, a
cancellation, a burst, a start. Events fall on the known and the coming months alike.
"""

from __future__ import annotations

import numpy as np

from catalogs.tables.table import Floats
from planner.records import record

KNOWN_DAYS, COMING_DAYS = 396, 365
SHIFTS_A_YEAR = 0.8  # expected shifts of a pool's level
CANCELLED_A_YEAR = 0.15  # probability that a pool ends for good
STARTS_LATE = 0.15  # share of pools that begin within the known months
BURSTS_A_YEAR = 1.0


@record(frozen=True, eq=False)
class Year:
    """One generated case.

    Attributes:
        known: machines in use per day before the purchase, shape `(396, P)`.
        coming: machines in use per day after it, shape `(365, P)` unless asked for more.
        on_demand_usd: USD per machine-hour, shape `(P,)`.
        reserved_usd: USD per machine-hour of a reservation of one year without upfront payment, shape `(P,)`.
        plan_usd: USD per machine-hour under a savings plan of one year that serves all pools, shape `(P,)`.
        has_plan: whether the savings plan is on sale.
    """

    known: Floats
    coming: Floats
    on_demand_usd: Floats
    reserved_usd: Floats
    plan_usd: Floats
    has_plan: bool


def make_year(seed: int, number: int, coming_days: int = COMING_DAYS) -> Year:
    """Return case `number` of a seed; each case has its own random stream.

    Args:
        seed: of the cases.
        number: of the case.
        coming_days: days after the purchase; events are as frequent in more of them, but fall on other days.
    """
    draw = np.random.default_rng([seed, number])
    pools = int(draw.integers(3, 7))
    use = np.stack([_pool(draw, KNOWN_DAYS + coming_days) for _ in range(pools)], axis=1)
    on_demand = np.exp(draw.uniform(np.log(0.5), np.log(40.0), pools)).round(3)
    reserved = np.round(on_demand * draw.uniform(0.58, 0.72, pools), 4)
    plan = np.round(on_demand * draw.uniform(0.66, 0.82, pools), 4)
    known, coming = use[:KNOWN_DAYS], use[KNOWN_DAYS:]
    return Year(known, coming, on_demand, reserved, plan, bool(draw.random() < 0.5))


def _pool(draw: np.random.Generator, count: int) -> Floats:
    """Machines of one pool per day, whole numbers, shape `(count,)`."""
    days = np.arange(count)
    years = len(days) / 365
    log_level = np.full(len(days), np.log(draw.uniform(4.0, 60.0)))
    log_level += np.log(draw.choice([0.7, 1.0, 1.0, 1.15, 1.5])) * days / 365
    for _ in range(int(draw.poisson(SHIFTS_A_YEAR * years))):
        log_level[int(draw.integers(len(days))) :] += draw.normal(0.0, 0.35)
    level = np.exp(log_level)
    for _ in range(int(draw.poisson(BURSTS_A_YEAR * years))):
        first, length = int(draw.integers(len(days))), int(draw.integers(3, 30))
        level[first : first + length] *= draw.uniform(1.2, 2.0)
    if draw.random() < 1 - (1 - CANCELLED_A_YEAR) ** years:
        level[int(draw.integers(60, len(days))) :] = 0.0
    if draw.random() < STARTS_LATE:
        level[: int(draw.integers(30, KNOWN_DAYS - 30))] = 0.0
    weekend = draw.choice([1.0, 1.0, 0.85, 0.6])
    level = level * np.where(days % 7 >= 5, weekend, 1.0)
    return np.asarray(np.round(level * np.exp(draw.normal(0.0, draw.choice([0.03, 0.08, 0.15]), len(days)))))
