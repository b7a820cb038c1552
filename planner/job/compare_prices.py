"""What the price lists alone say, whatever the job: regions against each other, and spot against on-demand."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.model import places_of
from planner.bundled import bundled_rows
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.market.model import Market
    from planner.market.offers import OfferSet

_HIGH_SAVING = 0.7


@record(frozen=True)
class PriceGap:
    """On-demand list prices of one region against another's, over the instance types that both sell.

    `median_ratio` 0.1: a tenth dearer in the median; `low_ratio` and `high_ratio`: the least and the most.
    """

    types: int
    median_ratio: float
    low_ratio: float
    high_ratio: float
    as_of: str


@record(frozen=True)
class PlaceClaim:
    """A published claim on two regions, beside what the price lists say.

    `claimed_low_ratio` to `claimed_high_ratio` is negative where the region is said to be cheaper than the base.
    """

    words: str
    region: str
    base: str
    claimed_low_ratio: float
    claimed_high_ratio: float
    source: str
    gap: PriceGap

    @property
    def holds(self) -> bool:
        """Whether the median of the lists lies within the claim."""
        return self.claimed_low_ratio <= self.gap.median_ratio <= self.claimed_high_ratio


@record(frozen=True)
class SpotSaving:
    """What spot saves at one provider.

    Attributes:
        rows: types and regions with both prices; list_median_ratio: saving of the quote in their median.
        high_share: share of them that save at least 70 %.
        cost_usd, on_demand_usd: this job with spot, and on-demand alone; saved_ratio: between them.
        p_meet_deadline: probability that the way with spot meets the deadline.
    """

    rows: int
    list_median_ratio: float | None
    high_share: float | None
    cost_usd: float | None
    on_demand_usd: float | None
    saved_ratio: float | None
    p_meet_deadline: float | None


def gaps_to(market: Market, base: str) -> dict[str, PriceGap]:
    """On-demand prices of every region against `base` (`provider/region`), where both sell a type."""
    prices = _on_demand(market)
    mine = prices.get(base, {})
    return {name: gap for name, other in prices.items() if name != base and (gap := _gap(other, mine))}


def tested_claims(market: Market, base: str, regions: Sequence[str]) -> tuple[PlaceClaim, ...]:
    """The published claims on pairs of regions that the comparison holds, each with the figures of the lists."""
    prices, compared = _on_demand(market), {base, *regions}
    pairs = [row for row in _claims() if {row["region"], row["base"]} <= compared]
    out = []
    # of the pairs that the comparison holds those of its base, if it has one in them
    for row in [row for row in pairs if base in (row["region"], row["base"])] or pairs:
        region, other = row["region"], row["base"]
        gap = _gap(prices.get(region, {}), prices.get(other, {}))
        if gap is not None:
            low, high = float(row["low_ratio"]), float(row["high_ratio"])
            out.append(PlaceClaim(row["words"], region, other, low, high, row["source"], gap))
    return tuple(out)


def saving_of(
    market: Market, provider: str, spot: tuple[float, float | None] | None, steady: tuple[float, float | None] | None
) -> SpotSaving:  # fmt: skip
    """What spot saves at a provider.

    Args:
        market: the price lists.
        provider: whose.
        spot: cost of this job with spot and its chance to be in time, None where none meets the limits.
        steady: the same on-demand alone.
    """
    quoted = _least_prices(market, "spot", provider)
    listed = _least_prices(market, "on_demand", provider)
    savings = [1.0 - quoted[key][0] / listed[key][0] for key in quoted.keys() & listed.keys()]
    saved = None if spot is None or steady is None or not steady[0] else 1.0 - spot[0] / steady[0]
    return SpotSaving(
        len(savings),
        float(np.median(savings)) if savings else None,
        float(np.mean([one >= _HIGH_SAVING for one in savings])) if savings else None,
        None if spot is None else spot[0],
        None if steady is None else steady[0],
        saved,
        None if spot is None else spot[1],
    )


def _on_demand(market: Market) -> dict[str, dict[str, tuple[float, str]]]:
    """Least on-demand list price and its date, by place and instance type."""
    out: dict[str, dict[str, tuple[float, str]]] = {}
    for (place, kind), price in _least_prices(market, "on_demand").items():
        out.setdefault(place, {})[kind] = price
    return out


def _least_prices(
    market: Market, option: str, provider: str | None = None
) -> dict[tuple[str, str], tuple[float, str]]:
    """Least quote per instance-hour, in its own currency, with its date, by place and type; refused offers left out."""
    return market.offer_set.once(
        ("least_prices", option, provider), lambda: _least_prices_of(market.offer_set, option, provider)
    )


def _least_prices_of(
    offer_set: OfferSet, option: str, provider: str | None
) -> dict[tuple[str, str], tuple[float, str]]:
    offers = offer_set.offers
    usable = offers.equals("purchase_option", option) & np.isfinite(offer_set.usd_per_hour)
    usable &= np.isnan(offer_set.owned_share)
    if provider is not None:
        usable &= offers.equals("provider", provider)
    rows, places = np.flatnonzero(usable), places_of(offers)
    prices, types = offer_set.quotes.take(rows).numbers().tolist(), offers["instance_type"][rows].tolist()
    dates, codes = offers["as_of"][rows].tolist(), places.codes[rows].tolist()
    out: dict[tuple[str, str], tuple[float, str]] = {}
    for code, kind, price, date in zip(codes, types, prices, dates, strict=True):
        key = places.values[code], kind
        if price > 0 and (key not in out or price < out[key][0]):
            out[key] = price, date
    return out


def _gap(one: Mapping[str, tuple[float, str]], other: Mapping[str, tuple[float, str]]) -> PriceGap | None:
    both = sorted(one.keys() & other.keys())
    if not both:
        return None
    ratios = [one[kind][0] / other[kind][0] - 1.0 for kind in both]
    oldest = min(min(one[kind][1], other[kind][1]) for kind in both)
    return PriceGap(len(both), float(np.median(ratios)), min(ratios), max(ratios), oldest)


@cache
def _claims() -> tuple[dict[str, str], ...]:
    return tuple(bundled_rows("price_claims.csv"))
