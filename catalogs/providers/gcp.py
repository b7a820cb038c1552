"""Google Cloud: machines from the Compute API, prices composed from the Cloud Billing Catalog."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from catalogs.providers.base import (
    FetchLog,
    FetchOptions,
    ProviderInfo,
    SchemaChanged,
    map_regions,
    text_frame,
)
from catalogs.providers.gcp_client import API_CALLS, LOGIN_HINT, GcpClient, Login, default_login
from catalogs.providers.gcp_prices import (
    OPTIONS,
    Reconciliation,
    bundled_machines,
    flag_offers,
    price_machines,
)
from catalogs.providers.gcp_skus import BILLING_API, PROVIDER, RateBook, build_rate_book
from catalogs.providers.gcp_types import Machine, Row, attach_accelerators, parse_quotas, type_rows
from catalogs.providers.known_types import known_types

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["API_CALLS", "GcpProvider", "create"]
QUOTA_COLUMNS = ("provider", "region", "quota", "code", "unit", "limit")


def _today() -> date:
    return datetime.now(UTC).date()


class GcpProvider:
    """Fetches Google Cloud's machines and prices; asks for each list once per object."""

    info = ProviderInfo(
        name=PROVIDER, needs_credentials=True, purchase_options=frozenset(OPTIONS), login_hint=LOGIN_HINT
    )

    def __init__(
        self,
        options: FetchOptions,
        *,
        login: Callable[[], Login] = default_login,
        today: Callable[[], date] = _today,
    ) -> None:
        """Take settings only; nothing is opened.

        Args:
            options: how to fetch.
            login: gives credentials and project.
            today: date that the rows get.
        """
        self.options = options
        self.reconciliation: Reconciliation | None = None
        self._client = GcpClient(options, login)
        self._today = today
        self._machines: list[Machine] | None = None
        self._book: RateBook | None = None
        self._lock = threading.Lock()

    def fetch_regions(self) -> list[str]:
        """Regions of the project that are up; with an API key alone those of the bundled catalog."""
        if self._is_price_only():
            return sorted({machine.region for machine in bundled_machines()})
        return self._client.regions()

    def fetch_instance_types(self, regions: Sequence[str]) -> DataFrame:
        """Machine types with accelerators in `regions` (all where empty), priced or not."""
        return text_frame("instance_types", self._type_rows(self._in(regions)))

    def fetch_offers(self, regions: Sequence[str], options: AbstractSet[str]) -> DataFrame:
        """Prices in `regions` by the purchase options asked for (all where empty).

        What did not come out is in `reconciliation`; the GPU-related SKUs that no rule understood are told to
        the log too.
        """
        machines = self._in(regions)
        described = {row["instance_type"] for row in self._type_rows(machines, quiet=True)}
        book = self._rates()
        purchase_options = frozenset(options or OPTIONS) & frozenset(OPTIONS)
        rows, reconciliation = price_machines(
            [machine for machine in machines if machine.name in described],
            book,
            purchase_options | {"on_demand"},
            self._today().isoformat(),
        )
        retired = {machine.name for machine in machines if machine.retired}
        rows = [row for row in flag_offers(rows, retired) if row["purchase_option"] in purchase_options]
        self._report(reconciliation, purchase_options)
        return text_frame("offers", rows)

    def fetch_quotas(self, regions: Sequence[str]) -> DataFrame:
        """GPU and vCPU quotas per region, for the regions asked for (all where empty)."""
        import pandas as pd

        chosen = list(regions) or self.fetch_regions()
        rows_of = map_regions(
            chosen,
            lambda region: parse_quotas(region, self._client.quotas(region), self.options.log),
            self.options,
        )
        rows: list[Row] = [row for region in rows_of for row in rows_of[region]]
        return pd.DataFrame({name: [row[name] for row in rows] for name in QUOTA_COLUMNS}, dtype=object)

    def _in(self, regions: Sequence[str]) -> list[Machine]:
        with self._lock:
            if self._machines is None and self._is_price_only():
                self._machines = bundled_machines()
                self.options.log.remark(
                    "an API key alone reads prices only; machines and zones as in the bundled catalog"
                )
            elif self._machines is None:
                accelerated, hosts = self._client.machines()
                attached = attach_accelerators(hosts, self._client.accelerators())
                self._machines = [*accelerated, *attached]
            machines = self._machines
        return [machine for machine in machines if not regions or machine.region in regions]

    def _is_price_only(self) -> bool:
        return self._client.login().credentials is None

    def _rates(self) -> RateBook:
        with self._lock:
            if self._book is None:
                skus = []
                for page in self._client.skus():
                    skus += page
                    self.options.log.progress("", BILLING_API, len(page))
                book = build_rate_book(skus)
                if not book.understood:
                    raise SchemaChanged(
                        f"none of {len(skus)} SKUs is understood; update the planner",
                        where="skus",
                        provider=PROVIDER,
                        api=BILLING_API,
                    )
                self._book = book
            return self._book

    def _type_rows(self, machines: Sequence[Machine], *, quiet: bool = False) -> list[Row]:
        if self._is_price_only():
            return [
                dict(known_types(PROVIDER)[name]) for name in sorted({machine.name for machine in machines})
            ]
        return type_rows(machines, self._today().isoformat(), FetchLog() if quiet else self.options.log)

    def _report(self, reconciliation: Reconciliation, options: AbstractSet[str]) -> None:
        self.reconciliation = reconciliation
        log = self.options.log
        for note in reconciliation.skus:
            log.skip("sku", f"{note.sku_id} {note.description}", note.reason)
        for item in reconciliation.machines:
            if item.option in options or item.option == "any option":
                log.skip(
                    "price",
                    f"{item.instance_type} in {item.region} by {item.option}",
                    ", ".join(item.missing),
                )


def create(options: FetchOptions) -> GcpProvider:
    """Make the provider; see catalogs.providers.registry."""
    return GcpProvider(options)
