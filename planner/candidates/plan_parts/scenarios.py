"""What candidates cost in common scenarios: the same speed error, spot prices and interruptions for all of them.

A scenario is a draw of named normal factors; each name has its own random stream, so that a factor is the same for
every candidate that shares it, and more scenarios leave the earlier ones as they were.

* speed: one factor for all jobs, as one model predicts them all; it moves a candidate along its own log-normal spread;
* spot prices: factors of the provider, the instance type and the place in the shares of `shared_variance`, through the
  distribution of the price to expect; list prices: one factor for each provider and type;
* interruptions: factors of the provider and type, the region and the zone, so correlated as records of spot capacity
  are within and across regions (`spot_zone_correlation_ratio`, `spot_region_correlation_ratio`), through the outcomes
  behind P10 and P90. Jobs in one zone on one type share them wholly, which is cautious; jobs in several zones share
  those that both have.

Costs are scaled so that their mean over the scenarios is the expected cost: the mean is known better than by drawing.
"""

from __future__ import annotations

from hashlib import sha256
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.plan_parts.launch import outcomes_of
from planner.candidates.plan_parts.timeline import cost_at
from planner.candidates.ways.outcomes import LUCK, SPEEDS
from planner.market.expected_price import shared_variance
from planner.normal.arrays import normal_cdf, normal_quantile_by_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Floats
    from planner.candidates.model import Candidates, Part
    from planner.candidates.plan_parts.bought import Source


_Z = np.asarray(
    [-2.5, -1.5, -0.75, 0.0, 0.75, 1.5, 2.5]
)  # at which the cost of steady capacity is worked out
_PLACE = ("provider", "instance_type", "region", "zone")


class Draws:
    """Common scenarios: standard normal factors by name."""

    def __init__(self, count: int, seed: int) -> None:
        """Take how many scenarios, and which."""
        self.count, self.seed = count, seed
        self._known: dict[tuple[str, ...], Floats] = {}

    def normal(self, *name: str) -> Floats:
        """The factor of a name in every scenario, shape `(count,)`."""
        if name not in self._known:
            digest = sha256("\0".join(name).encode()).digest()
            stream = [int.from_bytes(digest[at : at + 4], "little") for at in (0, 4)]
            self._known[name] = np.random.default_rng([self.seed, *stream]).standard_normal(self.count)
        return self._known[name]


class ScenarioCosts:
    """Costs of candidates in the scenarios of `draws`; each is worked out once."""

    def __init__(self, draws: Draws) -> None:
        """Take the scenarios."""
        self.draws = draws
        self._known: dict[tuple[int, int], Floats] = {}
        self._kept: dict[int, Source] = {}  # so that no other object takes the number of one

    def deviation(self, source: Source | None, row: int) -> Floats:
        """Cost of candidate `row` in each scenario less its expected cost, USD, shape `(S,)`; None is certain."""
        if source is None:
            return np.zeros(self.draws.count)
        key = (id(source), row)
        if key not in self._known:
            self._kept[id(source)] = source
            self._known[key] = centred(
                scenario_usd(source.made, row, self.draws), float(source.made.cost_usd[row])
            )
        return self._known[key]

    def deviations(self, keys: Sequence[tuple[Source | None, int]]) -> Floats:
        """The same of several candidates, shape `(n, S)`."""
        rows = [self.deviation(source, row) for source, row in keys]
        return np.asarray(rows, dtype=np.float64).reshape(len(keys), self.draws.count)


def centred(usd: Floats, expected_usd: float) -> Floats:
    """Deviations with the mean 0 of costs scaled to a mean, shape `(S,)`; one scenario is the expected cost.

    Args:
        usd: at least 0, shape `(S,)`.
        expected_usd: the mean.
    """
    mean = float(usd.mean())
    if mean <= 0:
        return np.zeros(len(usd))
    out = expected_usd * (usd / mean - 1.0)
    return np.asarray(out - out.mean(), dtype=np.float64)


def scenario_usd(candidates: Candidates, at: int, draws: Draws) -> Floats:
    """Cost of candidate `at` in each scenario, USD, shape `(S,)`."""
    parts, speed = candidates.parts(at), draws.normal("speed")
    spot = [part for part in parts if candidates.context.market.is_spot[part.row]]
    if spot:
        _, outcomes = outcomes_of(candidates, at)
        usd = _at_speed_and_luck(outcomes.reshape(SPEEDS, LUCK), speed, _luck(candidates, spot, draws))
    else:
        normal = NormalDist()
        usd = np.interp(speed, _Z, [cost_at(candidates, at, normal.cdf(z), z)[0] for z in _Z.tolist()])
    for part in parts:
        usd = usd + _price_usd(candidates, part, draws)
    return np.maximum(usd, 0.0)


def _at_speed_and_luck(grid: Floats, speed: Floats, luck: Floats) -> Floats:
    """Costs between those of equally likely speeds and courses of luck, shape `(S,)`; beyond the last speed in line.

    Args:
        grid: USD, shape `(SPEEDS, LUCK)`.
        speed: standard normal, shape `(S,)`.
        luck: likewise.
    """
    share = np.asarray([NormalDist().cdf(z) for z in luck.tolist()])
    place = np.clip(share * LUCK - 0.5, 0.0, LUCK - 1.0)
    left = np.minimum(place.astype(np.int64), LUCK - 2)
    by_speed = grid[:, left] + (place - left) * (grid[:, left + 1] - grid[:, left])
    knots = normal_quantile_by_table((np.arange(SPEEDS) + 0.5) / SPEEDS)
    low = np.clip(np.searchsorted(knots, speed) - 1, 0, SPEEDS - 2)
    at = np.arange(len(speed))
    slope = (by_speed[low + 1, at] - by_speed[low, at]) / (knots[low + 1] - knots[low])
    return np.asarray(by_speed[low, at] + (speed - knots[low]) * slope, dtype=np.float64)


def _luck(candidates: Candidates, spot: Sequence[Part], draws: Draws) -> Floats:
    """How interruptions turn out for a candidate in each scenario, standard normal, the higher the worse."""
    assume, offers = candidates.context.asked.assumptions, candidates.context.market.offer_set.offers
    places = {tuple(str(offers[name][part.row]) for name in _PLACE) for part in spot}
    across, within = assume.spot_region_correlation_ratio, assume.spot_zone_correlation_ratio
    return luck_of(sorted(places), across, within, draws)


def luck_of(places: Sequence[tuple[str, ...]], across: float, within: float, draws: Draws) -> Floats:
    """Luck of capacity in some zones, each of which counts alike, standard normal, shape `(S,)`.

    Candidates share as much of it as their zones do: a zone alone and beside others is one zone.

    Args:
        places: provider, instance type, region and zone of each, no two alike.
        across: correlation between zones of two regions.
        within: between two of one region; at least `across` counts.
        draws: the scenarios.
    """
    shares: dict[tuple[str, ...], float] = {}  # of each factor in the sum of the zones
    for place in places:
        steps = (across, max(within - across, 0.0), 1.0 - max(within, across))
        for share, name in zip(steps, (place[:2], place[:3], place), strict=True):
            shares[name] = shares.get(name, 0.0) + share**0.5
    whole = sum(share**2 for share in shares.values()) ** 0.5
    normals = (share / whole * draws.normal("capacity", *name) for name, share in shares.items())
    return np.asarray(sum(normals, np.zeros(draws.count)), dtype=np.float64)


def _price_usd(candidates: Candidates, part: Part, draws: Draws) -> Floats:
    """What a part costs above the expected price in each scenario, USD, shape `(S,)`."""
    market = candidates.context.market
    book, offers = market.offer_set.book, market.offer_set.offers
    paid = part.instance_hours * float(market.offer_set.usd_per_hour[part.row])
    if not book.p10_ratio[part.row] < book.p90_ratio[part.row] or paid <= 0:
        return np.zeros(draws.count)
    provider, kind, region, zone = (str(offers[name][part.row]) for name in _PLACE)
    if market.is_spot[part.row]:
        shares = shared_variance(provider, float(book.horizon_days[part.row]))
        names = (("price", provider), ("price", provider, kind), ("price", provider, kind, region, zone))
        z = sum(
            (share**0.5 * draws.normal(*name) for share, name in zip(shares, names, strict=True)), np.zeros(1)
        )
    else:
        z = draws.normal("list", provider, kind)
    return paid * (book.quantile(part.row, normal_cdf(z)) / float(book.expected_ratio[part.row]) - 1.0)
