"""What is bought for hours that a run may outlast: capacity blocks, and commitments of the user that end.

The work takes T = work e^(sd z) hours, z standard normal. A block that is too short is prolonged to the next length
sold; after a commitment the run goes on, on demand. What is paid for that is a mean over runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.market.pricing import QUANTUM
from planner.normal.arrays import normal_cdf
from planner.records import record

if TYPE_CHECKING:
    from datetime import datetime

    from catalogs.tables.table import Floats, Ints
    from planner.market.offers import OfferSet
    from planner.market.pricing import BillingRule

_FAR = 8.0  # standard deviations beyond which a chance counts as 0


@record(frozen=True, eq=False)
class Spread:
    """How long runs may be in use; every array has shape `(n,)`.

    Attributes:
        start: of the runs, from which the ends of what the user already pays count.
        fixed_hours: in use whatever the speed.
        work_log_sd: standard deviation of the log of the true over the predicted work; 0: the hours are known.
    """

    start: datetime
    fixed_hours: Floats
    work_log_sd: Floats

    def take(self, at: Ints) -> Spread:
        """Some of the runs, which may be named several times."""
        return Spread(self.start, self.fixed_hours[at], self.work_log_sd[at])


def owned_hours(offer_set: OfferSet, rows: Ints, start: datetime) -> Floats:
    """Hours from a start to the end of what the user already pays, infinity where nothing ends, shape of `rows`.

    Row -1 is no offer.
    """
    if not offer_set.own_ends:
        return np.full(np.shape(rows), np.inf)
    from planner.inputs.checks import end_moment

    left = np.full(offer_set.offers.n_rows + 1, np.inf)
    for row, expires in offer_set.own_ends.items():
        left[row] = (end_moment(expires) - start).total_seconds() / 3600.0
    return np.asarray(left[rows])


def after_end(offer_set: OfferSet) -> Ints:
    """The offer that goes on where a commitment of the user ends, by row, shape `(n_offers,)`; -1: none, or no price.

    On demand in the same region, the cheapest and of equal ones the first by id; where it is not sold, as the
    commitment itself is.
    """
    after = np.full(offer_set.offers.n_rows, -1)
    if not offer_set.own_ends:
        return after
    offers, usd = offer_set.offers, offer_set.usd_per_hour
    on_demand = offers.equals("purchase_option", "on_demand") & (usd > 0) & np.isnan(offer_set.owned_share)
    place = offers.key_codes("provider", "region", "instance_type")
    for row in offer_set.own_ends:
        sold = np.flatnonzero(on_demand & (place == place[row])).tolist()
        own = [row] if usd[row] > 0 else []
        after[row] = min(sold or own, key=lambda at: (usd[at], offer_set.offer_id(at)), default=-1)
    return after


def hours_after(left_hours: Floats, work_hours: Floats, fixed_hours: Floats, work_log_sd: Floats) -> Floats:
    """Expected hours in use after the end of what the user pays, no more than are planned, shape `(n,)`.

    With k = left - fixed the mean of (T - k)+ is work e^(sd^2 / 2) Phi(sd - d) - k Phi(-d), d = ln(k / work) / sd: the
    integral of the chance that the run is still on.

    Args:
        left_hours: of use until the end, infinity where nothing ends.
        work_hours: predicted, beside the fixed hours.
        fixed_hours: in use whatever the speed.
        work_log_sd: as of `Spread`.
    """
    sd = np.maximum(work_log_sd, 1e-12)
    until, work = left_hours - fixed_hours, np.maximum(work_hours, 1e-12)
    far = np.log(np.maximum(until, 1e-12) / work) / sd
    near = far - sd < _FAR
    k = np.where(near, until, 0.0)
    mean = work * np.exp(sd * sd / 2.0) * normal_cdf(sd - far) - k * normal_cdf(-far)
    mean = np.where(near, np.maximum(mean, 0.0), 0.0)
    return np.asarray(np.round(np.minimum(mean, fixed_hours + work_hours), QUANTUM))


def prolonged_hours(rule: BillingRule, work_hours: Floats, spread: Spread) -> Floats:
    """Expected hours by which blocks are prolonged, beyond the shortest that holds the predicted run, shape `(n,)`.

    A run that is not done when its block ends buys the next length, so the mean is the sum over lengths b, from the one
    bought on, of (next b - b) P(fixed + T > b). The longest is prolonged by the last step once more.

    Args:
        rule: of the purchase option; 0 where it sells no blocks.
        work_hours: predicted, beside the fixed hours.
        spread: of the runs.
    """
    if not len(rule.block_hours):
        return np.zeros(len(work_hours))
    ends = np.asarray(sorted(rule.block_hours), dtype=np.float64)
    steps = np.append(np.diff(ends), ends[-1] - ends[-2]) if len(ends) > 1 else ends
    fixed, sd = spread.fixed_hours[:, None], spread.work_log_sd[:, None]
    left = np.maximum(ends - fixed, 1e-12) / np.maximum(work_hours, 1e-12)[:, None]
    bought = (ends >= fixed + work_hours[:, None]) & (sd > 0)
    deviations = np.log(left) / np.maximum(sd, 1e-12)
    late = normal_cdf(-np.where(bought & (deviations < _FAR), deviations, np.inf))
    return np.asarray(np.round((late * steps).sum(axis=1), QUANTUM), dtype=np.float64)
