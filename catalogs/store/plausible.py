"""Prices that no machine with that accelerator costs anywhere: kept out of every plan, whatever wrote them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from catalogs.errors import CatalogError
from catalogs.patterns import matches
from catalogs.tables.columns import bundled_rows
from catalogs.tables.model import INSTANCE_TYPE_KEY
from catalogs.tables.table import Table
from catalogs.tariffs import load_tariffs

IMPLAUSIBLE = "implausible_price"


@dataclass(frozen=True)
class Band:
    """Plausible prices of one accelerator-hour, USD."""

    pattern: str
    low: float
    high: float


@cache
def load_bands() -> tuple[Band, ...]:
    """Read plausibility.csv; the first pattern that fits an accelerator decides."""
    return tuple(
        Band(row["accelerator"], float(row["min_usd_per_hour"]), float(row["max_usd_per_hour"]))
        for row in bundled_rows("plausibility.csv")
    )


def band_of(accelerator: str) -> Band | None:
    """The band of an accelerator; None where there is none."""
    return next((band for band in load_bands() if matches(band.pattern, accelerator)), None)


def flag_implausible(types: Table, offers: Table) -> Table:
    """Flag offers outside the band of their accelerator, as a refresh refuses them.

    A snapshot whose hashes are right may come from a mirror that was not checked, or from an earlier version. What
    has no band, no exchange rate or no machine stays as it is.

    Args:
        types: instance types.
        offers: offers, shape `(n_offers,)` per column; prices in their own currency per machine-hour.
    """
    at = offers.lookup(types, INSTANCE_TYPE_KEY)
    names = types.coded("accelerator")
    bands = [band_of(name) for name in names.values]
    lows = np.asarray([band.low if band else 0.0 for band in bands] + [0.0])[names.codes]
    highs = np.asarray([band.high if band else np.inf for band in bands] + [np.inf])[names.codes]
    currencies = offers.coded("currency")
    rates = np.asarray([_rate(name) for name in currencies.values] + [np.nan])[currencies.codes]
    has_band = at >= 0
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        price = offers.number("price_per_hour") * rates / types.number("accelerator_count")[at]
        outside = has_band & (price > 0) & ((price < lows[at]) | (price > highs[at]))
    if not outside.any():
        return offers
    flags = offers["flags"].copy()
    for row in np.flatnonzero(outside).tolist():
        flags[row] = ";".join(filter(None, (flags[row], IMPLAUSIBLE)))
    return offers.with_columns(flags=flags)


def _rate(currency: str) -> float:
    try:
        return 1.0 if currency == "USD" else float(load_tariffs().usd_per(currency).rate)
    except CatalogError:
        return float("nan")
