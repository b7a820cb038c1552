"""What a provider of prices is: the protocol, its errors, and the little that all fetchers share.

A provider answers with text rows of the data dictionary (`instance_types`, `offers`). It never repairs and
never drops a row in silence: what it cannot understand goes to the `FetchLog`, what it cannot reach raises a
`ProviderError` that names the region, the interface and the remedy.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from catalogs.errors import CatalogError

if TYPE_CHECKING:
    from pandas import DataFrame

Result = TypeVar("Result")
_TRIES_BEFORE_HOPELESS = 4
Row = Mapping[str, str]

# Environment variables that point an interface elsewhere (a private mirror, a test's loopback server). AWS has
# its own: AWS_ENDPOINT_URL and AWS_ENDPOINT_URL_<SERVICE>, read by botocore.
ENDPOINT_VARIABLES: Mapping[str, str] = {
    "gcp_compute": "PLANNER_GCP_ENDPOINT",
    "gcp_billing": "PLANNER_BILLING_ENDPOINT",
    "azure_management": "PLANNER_AZURE_ENDPOINT",
    "azure_retail_prices": "PLANNER_RETAIL_PRICES_URL",
    "aws_price_list": "PLANNER_AWS_PRICE_LIST_URL",
    "aws_spot_advisor": "PLANNER_AWS_SPOT_ADVISOR_URL",
    "alibaba_ecs": "PLANNER_ALIBABA_ENDPOINT",
}


class ProviderError(CatalogError):
    """A provider could not be read; says which, where, through what, and what to do.

    Attributes:
        provider: provider id.
        region: the region concerned, "" for all.
        api: the interface called, such as `ec2:DescribeInstanceTypes`.
        message: what went wrong, without secrets.
        purchase_options: options lost by it, where it is one interface that failed and not a region; their last
            good rows are kept.
    """

    kind = "failed"

    def __init__(self, message: str, *, provider: str = "", region: str = "", api: str = "") -> None:
        self.provider = provider
        self.region = region
        self.api = api
        self.message = message
        self.purchase_options: frozenset[str] = frozenset()
        super().__init__(message)

    def in_region(self, region: str) -> ProviderError:
        """This error as that of `region`; a copy, for one error may hold for several regions."""
        provider_error = type(self).__new__(type(self))
        provider_error.args = self.args
        provider_error.__dict__.update(self.__dict__)
        provider_error.__cause__, provider_error.__suppress_context__ = (
            self.__cause__,
            self.__suppress_context__,
        )
        provider_error.region = region
        return provider_error

    def __str__(self) -> str:
        place = " ".join(part for part in (self.provider, self.region, self.api) if part)
        return f"{place}: {self.message}" if place else self.message


class CredentialsMissing(ProviderError):  # noqa: N818 - the contract's word
    """No usable credentials (none, expired or refused); the message says how to log in."""

    kind = "credentials_missing"


class PermissionDenied(ProviderError):  # noqa: N818 - the contract's word
    """The account lacks a permission; `permission` names it as its cloud's policies spell it."""

    kind = "permission_denied"

    def __init__(
        self, message: str, *, permission: str, provider: str = "", region: str = "", api: str = ""
    ) -> None:
        self.permission = permission
        super().__init__(
            f"{message} (missing permission: {permission})", provider=provider, region=region, api=api
        )


class RateLimited(ProviderError):  # noqa: N818 - the contract's word
    """The provider still throttles after all retries."""

    kind = "rate_limited"


class SchemaChanged(ProviderError):  # noqa: N818 - the contract's word
    """The answer is not what this version understands; `where` names the field."""

    kind = "schema_changed"

    def __init__(
        self, message: str, *, where: str, provider: str = "", region: str = "", api: str = ""
    ) -> None:
        self.where = where
        super().__init__(f"{message} (at {where})", provider=provider, region=region, api=api)


class Unreachable(ProviderError):  # noqa: N818 - the contract's word
    """No answer in time: network, time-out, server faults, or an answer cut short."""

    kind = "unreachable"


@dataclass(frozen=True)
class ProviderInfo:
    """What a provider says of itself without being called.

    Attributes:
        name: provider id.
        needs_credentials: whether nothing at all can be fetched without logging in.
        purchase_options: purchase options it may return.
        extra: pip extra that installs its SDK, "" where it is a core dependency.
        login_hint: how to log in, in the SDK's own way.
    """

    name: str
    needs_credentials: bool
    purchase_options: frozenset[str]
    extra: str = ""
    login_hint: str = ""


@dataclass(frozen=True)
class ApiCall:
    """One remote call a provider module makes; docs/policies is checked against these.

    Attributes:
        call: the call as the SDK or the HTTP interface names it, such as `ec2:DescribeInstanceTypes`.
        permission: what a least-privilege policy must allow, "" where the call is public.
        needed_for: what is missing from the catalog without it.
    """

    call: str
    permission: str
    needed_for: str


@runtime_checkable
class Provider(Protocol):
    """A source of machines and prices. Optional: `fetch_quotas(regions) -> DataFrame`."""

    info: ProviderInfo

    def fetch_regions(self) -> list[str]:
        """Region ids of the provider that the account may use."""
        ...

    def fetch_instance_types(self, regions: Sequence[str]) -> DataFrame:
        """All machines of `regions`, those without an offer included: text columns of `instance_types`."""
        ...

    def fetch_offers(self, regions: Sequence[str], options: AbstractSet[str]) -> DataFrame:
        """Prices in `regions` of the purchase options asked for: text columns of `offers`."""
        ...


@runtime_checkable
class QuotaProvider(Provider, Protocol):
    """A provider that can also tell the account's limits."""

    def fetch_quotas(self, regions: Sequence[str]) -> DataFrame:
        """Text columns provider, region, quota, code, unit, limit."""
        ...


@dataclass(frozen=True)
class NotUnderstood:
    """Something a provider answered that is not in the result.

    Attributes:
        what: kind, such as `sku`, `accelerator`, `instance_type`.
        name: its own name.
        reason: why it was left out.
    """

    what: str
    name: str
    reason: str


@dataclass
class FetchLog:
    """What happened while fetching; safe to use from several threads.

    Attributes:
        on_progress: called as (region, api, rows so far from this call) after each page or region.
        failures: errors of single regions or interfaces, the rest having been fetched.
        not_understood: what was left out, with reasons.
        remarks: sentences a reader should see (a fallback was used, a sample was small).
    """

    on_progress: Callable[[str, str, int], None] | None = None
    failures: list[ProviderError] = field(default_factory=list)
    not_understood: list[NotUnderstood] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def progress(self, region: str, api: str, rows: int) -> None:
        """Tell that `rows` more rows came from `api` in `region`."""
        if self.on_progress is not None:
            self.on_progress(region, api, rows)

    def failed(self, error: ProviderError, purchase_options: Iterable[str] = ()) -> None:
        """Record the failure of one region or interface; the fetch goes on.

        Args:
            error: what happened; its `region` is "" when all regions are concerned.
            purchase_options: the options lost, where not all of the region's.
        """
        error.purchase_options = frozenset(purchase_options)
        with self._lock:
            self.failures.append(error)

    def skip(self, what: str, name: str, reason: str) -> None:
        """Record something not understood."""
        with self._lock:
            self.not_understood.append(NotUnderstood(what, name, reason))

    def remark(self, sentence: str) -> None:
        """Record a sentence for the reader, once."""
        with self._lock:
            if sentence not in self.remarks:
                self.remarks.append(sentence)

    @property
    def failed_regions(self) -> frozenset[str]:
        """Regions with a failure ("" means all of them)."""
        with self._lock:
            return frozenset(error.region for error in self.failures)


@dataclass(frozen=True)
class FetchOptions:
    """How to fetch.

    Attributes:
        accelerated_only: leave out machines without an accelerator.
        regions: only these regions; empty for all.
        purchase_options: only these; empty for all the provider has.
        max_workers: most calls of one provider at a time.
        timeout_s: longest time for one whole answer, s.
        max_bytes: largest answer held in memory, unpacked; files that are read row by row may be 32 times as large.
        retries: how often a call is tried again after throttling, server faults or a cut answer.
        backoff_s: first pause between tries, s; it doubles.
        max_wait_s: longest pause a `Retry-After` may ask for, s.
        endpoints: interface id (see `ENDPOINT_VARIABLES`) to URL.
        log: what happens while fetching.
    """

    accelerated_only: bool = True
    regions: tuple[str, ...] = ()
    purchase_options: frozenset[str] = frozenset()
    max_workers: int = 8
    timeout_s: float = 60.0
    max_bytes: int = 256 << 20
    retries: int = 4
    backoff_s: float = 0.5
    max_wait_s: float = 60.0
    endpoints: Mapping[str, str] = field(default_factory=dict)
    log: FetchLog = field(default_factory=FetchLog)

    def endpoint(self, api: str, default: str = "") -> str:
        """URL of an interface: given here, else by its environment variable, else `default`."""
        variable = ENDPOINT_VARIABLES.get(api, "")
        url = self.endpoints.get(api) or (os.environ.get(variable, "") if variable else "")
        return (url or default).rstrip("/")


def require(payload: object, name: str, *, provider: str, region: str = "", api: str = "") -> object:
    """Return a field that an answer must have.

    Raises:
        SchemaChanged: naming the field.
    """
    if not isinstance(payload, Mapping) or name not in payload:
        raise SchemaChanged(
            "the answer lacks a field this version needs; update the planner",
            where=name,
            provider=provider,
            region=region,
            api=api,
        )
    value: object = payload[name]
    return value


def text_frame(table: str, rows: Iterable[Row]) -> DataFrame:
    """Build a DataFrame of text columns in the data dictionary's order; absent cells are ""."""
    import pandas as pd

    from catalogs.tables.columns import column_names

    names = column_names(table)
    listed = list(rows)
    return pd.DataFrame(
        {name: pd.Series([row.get(name, "") for row in listed], dtype=object) for name in names}
    )


def frame_rows(frame: DataFrame) -> list[dict[str, str]]:
    """Return the rows of a frame as text dictionaries."""
    names = [str(name) for name in frame.columns]
    columns = [frame[name].tolist() for name in frame.columns]
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)]


class _Hopeless:
    """Whether more regions are worth a try; safe to use from several threads."""

    def __init__(self, limit: int) -> None:
        self.error: ProviderError | None = None
        self._left = limit
        self._any_good = False
        self._lock = threading.Lock()

    def succeeded(self) -> None:
        """One region answered: the others may."""
        with self._lock:
            self._any_good, self.error = True, None

    def failed(self, error: ProviderError) -> None:
        """One region failed; give up on the first refused login, or after `limit` unreachable ones."""
        with self._lock:
            self._left -= isinstance(error, Unreachable)
            if not self._any_good and (isinstance(error, CredentialsMissing) or self._left <= 0):
                self.error = error


def map_regions(
    regions: Sequence[str], fetch: Callable[[str], Result], options: FetchOptions
) -> dict[str, Result]:
    """Call `fetch(region)` for each region, `options.max_workers` at a time.

    A region that raises a `ProviderError` is recorded in `options.log` and left out; the others stay. Where nothing
    has come from any region and several failed alike (one is enough for credentials), the rest is not tried: a
    dead network would otherwise cost all retries of all regions.

    Returns:
        Region to result, in the order of `regions`.

    Raises:
        ProviderError: when every region failed (the first region's error).
    """
    from concurrent.futures import ThreadPoolExecutor

    hopeless = _Hopeless(max(_TRIES_BEFORE_HOPELESS, options.max_workers))

    def attempt(region: str) -> Result | ProviderError:
        if hopeless.error is not None:
            return hopeless.error
        try:
            answer = fetch(region)
        except ProviderError as error:
            hopeless.failed(error)
            return error
        hopeless.succeeded()
        return answer

    answers: dict[str, Result] = {}
    errors: list[ProviderError] = []
    with ThreadPoolExecutor(max_workers=max(1, options.max_workers)) as pool:
        for region, answer in zip(regions, pool.map(attempt, regions), strict=True):
            if isinstance(answer, ProviderError):
                errors.append(answer.in_region(region))
            else:
                answers[region] = answer
    if errors and not answers:
        raise errors[0]
    for error in errors:
        options.log.failed(error)
    return answers
