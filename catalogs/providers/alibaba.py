"""Alibaba Cloud through its official SDK (extra `alibaba`); prices stay in the currency of the account (CNY, USD)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from catalogs.providers.alibaba_rows import (
    PROVIDER,
    SUBSCRIPTION_HOURS,
    Row,
    hidden_models,
    newest_per_zone,
    parse_instance_types,
    parse_price,
    parse_quotas,
    parse_regions,
    parse_spot,
    parse_zones,
)
from catalogs.providers.alibaba_sdk import EcsClient, sdk_client
from catalogs.providers.base import (
    ApiCall,
    CredentialsMissing,
    FetchOptions,
    PermissionDenied,
    ProviderError,
    ProviderInfo,
    RateLimited,
    SchemaChanged,
    Unreachable,
    map_regions,
    text_frame,
)
from catalogs.providers.capped import too_large
from catalogs.providers.limits import CallTimedOut, within
from catalogs.providers.row_reader import RowReader
from catalogs.tables.model import PurchaseOption

if TYPE_CHECKING:
    from pandas import DataFrame

HOME_REGION = "cn-hangzhou"  # where the list of regions is asked for
LOGIN_HINT = (
    "set ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET, or run `aliyun configure` (a RAM user "
    "with docs/policies/alibaba.json is enough)"
)
API_CALLS = (
    ApiCall("ecs:DescribeRegions", "ecs:DescribeRegions", "everything"),
    ApiCall("ecs:DescribeInstanceTypes", "ecs:DescribeInstanceTypes", "machines"),
    ApiCall("ecs:DescribeAvailableResource", "ecs:DescribeAvailableResource", "zones"),
    ApiCall("ecs:DescribePrice", "ecs:DescribePrice", "on-demand and subscription prices"),
    ApiCall("ecs:DescribeSpotPriceHistory", "ecs:DescribeSpotPriceHistory", "preemptible prices"),
    ApiCall("ecs:DescribeAccountAttributes", "ecs:DescribeAccountAttributes", "quotas"),
)
_QUOTAS = ("max-postpaid-instance-vcpu-count", "max-spot-instance-vcpu-count")
_PAGE = 100
_MAX_PAGES = 1000
_SPOT_HISTORY = timedelta(hours=3)
_RETRIED_STATUS = (429, 500, 502, 503, 504)
_NO_LOGIN_CODES = (
    "InvalidAccessKeyId",
    "InvalidSecurityToken",
    "SignatureDoesNotMatch",
    "MissingAccessKeyId",
)
_DENIED_CODES = ("Forbidden", "NoPermission", "UnauthorizedOperation")
# One type in one region without a price or stock says nothing of the others.
_NOT_SOLD_CODES = (
    "DependencyViolation.IoOptimized", "ImageNotSupportInstanceType", "IncorrectInstanceType", "InstanceDisk",
    "InstanceType.Offline", "InvalidDataDiskCategory", "InvalidDiskCategory", "InvalidDiskSize",
    "InvalidInstanceChargeType", "InvalidInstanceType", "InvalidNetworkType", "InvalidPeriod", "InvalidSpotStrategy",
    "InvalidSystemDiskCategory", "InvalidSystemDiskSize", "InvalidZoneId", "InstanceTypeNotSupported",
    "IoOptimized.NotSupported", "NoStock", "NotEnable", "OperationDenied", "PriceNotFound",
    "PricePlanResultNotFound", "QuotaExceed", "ResourceNotAvailable", "Zone.NotOnSale", "Zone.NotOpen",
)  # fmt: skip
_DISK_CODES = ("InvalidSystemDiskCategory", "InvalidInstanceType.NotSupportDiskCategory")
# The account may not use the region: nothing is wrong with its permissions.
_CLOSED_REGION_CODES = (
    "InvalidRegion",
    "RegionUnauthorized",
    "RegionNotSupported",
    "SDK.EndpointResolvingError",
)
_BLOCKED_CODES = (
    "Account.Arrearage", "AccountForbidden", "Forbidden.RiskControl", "InsufficientBalance", "InvalidAccountStatus",
    "InvalidPayMethod", "NoNeedToPay",
)  # fmt: skip
_CLOCK_CODES = ("InvalidTimeStamp", "IllegalTimestamp")
_USUAL_DISK = "cloud_essd"


def create(options: FetchOptions) -> AlibabaProvider:
    """Make the provider; the SDK is imported at the first call."""
    return AlibabaProvider(options)


class AlibabaProvider:
    """Machines and prices of Alibaba Cloud ECS."""

    info = ProviderInfo(
        name=PROVIDER,
        needs_credentials=True,
        purchase_options=frozenset(
            option.value
            for option in (PurchaseOption.ON_DEMAND, PurchaseOption.SPOT, PurchaseOption.SUBSCRIPTION)
        ),
        extra="alibaba",
        login_hint=LOGIN_HINT,
    )

    def __init__(
        self, options: FetchOptions, client_factory: Callable[[str, FetchOptions], EcsClient] | None = None
    ) -> None:
        """Take settings; `client_factory(region, options)` replaces the SDK's client."""
        self.options = options
        self._make = client_factory or sdk_client
        self._clients: dict[str, EcsClient] = {}
        self._types: dict[str, Row] = {}

    def fetch_regions(self) -> list[str]:
        """Region ids that the account may use."""
        return parse_regions(self._call(HOME_REGION, "DescribeRegions", {"ResourceType": "instance"}))

    def fetch_instance_types(self, regions: Sequence[str]) -> DataFrame:
        """All machines of the regions, those without an offer included."""
        rows_of = map_regions(list(regions), self._types_of, self.options)
        for rows in rows_of.values():
            self._types.update({row["instance_type"]: row for row in rows})
        return text_frame("instance_types", self._types.values())

    def fetch_offers(self, regions: Sequence[str], options: AbstractSet[str]) -> DataFrame:
        """On-demand and preemptible prices per zone of the accelerated machines in stock."""
        sold = set(options) & self.info.purchase_options
        if not self._types:
            self.fetch_instance_types(regions)
        hidden = hidden_models()
        rows_of = map_regions(list(regions), lambda region: self._offers_of(region, sold), self.options)
        rows = [row for some in rows_of.values() for row in some]
        for row in rows:
            if self._types[row["instance_type"]].get("accelerator", "") in hidden:
                row["flags"] = ";".join(sorted([row["flags"], "hidden_model"]))
        return text_frame("offers", rows)

    def fetch_quotas(self, regions: Sequence[str]) -> DataFrame:
        """The account's vCPU limits: columns provider, region, quota, code, unit, limit."""
        import pandas as pd

        def one(region: str) -> list[Row]:
            arguments = {"AttributeName": list(_QUOTAS)}
            answer = self._call(region, "DescribeAccountAttributes", arguments)
            return parse_quotas(answer, region, self.options.log)

        rows_of = map_regions(list(regions), one, self.options)
        columns = ["provider", "region", "quota", "code", "unit", "limit"]
        return pd.DataFrame([row for rows in rows_of.values() for row in rows], columns=columns, dtype=object)

    def _types_of(self, region: str) -> list[Row]:
        arguments: dict[str, Any] = {"MaxResults": _PAGE}
        if self.options.accelerated_only:
            arguments["MinimumGPUAmount"] = 1
        reader = self._reader("instance_type", region, "ecs:DescribeInstanceTypes")
        rows: list[Row] = []
        for page in self._pages(region, "DescribeInstanceTypes", arguments, "NextToken"):
            rows += parse_instance_types(page, _today(), self.options.log, reader)
            self.options.log.progress(region, "ecs:DescribeInstanceTypes", len(rows))
        reader.require_some()
        return rows

    def _reader(self, what: str, region: str, api: str) -> RowReader:
        return RowReader(what, self.options.log, {"provider": PROVIDER, "region": region, "api": api})

    def _offers_of(self, region: str, options: AbstractSet[str]) -> list[Row]:
        rows: list[Row] = []
        price = self._reader("price", region, "ecs:DescribePrice")
        if PurchaseOption.ON_DEMAND.value in options:
            rows += self._prices(price, region, self._stock(region, "PostPaid", "NoSpot"), "Hour")
        if PurchaseOption.SUBSCRIPTION.value in options:
            stock = self._stock(region, "PrePaid", "NoSpot")
            for unit in SUBSCRIPTION_HOURS:
                rows += self._prices(price, region, stock, unit)
        if PurchaseOption.SPOT.value in options:
            spot = self._reader("spot price", region, "ecs:DescribeSpotPriceHistory")
            stock = self._stock(region, "PostPaid", "SpotAsPriceGo")
            rows += self._each(spot, stock, lambda name: self._spot(region, name))
            spot.require_some()
        price.require_some()
        self.options.log.progress(region, "ecs:DescribePrice", len(rows))
        return rows

    def _prices(
        self, reader: RowReader, region: str, stock: Mapping[str, AbstractSet[str]], unit: str
    ) -> list[Row]:
        return self._each(reader, stock, lambda name: self._price(region, name, stock[name], unit))

    def _each(
        self, reader: RowReader, names: Mapping[str, AbstractSet[str]], fetch: Callable[[str], list[Row]]
    ) -> list[Row]:
        """Rows of each machine; one that is not sold here, or whose answer cannot be read, costs itself."""

        def of(name: str) -> list[Row]:
            try:
                return fetch(name)
            except _NotSoldError as error:
                self.options.log.skip("price", f"{reader.place['region']}/{name}", error.message)
                return []

        return [row for rows in reader.read(names, of, str) for row in rows]

    def _stock(self, region: str, charge: str, strategy: str) -> dict[str, set[str]]:
        arguments = {
            "RegionId": region,
            "DestinationResource": "InstanceType",
            "InstanceChargeType": charge,
            "SpotStrategy": strategy,
            "IoOptimized": "optimized",
        }
        zones = parse_zones(
            self._call(region, "DescribeAvailableResource", arguments), region, self.options.log
        )
        priced = {name for name, row in self._types.items() if row.get("accelerator")}
        return {name: zones[name] for name in sorted(zones) if name in priced}

    def _price(self, region: str, name: str, zones: AbstractSet[str], unit: str) -> list[Row]:
        arguments: dict[str, Any] = {
            "RegionId": region,
            "ResourceType": "instance",
            "InstanceType": name,
            "PriceUnit": unit,
        }
        if unit != "Hour":
            arguments["Period"] = 1
        try:
            answer = self._call(region, "DescribePrice", arguments)
        except _NotSoldError as error:
            if not error.code.startswith(_DISK_CODES):
                raise
            # Machines of new families refuse the default disk, which the machine's own price does not hold.
            answer = self._call(
                region, "DescribePrice", {**arguments, "SystemDisk": {"Category": _USUAL_DISK}}
            )
        return parse_price(answer, region, name, zones, _today(), unit)

    def _spot(self, region: str, name: str) -> list[Row]:
        now = datetime.now(UTC)
        arguments = {
            "RegionId": region,
            "InstanceType": name,
            "NetworkType": "vpc",
            "OSType": "linux",
            "StartTime": f"{now - _SPOT_HISTORY:%Y-%m-%dT%H:%M:%SZ}",
            "EndTime": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        }
        pages = self._pages(region, "DescribeSpotPriceHistory", arguments, "NextOffset")
        return newest_per_zone(row for page in pages for row in parse_spot(page, region, self.options.log))

    def _pages(self, region: str, action: str, arguments: Mapping[str, Any], key: str) -> Iterator[Any]:
        """All pages; the answer's `key` is sent back as the next request's token or offset."""
        sent_as = {"NextToken": "NextToken", "NextOffset": "Offset"}[key]
        token: Any = None
        seen: set[str] = set()
        for _ in range(_MAX_PAGES):
            page = self._call(region, action, {**arguments, **({sent_as: token} if token else {})})
            yield page
            token = page.get(key) if isinstance(page, Mapping) else None
            if not token:
                return
            if str(token) in seen:
                break
            seen.add(str(token))
        raise SchemaChanged(
            "the pages go round in a circle or do not end; update the planner",
            where=key,
            provider=PROVIDER,
            region=region,
            api=f"ecs:{action}",
        )

    def _call(self, region: str, action: str, parameters: Mapping[str, Any]) -> Any:
        """Call with retries after throttling, server faults and network faults, all within `timeout_s`, pauses aside.

        Raises:
            ProviderError: by what went wrong.
        """
        place = {"provider": PROVIDER, "region": region, "api": f"ecs:{action}"}
        if region not in self._clients:
            self._clients[region] = self._make(region, self.options)
        attempt, end = 0, time.monotonic() + self.options.timeout_s
        while True:
            try:
                client = self._clients[region]
                return within(end - time.monotonic(), partial(client.call, action, parameters))
            except ProviderError:
                raise
            except CallTimedOut:
                late = f"no whole answer in time ({self.options.timeout_s:g} s)"
                raise Unreachable(f"{late}; check the network and try again", **place) from None
            except Exception as error:  # the SDK raises many kinds; what is unknown is passed on as it came
                fault = explain(error, place, attempt + 1)
                if fault is None:
                    raise
                if attempt >= self.options.retries or not isinstance(fault, RateLimited | Unreachable):
                    raise fault from None
            pause = min(self.options.backoff_s * 2**attempt, self.options.max_wait_s)
            time.sleep(pause)
            attempt, end = attempt + 1, end + pause


class _NotSoldError(ProviderError):
    """One machine has no price or stock in one region."""

    code = ""


def explain(error: Exception, place: Mapping[str, str], tries: int) -> ProviderError | None:
    """Turn an SDK exception into a provider's error; None for what is not an answer of the cloud.

    The SDK's exceptions carry `code` and `statusCode`; their own texts hold request data and are not passed on.
    """
    if (refused := too_large(error, dict(place))) is not None:
        return refused
    code = str(getattr(error, "code", "") or "")
    status = _status(error)
    if type(error).__name__ == "CredentialException" or code.startswith(_NO_LOGIN_CODES) or status == 401:
        return CredentialsMissing(f"no usable credentials ({code or 'none found'}); {LOGIN_HINT}", **place)
    if code.startswith("Throttling") or status == 429:
        return RateLimited(f"still throttled after {tries} tries ({code}); try again later", **place)
    if code.startswith(_NOT_SOLD_CODES):
        fault = _NotSoldError(f"not sold here ({code})", **place)
        fault.code = code
        return fault
    if code.startswith(_CLOCK_CODES):
        return ProviderError(f"the request's time is refused ({code}): set this machine's clock", **place)
    if code.startswith(_CLOSED_REGION_CODES):
        return ProviderError(f"the account cannot use this region ({code}); skipped", **place)
    if code.startswith(_BLOCKED_CODES):
        return ProviderError(
            f"the account is blocked ({code}); settle it in the console, then refresh again", **place
        )
    if code.startswith(_DENIED_CODES) or status == 403:
        return PermissionDenied(
            "access was denied; allow it in a RAM policy", permission=place["api"], **place
        )
    if status in _RETRIED_STATUS:
        return Unreachable(f"HTTP {status} after {tries} tries; try again later", **place)
    if isinstance(error, ValueError | RecursionError):
        return SchemaChanged("the answer is not JSON", where="body", **place)
    if code or status:
        return SchemaChanged(
            f"the request is refused ({code or status}); update the planner", where="request", **place
        )
    if isinstance(error, OSError) or type(error).__name__ in ("RetryError", "UnretryableException"):
        return Unreachable("no whole answer; check the network and try again", **place)
    return None


def _status(error: Exception) -> int:
    for name in ("statusCode", "status_code"):
        value = getattr(error, name, None)
        if isinstance(value, int):
            return value
    return 0


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
