"""What tariffs say of every place of a set of offers, for all jobs of one day whose data lie at one place."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.market.pricing import PriceTag
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from catalogs.tables.table import Floats
    from catalogs.tariffs import StoragePrice, Tariffs, TierCurve


USD = Decimal(1)
_ZERO_TAG = PriceTag(Decimal(0), "USD", USD, "declared", "nothing is moved or kept", "")


@record(frozen=True, eq=False)
class Tags:
    """Prices of object storage and of the default system disk of every place, with their USD, shape `(n_places,)`."""

    storage: tuple[PriceTag, ...]
    disk: tuple[PriceTag | None, ...]
    storage_usd: Floats
    disk_usd: Floats


def _storage_tag(price: StoragePrice | None) -> PriceTag:
    if price is None:
        return _ZERO_TAG
    return PriceTag(price.usd_per_gib_month, "USD", USD, price.basis, price.source, price.as_of)


def tags_of(tariffs: Tariffs, keys: Sequence[tuple[str, ...]], on: date) -> Tags:
    """Storage and system disks of places.

    Args:
        tariffs: their prices.
        keys: provider and region of each place.
        on: day of the exchange rates.
    """
    storage, disk = [], []
    for provider, region in keys:
        fee, tag = tariffs.system_disk_fee(provider, region), None
        if fee is not None:
            rate = tariffs.usd_per(fee.currency, on)
            tag = PriceTag(fee.price_per_hour, fee.currency, rate.rate, fee.basis, fee.source, fee.as_of)
        disk.append(tag)
        storage.append(_storage_tag(tariffs.storage_price(provider, region, "object")))
    hourly = [0.0 if tag is None else float(tag.unit_price * tag.usd_per_currency) for tag in disk]
    monthly = [float(tag.unit_price) for tag in storage]
    return Tags(tuple(storage), tuple(disk), np.asarray(monthly), np.asarray(hourly))


def curves_of(
    tariffs: Tariffs, location: str | None, keys: Sequence[tuple[str, ...]]
) -> list[tuple[TierCurve | None, TierCurve | None]]:
    """For each place the curves from where the data lie and back; None: unknown."""
    there = _split(location)
    return [
        (tariffs.transfer_curve(*there, provider, region), tariffs.transfer_curve(provider, region, *there))
        for provider, region in keys
    ]


def _split(place: str | None) -> tuple[str, str]:
    provider, _, region = (place or "").partition("/")
    return provider, region
