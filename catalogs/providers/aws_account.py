"""AWS as an account sees it: machines of each region, prices of each purchase option, quotas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

from catalogs.providers import aws_commitments as commitments
from catalogs.providers import aws_ec2 as ec2
from catalogs.providers import aws_pricing as pricing
from catalogs.providers import aws_quotas as quotas
from catalogs.providers import aws_spot as spot
from catalogs.providers.aws_client import HOME_REGION, AwsClients, NotSoldHere
from catalogs.providers.aws_public import PublicLists
from catalogs.providers.aws_rows import PROVIDER, Row, changed
from catalogs.providers.base import (
    CredentialsMissing,
    FetchOptions,
    PermissionDenied,
    ProviderError,
    map_regions,
)
from catalogs.providers.row_reader import RowReader
from catalogs.tables.model import PurchaseOption
from catalogs.tables.normalize import family_of

Result = TypeVar("Result")
LISTED = frozenset({"on_demand", "reserved_1y", "reserved_3y"})
SAVINGS = frozenset({"savings_plan_1y", "savings_plan_3y"})
OPTIONS = LISTED | SAVINGS | {"spot", "capacity_block"}
# Names of machines with accelerators; a filter of the interface itself does not exist.
_ACCELERATED = ("dl*", "f*", "g*", "inf*", "p*", "trn*")
_TYPES_PER_CALL = 100
_BLOCK_HOURS = 24


@dataclass
class Region:
    """What one region sells: rows of its machines, those sold as Capacity Blocks, those offered in any zone."""

    types: list[Row]
    blocks: set[str]
    offered: set[str] | None = None


class AwsAccount:
    """Reads what the account may see; what one interface refuses in one region is recorded, the rest goes on."""

    def __init__(
        self, options: FetchOptions, clients: AwsClients, public: PublicLists, now: Callable[[], datetime]
    ) -> None:
        """Take settings only.

        Args:
            options: concurrency, log.
            clients: SDK clients.
            public: the public lists, where the account may not read prices.
            now: clock.
        """
        self.options = options
        self.log = options.log
        self.clients = clients
        self._public = public
        self._now = now
        self._regions: dict[str, bool] | None = None
        self._known: dict[str, Region] = {}

    @property
    def _today(self) -> str:
        return self._now().date().isoformat()

    def regions(self) -> dict[str, bool]:
        """Region ids, and whether the account may use each."""
        if self._regions is None:
            is_usable: dict[str, bool] = {}
            for page in self.clients.pages("ec2", "describe_regions", HOME_REGION, "", AllRegions=True):
                is_usable |= ec2.parse_regions(page)
            self._regions = is_usable
        return self._regions

    def describe(self, regions: Sequence[str]) -> dict[str, Region]:
        """What each region sells; a region that cannot be read is recorded and left out."""
        missing = [region for region in regions if region not in self._known]
        if missing:
            self._known |= map_regions(missing, self._describe_region, self.options)
        return {region: self._known[region] for region in regions if region in self._known}

    def _describe_region(self, region: str) -> Region:
        filters = (
            [{"Name": "instance-type", "Values": list(_ACCELERATED)}] if self.options.accelerated_only else []
        )
        described = Region([], set())
        reader = self._reader("instance_type", region, ec2.TYPES)
        for page in self.clients.pages("ec2", "describe_instance_types", region, Filters=filters):
            rows = ec2.parse_instance_types(page, self._today, region, reader)
            described.types += rows
            described.blocks |= ec2.block_types(page, region)
            self.log.progress(region, ec2.TYPES, len(rows))
        reader.require_some()
        if not described.types:
            raise changed(ec2.TYPES, "InstanceTypes (no machine with an accelerator)", region)
        names = {row["instance_type"] for row in described.types}
        described.blocks &= {row["instance_type"] for row in described.types if ec2.is_known(row)}
        described.offered = self._try(lambda: self._offered(region, names), None)
        return described

    def _reader(self, what: str, region: str, api: str) -> RowReader:
        return RowReader(what, self.log, {"provider": PROVIDER, "region": region, "api": api})

    def _offered(self, region: str, names: set[str]) -> set[str]:
        pairs: set[tuple[str, str]] = set()
        for some in _parts(sorted(names)):
            pages = self.clients.pages(
                "ec2",
                "describe_instance_type_offerings",
                region,
                LocationType="availability-zone-id",
                Filters=[{"Name": "instance-type", "Values": some}],
            )
            for page in pages:
                pairs |= ec2.parse_offerings(page, region)
        if not pairs:
            raise changed(ec2.OFFERINGS, "InstanceTypeOfferings (empty)", region)
        return {name for name, _ in pairs} & names

    def offers(self, regions: Sequence[str], options: set[str]) -> list[Row]:
        """Offers of the machines of `regions`.

        Raises:
            ProviderError: when nothing at all could be read.
        """
        described = self.describe(regions)
        types = ec2.merge_types(region.types for region in described.values())
        names = [row["instance_type"] for row in types if ec2.is_known(row)]
        listed = self._listed(sorted(described), names, options & LISTED)
        advice = self._public.advice(sorted(described)) if "spot" in options else {}
        hourly = {
            (row["region"], row["instance_type"]): Decimal(row["price_per_hour"])
            for row in listed
            if row["purchase_option"] == PurchaseOption.ON_DEMAND.value
        }

        def fetch(region: str) -> list[Row]:
            rows: list[Row] = []
            if options & SAVINGS:
                rows += self._try(lambda: self._savings(region, names, options), [])
            by_zone = options & {"spot", "capacity_block"}
            no_zones: dict[str, str] = {}
            zones = self._try(lambda: self._zones(region), no_zones) if by_zone else no_zones
            if zones and "spot" in options:
                rows += self._try(lambda: self._spot(region, zones, described[region], advice, hourly), [])
            if zones and "capacity_block" in options:
                rows += self._try(lambda: self._blocks(region, zones, described[region]), [])
            return rows

        failures = len(self.log.failures)
        answers = map_regions(sorted(described), fetch, self.options)
        rows = _mark_unoffered(
            listed + [row for region in sorted(answers) for row in answers[region]], described
        )
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

        reader = self._reader("price", "", pricing.API)

        def fetch(name: str) -> list[Row]:
            rows: list[Row] = []
            pages = self.clients.pages(
                "pricing",
                "get_products",
                HOME_REGION,
                "",
                ServiceCode="AmazonEC2",
                FormatVersion="aws_v1",
                Filters=pricing.filters(instanceType=name),
                MaxResults=100,
            )
            for page in pages:
                rows += pricing.parse_price_list(page, self._today, regions, options, reader)
            self.log.progress("", pricing.API, len(rows))
            return rows

        try:
            rows = [row for answer in self._all(names, fetch) for row in answer]
            reader.require_some()
            if names and not rows:  # an answer that is empty for all machines is no answer
                raise changed(pricing.API, "PriceList (empty for every instance type)")
            return rows
        except CredentialsMissing:
            raise
        except PermissionDenied as error:
            self.log.remark(f"{error.message}; on-demand and reserved prices come from the public price list")
            return self._public.listed(regions, options, set(names))
        except ProviderError as error:
            self.log.failed(error, options)  # of these the last good prices stay
            return []

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
        families = sorted({family_of(PROVIDER, name) for name in names})
        query = commitments.savings_query(region, families)
        pages = self.clients.pages(
            "savingsplans",
            "describe_savings_plans_offering_rates",
            HOME_REGION,
            region,
            **query,
            maxResults=1000,
        )
        reader = self._reader("price", region, commitments.SAVINGS_API)
        for page in pages:
            rows += commitments.parse_savings_rates(page, region, self._today, set(names), options, reader)
        reader.require_some()
        if not rows:
            raise changed(commitments.SAVINGS_API, "searchResults (no rate of any machine)", region)
        self.log.progress(region, commitments.SAVINGS_API, len(rows))
        return rows

    def _zones(self, region: str) -> dict[str, str]:
        zones: dict[str, str] = {}
        for page in self.clients.pages(
            "ec2", "describe_availability_zones", region, AllAvailabilityZones=True
        ):
            zones |= ec2.parse_zones(page, region)
        if not zones:
            raise changed(ec2.ZONES, "AvailabilityZones (empty)", region)
        return zones

    def _spot(
        self,
        region: str,
        zones: Mapping[str, str],
        described: Region,
        advice: Mapping[tuple[str, str], spot.Advice],
        hourly: Mapping[tuple[str, str], Decimal],
    ) -> list[Row]:
        now = self._now()
        names = sorted({row["instance_type"] for row in described.types if ec2.is_known(row)})
        quotes: list[spot.Quote] = []
        reader = self._reader("spot price", region, spot.API)
        for some in _parts(names):  # without types the answer is all history
            pages = self.clients.pages(
                "ec2",
                "describe_spot_price_history",
                region,
                InstanceTypes=some,
                ProductDescriptions=[spot.PRODUCT],
                StartTime=now - spot.WINDOW,
                EndTime=now,
                MaxResults=1000,
            )
            for page in pages:
                quotes += spot.parse_spot_history(page, zones, region, reader)
        reader.require_some()
        rows = spot.spot_rows(quotes, region, now, advice, hourly)
        if not rows:
            self.log.remark(f"{region}: no spot price of any machine in the past week")
        self.log.progress(region, spot.API, len(rows))
        return rows

    def _blocks(self, region: str, zones: Mapping[str, str], described: Region) -> list[Row]:
        rows: list[Row] = []
        reader = self._reader("capacity block", region, commitments.BLOCK_API)
        for query in (
            query for name in sorted(described.blocks) for query in commitments.block_queries(name)
        ):
            pages = self.clients.pages(
                "ec2",
                "describe_capacity_block_offerings",
                region,
                **query,
                CapacityDurationHours=_BLOCK_HOURS,
                StartDateRange=self._now(),
            )
            try:
                rows += [
                    row
                    for page in pages
                    for row in commitments.parse_blocks(page, zones, region, self._today, reader)
                ]
            except NotSoldHere:
                continue
        reader.require_some()
        self.log.progress(region, commitments.BLOCK_API, len(rows))
        return commitments.cheapest(rows)

    def quotas(self, region: str) -> list[Row]:
        """The account's vCPU quotas in a region."""
        pages = self.clients.pages(
            "service-quotas", "list_service_quotas", region, ServiceCode=quotas.SERVICE, MaxResults=100
        )
        reader = self._reader("quota", region, quotas.API)
        try:
            rows = [row for page in pages for row in quotas.parse_quotas(page, region, reader)]
        except NotSoldHere:
            self.log.remark(f"{region}: Service Quotas knows no quota of EC2 here; limits are not checked")
            return []
        reader.require_some()
        if not rows:  # every account has them
            raise changed(quotas.API, "Quotas (none of the families known)", region)
        return list({row["code"]: row for row in rows}.values())


def _parts(names: Sequence[str]) -> list[list[str]]:
    """Names in lists short enough for one call."""
    return [list(names[start : start + _TYPES_PER_CALL]) for start in range(0, len(names), _TYPES_PER_CALL)]


def _mark_unoffered(rows: list[Row], described: Mapping[str, Region]) -> list[Row]:
    """Say that none can be had of a type that has a list price where the account is not offered it."""
    for row in rows:
        offered = described[row["region"]].offered
        if offered is not None and not row["zone"] and row["instance_type"] not in offered:
            row["capacity"] = "0"
    return rows
