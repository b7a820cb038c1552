"""Tariffs beside the instance prices: transfer, storage, purchase rules, quotas, interruptions, currencies.

`load_tariffs()` is cheap: each table is read from `catalogs/data/tariffs` on first use, with the csv module
only. All provider knowledge stands in those tables; nothing here asks which provider it is. Unknown is
`None`, never zero.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import cache, cached_property
from pathlib import Path

from catalogs.tariffs.fx import FxRate, FxTable
from catalogs.tariffs.priors import InterruptionPrior, PriorTable
from catalogs.tariffs.rules import OptionRule, OptionTable, QuotaRule, QuotaTable
from catalogs.tariffs.services import Figure, ServiceTable, StorageService
from catalogs.tariffs.storage import StorageFee, StoragePrice, StorageTable
from catalogs.tariffs.transfer import TierCurve, TransferTable

__all__ = [
    "Figure", "FxRate", "InterruptionPrior", "OptionRule", "QuotaRule", "StorageFee", "StoragePrice",
    "StorageService", "Tariffs", "TierCurve", "load_tariffs", "usd_per",
]  # fmt: skip

DATA_DIRECTORY = Path(__file__).parent.parent / "data" / "tariffs"


class Tariffs:
    """Lookups over the tariff tables of one directory; tables are read lazily, answers are cached."""

    def __init__(self, directory: Path) -> None:
        """Remember `directory`; nothing is read yet."""
        self.directory = directory
        self._curves: dict[tuple[str, ...], TierCurve | None] = {}
        self._places: dict[tuple[str, str], tuple[StorageService, ...]] = {}

    @cached_property
    def _transfer(self) -> TransferTable:
        return TransferTable.read(self.directory)

    @cached_property
    def _dearest(self) -> TierCurve:
        return self._transfer.dearest()

    @cached_property
    def _storage(self) -> StorageTable:
        return StorageTable.read(self.directory)

    @cached_property
    def _services(self) -> ServiceTable:
        return ServiceTable.read(self.directory)

    @cached_property
    def _options(self) -> OptionTable:
        return OptionTable.read(self.directory)

    @cached_property
    def _quotas(self) -> QuotaTable:
        return QuotaTable.read(self.directory)

    @cached_property
    def _priors(self) -> PriorTable:
        return PriorTable.read(self.directory)

    @cached_property
    def _fx(self) -> FxTable:
        return FxTable.read(self.directory)

    def transfer_curve(
        self,
        src_provider: str | None,
        src_region: str | None,
        dst_provider: str | None,
        dst_region: str | None,
    ) -> TierCurve | None:
        """What the source's provider charges for data leaving `src` towards `dst`.

        Args:
            src_provider: provider the data lies with; None, "" or `onprem` for the user's own site.
            src_region: its region; None or "" when not known.
            dst_provider: provider the data goes to; None, "" or `onprem` for the user's own site.
            dst_region: its region.

        Returns:
            The month's tier curve, or None when the price is not known. Same region: a zero curve with its
            source.
        """
        key = (src_provider or "", src_region or "", dst_provider or "", dst_region or "")
        if key not in self._curves:
            self._curves[key] = self._transfer.curve(*key)
        return self._curves[key]

    def dearest_internet_curve(self) -> TierCurve:
        """The dearest internet price known, flat: a pessimistic default for an unknown one."""
        return self._dearest

    def storage_price(self, provider: str, region: str, kind: str = "object") -> StoragePrice | None:
        """USD per GiB-month of `kind` (`object` or `system_disk`) storage.

        Returns:
            The region's own first-tier list price; else the provider's reference region's, else the dearest
            one known of any provider, both with basis `derived`. None for a kind that no provider has a price
            for.
        """
        return self._storage.price(provider, region, kind)

    def storage_services(self, provider: str, region: str) -> tuple[StorageService, ...]:
        """Services that machines of the region can read data from, with prices and limits.

        Returns:
            Object, block and file systems of the provider; a figure is the region's own, else the reference region's
            (`derived`); what is not known is left out. Empty for a provider without any.
        """
        key = (provider, region)
        if key not in self._places:
            self._places[key] = self._services.services(provider, region)
        return self._places[key]

    @cached_property
    def storage_figures(self) -> dict[str, Figure]:
        """Figures of storage that hold everywhere: the rate of local NVMe per TB, the usable share of a file system."""
        return self._services.anywhere()

    @cached_property
    def dearest_reads(self) -> Figure | None:
        """USD per 1,000 read requests, the dearest known: used where a provider's price is unknown."""
        return self._services.dearest_reads()

    def system_disk_fee(self, provider: str, region: str) -> StorageFee | None:
        """The hourly fee of the default system disk where the provider bills it beside the instance price."""
        return self._storage.disk_fee(provider, region)

    def option_rule(self, provider: str, purchase_option: str, option_variant: str = "") -> OptionRule:
        """How a purchase option is billed; without a known rule the cautious default, marked `assumed`."""
        return self._options.rule(provider, purchase_option, option_variant)

    def quota_rule(
        self, provider: str, family: str, accelerator: str, purchase_option: str
    ) -> QuotaRule | None:
        """The quota that instances of `family` and `accelerator` count against; None when it is not known."""
        return self._quotas.rule(provider, family, accelerator, purchase_option)

    def unapplied_quota(self, provider: str, name: str) -> str | None:
        """Name and scope of a quota that the provider has but that no offer is counted against; None for others."""
        return self._quotas.unapplied(provider, name)

    def usd_per(self, currency: str, on: date | None = None) -> FxRate:
        """USD per unit of `currency`: the latest rate not after `on` (None: the newest).

        Raises:
            CatalogInputError: the currency has no rate.
        """
        return self._fx.rate(currency, on)

    def interruption_prior(
        self, provider: str, family: str, accelerator: str, band: str
    ) -> InterruptionPrior:
        """Spot interruptions of one node, best evidence first: traces, published band, pessimistic prior."""
        return self._priors.prior(provider, family, accelerator, band)


def load_tariffs(directory: Path | None = None) -> Tariffs:
    """Return the bundled tariffs, or those of `directory`; no file is read before the first lookup.

    The bundled tables are part of the program: a process reads each once, however many questions it is asked.
    """
    return _bundled() if directory is None else Tariffs(directory)


@cache
def _bundled() -> Tariffs:
    return Tariffs(DATA_DIRECTORY)


def usd_per(currency: str) -> Decimal:
    """USD for one unit of `currency` at the newest rate of the dated table; 1 for USD."""
    return Decimal(1) if currency == "USD" else load_tariffs().usd_per(currency).rate
