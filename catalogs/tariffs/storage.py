"""Storage prices per GiB-month and hourly system disk fees."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from catalogs.patterns import matches
from catalogs.tariffs.read import Row, read_rows

_COLUMNS = (
    "provider", "region", "service", "role", "measure", "value", "currency", "tier_from_gib", "reference", "use",
    "confidence", "note", "source", "as_of",
)  # fmt: skip
HOURS_PER_MONTH = Decimal(730)


@dataclass(frozen=True)
class StoragePrice:
    """Price of keeping one GiB for a month; `basis` is `list`, or `derived` when taken from elsewhere."""

    provider: str
    region: str
    service: str
    usd_per_gib_month: Decimal
    basis: str
    confidence: str
    source: str
    as_of: str
    note: str

    def cost_usd(self, gib: Decimal, hours: Decimal) -> Decimal:
        """USD for keeping `gib` for `hours`; a month is 730 h, as the price lists convert it."""
        return gib * hours * self.usd_per_gib_month / HOURS_PER_MONTH


@dataclass(frozen=True)
class StorageFee:
    """An hourly fee per instance for its default system disk, in the provider's currency."""

    price_per_hour: Decimal
    currency: str
    basis: str
    source: str
    as_of: str
    note: str


class StorageTable:
    """The usable rows of storage.csv."""

    def __init__(self, rows: list[Row]) -> None:
        """Take rows with `use = yes`."""
        # The first tier only: larger stores get cheaper, so this never understates.
        first = [row for row in rows if row["tier_from_gib"] in ("", "0")]
        self._rows: dict[tuple[str, str], list[Row]] = {}
        self._mine: dict[tuple[str, str, str], list[Row]] = {}
        for row in first:
            self._rows.setdefault((row["role"], row["measure"]), []).append(row)
            self._mine.setdefault((row["role"], row["measure"], row["provider"]), []).append(row)

    @classmethod
    def read(cls, directory: Path) -> StorageTable:
        """Read storage.csv."""
        return cls([row for row in read_rows(directory / "storage.csv", _COLUMNS) if row["use"] == "yes"])

    def price(self, provider: str, region: str, kind: str) -> StoragePrice | None:
        """See `Tariffs.storage_price`."""
        mine = self._mine.get((kind, "usd_per_gib_month", provider), [])
        for row in mine:
            if row["region"] != "*" and matches(row["region"], region):
                return _price(row, "list", provider, region, row["note"])
        for row in mine:
            if row["reference"] == "yes":
                place = "the provider's worked example" if row["region"] == "*" else f"region {row['region']}"
                note = f"price of {place}; the region's own price is not known"
                return _price(row, "derived", provider, region, note)
        rows = self._rows.get((kind, "usd_per_gib_month"))
        if not rows:
            return None
        dearest = max(rows, key=lambda row: Decimal(row["value"]))
        note = (
            f"no storage tariff of {provider or 'this provider'} is known: the highest known one is assumed "
            f"({dearest['provider']} {dearest['service']} {dearest['region']})"
        )
        return _price(dearest, "derived", provider, region, note)

    def disk_fee(self, provider: str, region: str) -> StorageFee | None:
        """See `Tariffs.system_disk_fee`."""
        rows = self._mine.get(("system_disk", "per_instance_hour", provider), [])
        for row in sorted(rows, key=lambda row: not matches(row["region"], region)):
            is_own = matches(row["region"], region)
            if is_own or row["reference"] == "yes":
                note = (
                    row["note"]
                    if is_own
                    else f"fee of {row['region']}; the region's own is not known; {row['note']}"
                )
                basis = "list" if is_own else "derived"
                return StorageFee(
                    Decimal(row["value"]), row["currency"], basis, row["source"], row["as_of"], note
                )
        return None


def _price(row: Row, basis: str, provider: str, region: str, note: str) -> StoragePrice:
    return StoragePrice(
        provider=provider,
        region=region,
        service=row["service"],
        usd_per_gib_month=Decimal(row["value"]),
        basis=basis,
        confidence=row["confidence"],
        source=row["source"],
        as_of=row["as_of"],
        note=note,
    )
