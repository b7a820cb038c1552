"""Prices that a careful reader would look up: at the end of their source's scale, or far from their neighbours.

A price is not wrong because it is odd; it is one that must not win unseen. The rules need no clock and no network:
they are the same for the bundled snapshot and for every refresh.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from catalogs.offers.flags import join_flags, load_flags, split_flags
from catalogs.tables.columns import bundled_rows
from catalogs.tables.model import OFFER_KEY, PurchaseOption, Severity

Row = Mapping[str, str]
Key = tuple[str, ...]
CONFIRMED = "price_confirmed"
FAR, AT_LIMIT, QUARANTINED = "far_from_neighbours", "at_feed_limit", "quarantined"
WAITING_FLAGS = frozenset({FAR, AT_LIMIT, QUARANTINED})
# A market price differs between places more than a listed one.
_NEIGHBOUR_FACTOR = {PurchaseOption.SPOT.value: 3.0}
_LISTED_NEIGHBOUR_FACTOR = 2.0
_LEAST_NEIGHBOURS = 3
_LIMIT_TOLERANCE = 5e-5


@dataclass(frozen=True)
class FeedLimit:
    """One row of feed_limits.csv: a share of on-demand at which a source stops telling prices apart."""

    provider: str
    purchase_option: str
    ratio: float
    flag: str


@cache
def load_feed_limits() -> tuple[FeedLimit, ...]:
    """Read feed_limits.csv."""
    return tuple(
        FeedLimit(row["provider"], row["purchase_option"], float(row["ratio_to_on_demand"]), row["flag"])
        for row in bundled_rows("feed_limits.csv")
    )


def key_of(row: Row) -> Key:
    """The offer's key."""
    return tuple(row.get(name, "") for name in OFFER_KEY)


def price_of(row: Row) -> float:
    """Price per hour in the row's own currency; NaN where it is none."""
    try:
        return float(row.get("price_per_hour", ""))
    except ValueError:
        return float("nan")


def flag_suspicious(offers: Sequence[Row]) -> list[dict[str, str]]:
    """Flag offers at a limit of their source and those far from their neighbours; confirmed ones stay as they are."""
    limits, far = _at_limits(offers), far_from_neighbours(offers)
    out = []
    for row in offers:
        flags = split_flags(row.get("flags", ""))
        key = key_of(row)
        if CONFIRMED not in flags:
            flags = (*flags, *limits.get(key, ()), *((FAR,) if key in far else ()))
        out.append({**row, "flags": join_flags(flags)})
    return out


def _at_limits(offers: Iterable[Row]) -> dict[Key, tuple[str, ...]]:
    """Flags of offers whose share of on-demand is a limit of their source."""
    rows = list(offers)
    listed: dict[Key, list[float]] = defaultdict(list)
    for row in rows:
        if row.get("purchase_option") == PurchaseOption.ON_DEMAND.value:
            listed[machine_in_region(row)].append(price_of(row))
    flags_of = {}
    for row in rows:
        limits = [
            feed_limit
            for feed_limit in load_feed_limits()
            if (feed_limit.provider, feed_limit.purchase_option)
            == (row.get("provider"), row.get("purchase_option"))
        ]
        prices = listed.get(machine_in_region(row), ())
        hit = {
            feed_limit.flag
            for feed_limit in limits
            for price in prices
            if price > 0 and abs(price_of(row) / price - feed_limit.ratio) <= _LIMIT_TOLERANCE
        }
        if hit:
            flags_of[key_of(row)] = tuple(sorted(hit))
    return flags_of


def far_from_neighbours(offers: Iterable[Row]) -> dict[Key, float]:
    """Offers far from the median price of the same machine in other regions, with their share of it."""
    groups: dict[Key, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in offers:
        if _is_refused(row):
            continue
        names = ("provider", "instance_type", "purchase_option", "option_variant", "currency")
        groups[tuple(row.get(name, "") for name in names)][row.get("region", "")].append(row)
    shares = {}
    for (_, _, option, _, _), regions in groups.items():
        if len(regions) <= _LEAST_NEIGHBOURS:
            continue
        factor = _NEIGHBOUR_FACTOR.get(option, _LISTED_NEIGHBOUR_FACTOR)
        typical = {
            region: statistics.median(price_of(row) for row in rows) for region, rows in regions.items()
        }
        for region, rows in regions.items():
            usual = statistics.median(price for place, price in typical.items() if place != region)
            for row in rows:
                share = price_of(row) / usual if usual > 0 else float("nan")
                if share <= 1 / factor or share >= factor:
                    shares[key_of(row)] = share
    return shares


def _is_refused(row: Row) -> bool:
    """Whether another flag keeps the offer out: it says nothing of its neighbours."""
    definitions = load_flags()
    flags = set(split_flags(row.get("flags", ""))) - WAITING_FLAGS
    return any(flag not in definitions or definitions[flag].severity is Severity.REFUSE for flag in flags)


def machine_in_region(row: Row) -> Key:
    """The machine, its region and the currency of its price."""
    return tuple(row.get(name, "") for name in ("provider", "region", "instance_type", "currency"))
