"""Azure: prices from the public Retail Prices, sizes and quotas from the subscription where there is a login."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from catalogs.providers.azure_client import API_CALLS, LOGIN_HINT, AzureClient, Clients, default_client
from catalogs.providers.azure_retail import OPTIONS, RETAIL_API, RetailPage, in_force, offer_rows
from catalogs.providers.azure_types import (
    PROVIDER,
    SKUS_API,
    Row,
    Size,
    named_types,
    parse_eviction_rates,
    parse_resource_skus,
    parse_usages,
    type_rows,
)
from catalogs.providers.base import (
    CredentialsMissing,
    FetchLog,
    FetchOptions,
    ProviderError,
    ProviderInfo,
    SchemaChanged,
    map_regions,
    text_frame,
)
from catalogs.providers.known_types import known_types
from catalogs.providers.row_reader import RowReader

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["API_CALLS", "AzureProvider", "create"]
QUOTA_COLUMNS = ("provider", "region", "quota", "code", "unit", "limit")


def _today() -> date:
    return datetime.now(UTC).date()


class AzureProvider:
    """Fetches Azure's sizes and prices.

    Without a login the sizes are those of the bundled catalog; prices are public. A login that fails is an
    error, not a reason to fall back: what the subscription may use would be lost unseen.
    """

    info = ProviderInfo(
        name=PROVIDER, needs_credentials=False, purchase_options=frozenset(OPTIONS), login_hint=LOGIN_HINT
    )

    def __init__(
        self, options: FetchOptions, *, client: Clients = default_client, today: Callable[[], date] = _today
    ) -> None:
        """Take settings only; nothing is opened.

        Args:
            options: how to fetch.
            client: makes the SDK's client.
            today: date that the rows get.
        """
        self.options = options
        self.left_aside: dict[str, int] = {}  # reason to number of items that are never a price of ours
        self._client = AzureClient(options, client)
        self._today = today
        self._sizes: dict[str, list[Size]] | None = None
        self._asked: frozenset[str] = frozenset()  # regions of `_sizes`; "" means all
        self._lock = threading.Lock()

    def fetch_regions(self) -> list[str]:
        """Regions with prices: those of the catalog's table, the public list has no other."""
        from catalogs.tables.regions import load_regions

        return sorted(row["region"] for row in load_regions().rows() if row["provider"] == PROVIDER)

    def fetch_instance_types(self, regions: Sequence[str]) -> DataFrame:
        """Sizes with GPUs in `regions` (all where empty), priced or not."""
        return text_frame("instance_types", self._type_rows(regions, self.options.log))

    def fetch_offers(self, regions: Sequence[str], options: AbstractSet[str]) -> DataFrame:
        """Prices in `regions` by the purchase options asked for (all where empty)."""
        chosen = list(regions) or self.fetch_regions()
        types = [row["instance_type"] for row in self._type_rows(regions, FetchLog())]
        pages_of = map_regions(chosen, lambda region: list(self._client.retail_pages(region)), self.options)
        pages = [page for region in chosen for page in pages_of.get(region, ())]
        if not any(page.items for page in pages):
            if len(chosen) > 1:  # a single region may have no GPU size at all
                raise SchemaChanged(
                    "the price list holds nothing for these regions",
                    where="Items",
                    provider=PROVIDER,
                    api=RETAIL_API,
                )
            self.options.log.remark(f"{chosen[0]}: no prices of sizes with GPUs")
        self._tell(pages)
        as_of, log = self._today().isoformat(), self.options.log
        prices = in_force((price for page in pages for price in page.prices), as_of, log)
        sizes = self._seen(regions) or []
        purchase_options = frozenset(options or OPTIONS)
        bands = self._eviction_rates() if "spot" in purchase_options and sizes else {}
        return text_frame("offers", offer_rows(prices, types, sizes, purchase_options, as_of, log, bands))

    def fetch_quotas(self, regions: Sequence[str]) -> DataFrame:
        """Quotas of vCPUs per region.

        Raises:
            CredentialsMissing: when there is no login.
        """
        import pandas as pd

        self._client.login()
        chosen = list(regions) or self.fetch_regions()
        rows_of = map_regions(
            chosen,
            lambda region: parse_usages(region, self._client.usages(region), self.options.log),
            self.options,
        )
        rows: list[Row] = [row for region in rows_of for row in rows_of[region]]
        return pd.DataFrame({name: [row[name] for row in rows] for name in QUOTA_COLUMNS}, dtype=object)

    def _type_rows(self, regions: Sequence[str], log: FetchLog) -> list[Row]:
        sizes = self._seen(regions)
        if sizes is None:
            recorded = known_types(PROVIDER)
            more = [row for row in named_types() if row["instance_type"] not in recorded]
            return [dict(row) for row in (*recorded.values(), *more)]
        return type_rows(sizes, self._today().isoformat(), log)

    def _seen(self, regions: Sequence[str]) -> list[Size] | None:
        """Sizes that the subscription sees, asked for once; None without a login."""
        with self._lock:
            covered = "" in self._asked or (regions and self._asked.issuperset(regions))
            if self._sizes is None or not covered:
                try:
                    self._client.login()
                except CredentialsMissing as error:
                    self.options.log.remark(
                        f"{error.message}: sizes as in the bundled catalog, public prices"
                    )
                    return None
                self._sizes = self._fetch_sizes(list(regions))
                self._asked = frozenset(regions) or frozenset({""})
            sizes = self._sizes
        return [size for region, group in sizes.items() if not regions or region in regions for size in group]

    def _fetch_sizes(self, regions: list[str]) -> dict[str, list[Size]]:
        """Sizes per region; one call for all regions, or one per region where few are asked for."""
        if not regions or len(regions) > self.options.max_workers:
            sizes: dict[str, list[Size]] = {}
            for size in self._read_sizes(""):
                if not regions or size.region in regions:
                    sizes.setdefault(size.region, []).append(size)
        else:
            sizes = map_regions(regions, self._read_sizes, self.options)
        if not any(sizes.values()):
            raise SchemaChanged(
                "no size with GPUs in these regions",
                where="capabilities.GPUs",
                provider=PROVIDER,
                api=SKUS_API,
            )
        return sizes

    def _read_sizes(self, region: str) -> list[Size]:
        place = {"provider": PROVIDER, "region": region, "api": SKUS_API}
        reader = RowReader("instance_type", self.options.log, place)
        sizes = [
            size for page in self._client.resource_skus(region) for size in parse_resource_skus(page, reader)
        ]
        reader.require_some()
        return sizes

    def _eviction_rates(self) -> dict[tuple[str, str], str]:
        """Eviction bands; spot prices stay without them, so a failure is only remarked."""
        try:
            return parse_eviction_rates(self._client.eviction_rates(), self.options.log)
        except ProviderError as error:
            self.options.log.remark(f"eviction rates left out: {error}")
            return {}

    def _tell(self, pages: Sequence[RetailPage]) -> None:
        aside: dict[str, int] = {}
        for page in pages:
            for reason, number in page.left_aside.items():
                aside[reason] = aside.get(reason, 0) + number
            for name, reason in page.odd:
                self.options.log.skip("price", name, reason)
        self.left_aside = aside
        n_items = sum(page.items for page in pages)
        if n_items and sum(page.n_refused for page in pages) == n_items:
            raise SchemaChanged(
                f"not one of {n_items} prices can be read, first: {': '.join(pages[0].odd[0])}",
                where="Items",
                provider=PROVIDER,
                api=RETAIL_API,
            )


def create(options: FetchOptions) -> AzureProvider:
    """Make the provider; see catalogs.providers.registry."""
    return AzureProvider(options)
