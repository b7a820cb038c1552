"""AWS: machines and prices from the account's own interfaces, or without an account from the public lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from catalogs.model import OFFER_KEY, PurchaseOption, offer_id
from catalogs.providers import aws_commitments as commitments
from catalogs.providers import aws_ec2 as ec2
from catalogs.providers import aws_pricing as pricing
from catalogs.providers import aws_quotas as quotas
from catalogs.providers import aws_spot as spot
from catalogs.providers.aws_client import API_CALLS, HOME_REGION, LOGIN_HINT, AwsClients, NotSoldHere
from catalogs.providers.aws_public import PublicLists, is_commercial
from catalogs.providers.aws_rows import PROVIDER, Row, changed
from catalogs.providers.base import (
    CredentialsMissing,
    FetchOptions,
    PermissionDenied,
    ProviderError,
    ProviderInfo,
    map_regions,
    text_frame,
)

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["API_CALLS", "AwsProvider", "create"]
Result = TypeVar("Result")
_LISTED = frozenset({"on_demand", "reserved_1y", "reserved_3y"})
_SAVINGS = frozenset({"savings_plan_1y", "savings_plan_3y"})
OPTIONS = _LISTED | _SAVINGS | {"spot", "capacity_block"}
# Names of machines with accelerators; a filter of the interface itself does not exist.
_ACCELERATED = ("dl*", "f*", "g*", "inf*", "p*", "trn*")
_SPOT_TYPES_PER_CALL = 100
_BLOCK_HOURS = 24


@dataclass
class _Region:
    """What one region sells: rows of its machines, those sold as Capacity Blocks, where each is offered."""

    types: list[Row]
    blocks: set[str]
    zones: dict[str, str] = field(default_factory=dict)
    offered: set[str] | None = None


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
        self._regions: dict[str, bool] | None = None
        self._known: dict[str, _Region] = {}
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
        usable = [name for name, open_ in self._all_regions().items() if open_ and is_commercial(name)]
        return sorted(usable)

    def fetch_instance_types(self, regions: Sequence[str]) -> DataFrame:
        """Machines with accelerators of `regions`, each once.

        Without an account these are the machines this package knows; the public lists do not describe them.

        Raises:
            ProviderError: when no region could be read.
        """
        if not self._has_account():
            self._say_public()
            return text_frame("instance_types", self._public.types())
        known = self._describe(self._usable(regions))
        rows = ec2.merge_types(known[region].types for region in sorted(known))
        for row in rows:
            if not ec2.is_known(row):
                reason = "an accelerator without a canonical id; add it to catalogs/data/aliases/aws.csv"
                self.log.skip("accelerator", f"{row['accelerator']} of {row['instance_type']}", reason)
        return text_frame("instance_types", rows)

    def fetch_offers(self, regions: Sequence[str], options: AbstractSet[str]) -> DataFrame:
        """Prices of the machines of `regions`.

        Raises:
            ProviderError: when nothing at all could be read.
        """
        wanted = {str(option) for option in options} & OPTIONS
        if not self._has_account():
            self._say_public()
            rows = self._public.offers(
                regions, wanted, {row["instance_type"] for row in self._public.types()}
            )
        else:
            rows = self._account_offers(self._usable(regions), wanted)
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
        answers = map_regions(self._usable(regions), self._quotas, self.options)
        rows = [row for region in sorted(answers) for row in answers[region]]
        return pd.DataFrame({name: [row[name] for row in rows] for name in quotas.COLUMNS}, dtype=object)

    # --- regions -------------------------------------------------------------------------------------------

    def _has_account(self) -> bool:
        if self._logged_in is None:
            self._logged_in = self.clients.has_credentials()
        return self._logged_in

    def _say_public(self) -> None:
        self.log.remark(
            f"no AWS credentials: prices from the public lists, spot derived from advised savings; {LOGIN_HINT}"
        )

    def _all_regions(self) -> dict[str, bool]:
        if self._regions is None:
            found: dict[str, bool] = {}
            for page in self.clients.pages("ec2", "describe_regions", HOME_REGION, AllRegions=True):
                found |= ec2.parse_regions(page)
            self._regions = found
        return self._regions

    def _usable(self, regions: Sequence[str]) -> list[str]:
        """Regions asked for (all where none is), without those that the account has not opted in to."""
        known = self._all_regions()
        usable = []
        for region in regions or self.fetch_regions():
            if known.get(region):
                usable.append(region)
                continue
            reason = "has not opted in to this region" if region in known else "does not know this region"
            self.log.failed(
                ProviderError(
                    f"the account {reason}; skipped", provider=PROVIDER, region=region, api=ec2.REGIONS
                )
            )
        if not usable:
            raise ProviderError(
                "none of the regions asked for can be used", provider=PROVIDER, api=ec2.REGIONS
            )
        return usable

    # --- machines ------------------------------------------------------------------------------------------

    def _describe(self, regions: Sequence[str]) -> dict[str, _Region]:
        missing = [region for region in regions if region not in self._known]
        if missing:
            self._known |= map_regions(missing, self._describe_region, self.options)
        return {region: self._known[region] for region in regions if region in self._known}

    def _describe_region(self, region: str) -> _Region:
        filters = (
            [{"Name": "instance-type", "Values": list(_ACCELERATED)}] if self.options.accelerated_only else []
        )
        found = _Region([], set())
        for page in self.clients.pages("ec2", "describe_instance_types", region, Filters=filters):
            rows = ec2.parse_instance_types(page, self._today, region)
            found.types += rows
            found.blocks |= ec2.block_types(page, region)
            self.log.progress(region, ec2.TYPES, len(rows))
        if not found.types:
            raise changed(ec2.TYPES, "InstanceTypes (no machine with an accelerator)", region)
        names = {row["instance_type"] for row in found.types}
        found.blocks &= {row["instance_type"] for row in found.types if ec2.is_known(row)}
        found.offered = self._try(lambda: self._offered(region, names), None)
        return found

    def _offered(self, region: str, names: set[str]) -> set[str]:
        filters = (
            [{"Name": "instance-type", "Values": list(_ACCELERATED)}] if self.options.accelerated_only else []
        )
        pairs: set[tuple[str, str]] = set()
        for page in self.clients.pages(
            "ec2",
            "describe_instance_type_offerings",
            region,
            LocationType="availability-zone-id",
            Filters=filters,
        ):
            pairs |= ec2.parse_offerings(page, region)
        return {name for name, _ in pairs} & names

    # --- offers --------------------------------------------------------------------------------------------

    def _account_offers(self, regions: Sequence[str], wanted: set[str]) -> list[Row]:
        known = self._describe(regions)
        found = ec2.merge_types(region.types for region in known.values())
        names = [row["instance_type"] for row in found if ec2.is_known(row)]
        listed = self._listed(sorted(known), names, wanted & _LISTED)
        advice = self._public.advice(sorted(known)) if "spot" in wanted else {}
        hourly = {
            (row["region"], row["instance_type"]): Decimal(row["price_per_hour"])
            for row in listed
            if row["purchase_option"] == PurchaseOption.ON_DEMAND.value
        }

        def fetch(region: str) -> list[Row]:
            rows: list[Row] = []
            if wanted & _SAVINGS:
                rows += self._try(lambda: self._savings(region, names, wanted), [])
            if wanted & {"spot", "capacity_block"}:
                known[region].zones = self._try(lambda: self._zones(region), {})
            if "spot" in wanted:
                rows += self._try(lambda: self._spot(region, known[region], advice, hourly), [])
            if "capacity_block" in wanted:
                rows += self._try(lambda: self._blocks(region, known[region]), [])
            return rows

        failures = len(self.log.failures)
        answers = map_regions(sorted(known), fetch, self.options)
        rows = _mark_unoffered(listed + [row for region in sorted(answers) for row in answers[region]], known)
        if not rows and len(self.log.failures) > failures:
            raise self.log.failures[failures]
        return rows

    def _try(self, fetch: Callable[[], Result], otherwise: Result) -> Result:
        """What `fetch` gives; when one interface fails in one region, that is recorded and the rest goes on."""
        try:
            return fetch()
        except NotSoldHere:
            return otherwise
        except CredentialsMissing:
            raise
        except ProviderError as error:
            self.log.failed(error)
            return otherwise

    def _listed(self, regions: Sequence[str], names: Sequence[str], options: set[str]) -> list[Row]:
        """On-demand and reserved prices, by type: one answer holds all regions."""
        if not options:
            return []

        def fetch(name: str) -> list[Row]:
            rows: list[Row] = []
            pages = self.clients.pages(
                "pricing",
                "get_products",
                HOME_REGION,
                ServiceCode="AmazonEC2",
                FormatVersion="aws_v1",
                Filters=pricing.filters(instanceType=name),
                MaxResults=100,
            )
            for page in pages:
                rows += pricing.parse_price_list(page, self._today, regions, options)
            self.log.progress("", pricing.API, len(rows))
            return rows

        try:
            rows = [row for answer in self._all(names, fetch) for row in answer]
            if names and not rows:  # an answer that is empty for all machines is no answer
                raise changed(pricing.API, "PriceList (empty for every instance type)")
            return rows
        except PermissionDenied as error:
            self.log.remark(f"{error.message}; on-demand and reserved prices come from the public price list")
            return self._public.listed(regions, options, set(names))

    def _all(self, names: Sequence[str], fetch: Callable[[str], list[Row]]) -> list[list[Row]]:
        """Call `fetch` for each name, some at a time; the first failure ends it."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max_workers=max(1, self.options.max_workers)) as pool:
            jobs = [pool.submit(fetch, name) for name in names]
            try:
                return [job.result() for job in jobs]
            except ProviderError:
                for job in jobs:
                    job.cancel()
                raise

    def _savings(self, region: str, names: Sequence[str], options: set[str]) -> list[Row]:
        rows: list[Row] = []
        query = commitments.savings_query(region)
        pages = self.clients.pages(
            "savingsplans", "describe_savings_plans_offering_rates", HOME_REGION, **query, maxResults=1000
        )
        for page in pages:
            rows += commitments.parse_savings_rates(page, region, self._today, set(names), options)
        self.log.progress(region, commitments.SAVINGS_API, len(rows))
        return rows

    def _zones(self, region: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for page in self.clients.pages(
            "ec2", "describe_availability_zones", region, AllAvailabilityZones=True
        ):
            found |= ec2.parse_zones(page, region)
        return found

    def _spot(
        self,
        region: str,
        known: _Region,
        advice: Mapping[tuple[str, str], spot.Advice],
        hourly: Mapping[tuple[str, str], Decimal],
    ) -> list[Row]:
        now = self._now()
        names = sorted({row["instance_type"] for row in known.types if ec2.is_known(row)})
        quotes: list[spot.Quote] = []
        for start in range(0, len(names), _SPOT_TYPES_PER_CALL):  # without types the answer is all history
            pages = self.clients.pages(
                "ec2",
                "describe_spot_price_history",
                region,
                InstanceTypes=names[start : start + _SPOT_TYPES_PER_CALL],
                ProductDescriptions=[spot.PRODUCT],
                StartTime=now - spot.WINDOW,
                EndTime=now,
                MaxResults=1000,
            )
            for page in pages:
                quotes += spot.parse_spot_history(page, known.zones, region)
        rows = spot.spot_rows(quotes, region, now, advice, hourly)
        self.log.progress(region, spot.API, len(rows))
        return rows

    def _blocks(self, region: str, known: _Region) -> list[Row]:
        rows: list[Row] = []
        for name in sorted(known.blocks):
            rows += self._try(partial(self._blocks_of, region, name, known), [])
        self.log.progress(region, commitments.BLOCK_API, len(rows))
        return commitments.cheapest(rows)

    def _blocks_of(self, region: str, name: str, known: _Region) -> list[Row]:
        pages = self.clients.pages(
            "ec2",
            "describe_capacity_block_offerings",
            region,
            InstanceType=name,
            InstanceCount=1,
            CapacityDurationHours=_BLOCK_HOURS,
            StartDateRange=self._now(),
        )
        return [
            row for page in pages for row in commitments.parse_blocks(page, known.zones, region, self._today)
        ]

    def _quotas(self, region: str) -> list[Row]:
        pages = self.clients.pages(
            "service-quotas", "list_service_quotas", region, ServiceCode=quotas.SERVICE, MaxResults=100
        )
        return [row for page in pages for row in quotas.parse_quotas(page, region)]

    def _unique(self, rows: Iterable[Row]) -> list[Row]:
        """Each offer once, sorted; of two prices the dearer stays and the other is reported."""
        found: dict[tuple[str, ...], Row] = {}
        for row in rows:
            key = tuple(row[name] for name in OFFER_KEY)
            known = found.setdefault(key, row)
            if known["price_per_hour"] == row["price_per_hour"]:
                continue
            low, high = sorted((known, row), key=lambda one: Decimal(one["price_per_hour"]))
            found[key] = high
            self.log.skip(
                "offer", offer_id(key), f"a second price, {low['price_per_hour']}: the dearer is kept"
            )
        return [found[key] for key in sorted(found)]


def _mark_unoffered(rows: list[Row], known: Mapping[str, _Region]) -> list[Row]:
    """Say that none can be had of a type that has a list price where the account is not offered it."""
    for row in rows:
        offered = known[row["region"]].offered
        if offered is not None and not row["zone"] and row["instance_type"] not in offered:
            row["capacity"] = "0"
    return rows


def create(options: FetchOptions) -> AwsProvider:
    """Make the provider."""
    return AwsProvider(options)
