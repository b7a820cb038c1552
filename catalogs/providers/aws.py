"""AWS: machines and prices from the account's own interfaces, or without an account from the public lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from catalogs.providers import aws_ec2 as ec2
from catalogs.providers import aws_quotas as quotas
from catalogs.providers.aws_account import OPTIONS, AwsAccount
from catalogs.providers.aws_client import API_CALLS, LOGIN_HINT, AwsClients
from catalogs.providers.aws_public import PublicLists, is_commercial
from catalogs.providers.aws_rows import PROVIDER, Row
from catalogs.providers.base import (
    CredentialsMissing,
    FetchOptions,
    ProviderError,
    ProviderInfo,
    map_regions,
    text_frame,
)
from catalogs.tables.model import OFFER_KEY, offer_id

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["API_CALLS", "AwsProvider", "create"]


class AwsProvider:
    """Fetches from AWS; makes no call and imports no SDK before the first fetch."""

    info = ProviderInfo(PROVIDER, False, OPTIONS, "", LOGIN_HINT)

    def __init__(
        self,
        options: FetchOptions,
        clients: AwsClients | None = None,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        """Take settings only.

        Args:
            options: regions, time-outs, retries and the log.
            clients: SDK clients, for tests.
            now: clock, for tests.
        """
        self.options = options
        self.log = options.log
        self.clients = clients or AwsClients(options)
        self._now = now or (lambda: datetime.now(UTC))
        self._public = PublicLists(options, lambda: self._today)
        self._account = AwsAccount(options, self.clients, self._public, self._now)
        self._logged_in: bool | None = None

    @property
    def _today(self) -> str:
        return self._now().date().isoformat()

    def fetch_regions(self) -> list[str]:
        """Regions of the commercial partition that the account may use.

        Raises:
            ProviderError: when they cannot be read.
        """
        if not self._has_account():
            return self._public.regions()
        regions = {name: usable for name, usable in self._account.regions().items() if is_commercial(name)}
        closed = sorted(name for name, usable in regions.items() if not usable)
        if closed:
            self.log.remark(f"left out, the account has not opted in: {', '.join(closed)}")
        return sorted(name for name, usable in regions.items() if usable)

    def fetch_instance_types(self, regions: Sequence[str]) -> DataFrame:
        """Machines with accelerators of `regions`, each once.

        Without an account these are the machines this package knows; the public lists do not describe them.

        Raises:
            ProviderError: when no region could be read.
        """
        if not self._has_account():
            self._say_public()
            return text_frame("instance_types", self._public.types())
        described = self._account.describe(self._usable(regions))
        rows = ec2.merge_types(described[region].types for region in sorted(described))
        for row in rows:
            if not ec2.is_known(row):
                reason = "an accelerator without a canonical id; add it to catalogs/data/aliases/aws.csv"
                self.log.skip("accelerator", f"{row['accelerator']} of {row['instance_type']}", reason)
        return text_frame("instance_types", [row for row in rows if ec2.is_known(row)])

    def fetch_offers(self, regions: Sequence[str], options: AbstractSet[str]) -> DataFrame:
        """Prices of the machines of `regions`.

        Raises:
            ProviderError: when nothing at all could be read.
        """
        purchase_options = {str(option) for option in options} & OPTIONS
        if not self._has_account():
            self._say_public()
            rows = self._public.offers(
                regions, purchase_options, {row["instance_type"] for row in self._public.types()}
            )
        else:
            rows = self._account.offers(self._usable(regions), purchase_options)
        return text_frame("offers", self._unique(rows))

    def fetch_quotas(self, regions: Sequence[str]) -> DataFrame:
        """The account's vCPU quotas per family: provider, region, quota, code, unit, limit.

        Raises:
            ProviderError: when no region could be read.
        """
        import pandas as pd

        if not self._has_account():
            raise CredentialsMissing(
                f"quotas are the account's own; {LOGIN_HINT}", provider=PROVIDER, api=quotas.API
            )
        answers = map_regions(self._usable(regions), self._account.quotas, self.options)
        rows = [row for region in sorted(answers) for row in answers[region]]
        return pd.DataFrame({name: [row[name] for row in rows] for name in quotas.COLUMNS}, dtype=object)

    def _has_account(self) -> bool:
        if self._logged_in is None:
            self._logged_in = self.clients.has_credentials()
        return self._logged_in

    def _say_public(self) -> None:
        self.log.remark(
            f"no AWS credentials: prices from the public lists, spot derived from advised savings; {LOGIN_HINT}"
        )

    def _usable(self, regions: Sequence[str]) -> list[str]:
        """Regions asked for (all where none is), without those that the account has not opted in to."""
        is_usable = self._account.regions()
        usable = []
        for region in regions or self.fetch_regions():
            if is_usable.get(region):
                usable.append(region)
                continue
            reason = "has not opted in to this region" if region in is_usable else "does not know this region"
            self.log.failed(
                ProviderError(
                    f"the account {reason}; skipped", provider=PROVIDER, region=region, api=ec2.REGIONS
                )
            )
        if not usable:
            raise ProviderError(
                "none of the requested regions can be used", provider=PROVIDER, api=ec2.REGIONS
            )
        return usable

    def _unique(self, rows: Iterable[Row]) -> list[Row]:
        """Each offer once, sorted; of two prices the dearer stays and the other is reported."""
        offers: dict[tuple[str, ...], Row] = {}
        for row in rows:
            key = tuple(row[name] for name in OFFER_KEY)
            earlier = offers.setdefault(key, row)
            if earlier["price_per_hour"] == row["price_per_hour"]:
                continue
            low, high = sorted((earlier, row), key=lambda one: Decimal(one["price_per_hour"]))
            offers[key] = high
            self.log.skip(
                "offer", offer_id(key), f"a second price, {low['price_per_hour']}: the higher one is kept"
            )
        return [offers[key] for key in sorted(offers)]


def create(options: FetchOptions) -> AwsProvider:
    """Make the provider."""
    return AwsProvider(options)
