"""Calls to Azure: sizes and quotas through its SDK, the public Retail Prices over HTTP; faults by kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from catalogs.errors import missing_extra
from catalogs.providers.azure_retail import API_VERSION, RETAIL_API, RetailPage, parse_retail_page
from catalogs.providers.azure_types import PROVIDER, SKUS_API, USAGES_API
from catalogs.providers.base import (
    ApiCall,
    CredentialsMissing,
    FetchOptions,
    PermissionDenied,
    ProviderError,
    RateLimited,
    SchemaChanged,
    Unreachable,
)
from catalogs.providers.capped import capped_session, too_large
from catalogs.providers.http import HttpClient
from catalogs.providers.limits import CallTimedOut, retry_after_s, within

RETAIL_URL = "https://prices.azure.com"
RETAIL_PATH = "/api/retail/prices"
SUBSCRIPTION_VARIABLE = "AZURE_SUBSCRIPTION_ID"
LOGIN_HINT = f"log in with `az login` and name the subscription in {SUBSCRIPTION_VARIABLE}"
EVICTION_API = "Microsoft.ResourceGraph/resources"
API_CALLS = (
    ApiCall(SKUS_API, "Microsoft.Compute/skus/read", "sizes, and regions closed to the subscription"),
    ApiCall(USAGES_API, "Microsoft.Compute/locations/usages/read", "quotas per region"),
    ApiCall(EVICTION_API, "Microsoft.ResourceGraph/resources/read", "eviction rates of spot"),
    ApiCall(RETAIL_API, "", "prices"),
)
_PERMISSIONS = {call.call: call.permission for call in API_CALLS}
# GPU sizes are the N series: other machines have no accelerator and no place in the catalog.
_SIZES = "Standard_N"
_MAX_PAGES = 500
# Codes of the management interface that speak of the subscription, not of the login or the call
# (learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors).
_SUBSCRIPTION_CODES = {
    "MissingSubscriptionRegistration": "run `az provider register --namespace Microsoft.Compute`, then refresh again",
    "SubscriptionNotRegistered": "run `az provider register --namespace Microsoft.Compute`, then refresh again",
    "SubscriptionNotFound": f"the subscription in {SUBSCRIPTION_VARIABLE} is not one of this login",
    "InvalidSubscriptionId": f"{SUBSCRIPTION_VARIABLE} holds no subscription id",
    "ReadOnlyDisabledSubscription": "the subscription is disabled; enable it in the portal, then refresh again",
    "DisabledSubscription": "the subscription is disabled; enable it in the portal, then refresh again",
    "NoRegisteredProviderFound": "this region has no such service for the subscription; skipped",
}

SKUS_VERSION = "2021-07-01"  # the newest of Resource SKUs
EVICTION_PATH = "/providers/Microsoft.ResourceGraph/resources"
_EVICTION_VERSION = "2022-10-01"
_EVICTION_QUERY = (
    "SpotResources | where type =~ 'microsoft.compute/skuspotevictionrate/location' "
    "| where sku.name startswith 'standard_n' "
    "| project skuName = tostring(sku.name), location, spotEvictionRate = tostring(properties.evictionRate)"
)


@dataclass(frozen=True)
class Management:
    """The SDK's ComputeManagementClient and the subscription it is for."""

    client: Any
    subscription: str


Clients = Callable[[FetchOptions], Management]


def default_client(options: FetchOptions) -> Management:
    """ComputeManagementClient with the SDK's own login chain.

    Raises:
        CredentialsMissing: when no subscription is named or azure-identity is not installed.
    """
    subscription = os.environ.get(SUBSCRIPTION_VARIABLE, "")
    if not subscription:
        raise _credentials_missing("no subscription is named")
    try:
        import azure.mgmt.compute  # noqa: F401 - only to report a missing package here
        from azure.identity import DefaultAzureCredential  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError as error:
        raise CredentialsMissing(missing_extra(error) or str(error), provider=PROVIDER) from None
    return management_client(DefaultAzureCredential(), subscription, options)


def management_client(
    credential: Any, subscription: str, options: FetchOptions, **settings: Any
) -> Management:
    """The SDK's client with our time-outs and retries; its own would try ten times.

    Args:
        credential: object with `get_token`.
        subscription: subscription id.
        options: time-outs, retries and endpoint.
        settings: further settings of the SDK's client.
    """
    from azure.core.pipeline.policies import SansIOHTTPPolicy
    from azure.core.pipeline.transport import RequestsTransport
    from azure.mgmt.compute import ComputeManagementClient

    class DropUnreadableWait(SansIOHTTPPolicy[Any, Any]):
        """The SDK's retry fails on a `Retry-After` that is neither a number nor a date."""

        def on_response(self, request: Any, response: Any) -> None:  # noqa: ARG002 - the SDK's own signature
            headers = response.http_response.headers
            if "Retry-After" in headers and retry_after_s(headers["Retry-After"]) is None:
                del headers["Retry-After"]

    client = ComputeManagementClient(
        credential,
        subscription,
        options.endpoint("azure_management") or None,
        retry_total=options.retries,
        retry_connect=options.retries,
        retry_read=options.retries,
        retry_status=options.retries,
        retry_backoff_factor=options.backoff_s,
        retry_backoff_max=options.max_wait_s,
        connection_timeout=min(10.0, options.timeout_s),
        read_timeout=options.timeout_s,
        logging_enable=False,
        permit_redirects=False,  # the management interface has none; a proxy's may lead anywhere
        per_retry_policies=[DropUnreadableWait()],
        transport=RequestsTransport(session=capped_session(options.max_bytes)),
        **settings,
    )
    return Management(client, subscription)


class AzureClient:
    """Reads pages of Azure's interfaces; opens nothing before the first call."""

    def __init__(self, options: FetchOptions, client: Clients = default_client) -> None:
        """Take settings only.

        Args:
            options: time-outs, retries and endpoints.
            client: makes the SDK's client at the first call.
        """
        self.options = options
        self._make = client
        self._management: Management | None = None
        self._http = HttpClient(PROVIDER, options)

    def login(self) -> Management:
        """Make the SDK's client, once.

        Raises:
            CredentialsMissing: when there is nothing to log in with.
        """
        if self._management is None:
            self._management = self._make(self.options)
        return self._management

    def resource_skus(self, region: str = "") -> Iterator[list[Mapping[str, Any]]]:
        """Pages of Resource SKUs of the subscription, of one region or of all, as the REST interface spells them.

        The SDK's pipeline (login, retries) with the raw JSON: its models of the 60,000 SKUs of all regions would
        cost a minute and two gigabytes.
        """
        management = self.login()
        url = f"/subscriptions/{management.subscription}/providers/Microsoft.Compute/skus"
        params = {"api-version": SKUS_VERSION, **({"$filter": f"location eq '{region}'"} if region else {})}
        number, host, seen = 0, "", set[str]()
        while url:
            if len(seen) >= _MAX_PAGES:
                raise _changed("the pages do not end", "nextLink", SKUS_API, region)
            body, answering_host = self._get(management, url, params, region)
            items = body.get("value") or []
            number += len(items)
            self.options.log.progress(region, SKUS_API, len(items))
            yield items
            host, params = host or answering_host, {}
            url = str(body.get("nextLink") or "")
            if url and (url in seen or answering_host != host or (urlsplit(url).hostname or "") != host):
                raise _changed("the pages go round in a circle or elsewhere", "nextLink", SKUS_API, region)
            seen.add(url)
        if not number:
            raise _changed("the answer holds no SKU", "value", SKUS_API, region)

    def _get(
        self, management: Management, url: str, params: Mapping[str, str], region: str
    ) -> tuple[Mapping[str, Any], str]:
        """The JSON of one answer, and the host that was asked."""
        return self._ask(management, ("GET", url), params, region, SKUS_API)

    def _ask(
        self,
        management: Management,
        call: tuple[str, str],
        params: Mapping[str, str],
        region: str,
        api: str,
        content: Mapping[str, Any] | None = None,
    ) -> tuple[Mapping[str, Any], str]:
        """The JSON answer to `call` (method, address) through the SDK's pipeline, and the host that was asked."""
        from azure.core.exceptions import HttpResponseError
        from azure.core.rest import HttpRequest

        def ask() -> tuple[Mapping[str, Any], str]:
            client = management.client  # older versions have the method as a private one
            send = getattr(client, "send_request", None) or client._send_request
            response = send(HttpRequest(*call, params=dict(params), json=content))
            if response.status_code != 200:
                raise HttpResponseError(response=response)
            body = response.json()
            if not isinstance(body, dict):
                raise TypeError(type(body).__name__)
            return body, urlsplit(response.request.url).hostname or ""

        answer: tuple[Mapping[str, Any], str] = self._call(ask, api, region)
        return answer

    def eviction_rates(self) -> list[Mapping[str, Any]]:
        """Rows skuName, location, spotEvictionRate of the past month, of all regions."""
        management = self.login()
        rows: list[Mapping[str, Any]] = []
        token = ""
        for _ in range(_MAX_PAGES):
            options = {"resultFormat": "objectArray", **({"$skipToken": token} if token else {})}
            query = {"subscriptions": [management.subscription], "query": _EVICTION_QUERY, "options": options}
            params = {"api-version": _EVICTION_VERSION}
            body, _ = self._ask(management, ("POST", EVICTION_PATH), params, "", EVICTION_API, query)
            page_rows = body.get("data") or []
            if not isinstance(page_rows, list):
                raise _changed("the answer has another form", "data", EVICTION_API, "")
            rows += page_rows
            token = str(body.get("$skipToken") or "")
            if not token:
                return rows
        raise _changed("the pages do not end", "$skipToken", EVICTION_API, "")

    def usages(self, region: str) -> list[Mapping[str, Any]]:
        """Usages and limits of the subscription in one region."""
        client = self.login().client
        # The SDK's models are mappings of the raw JSON.
        items: list[Mapping[str, Any]] = self._call(
            lambda: list(client.usage.list(region)), USAGES_API, region
        )
        self.options.log.progress(region, USAGES_API, len(items))
        if not items:
            raise _changed("the answer holds no usage", "value", USAGES_API, region)
        return items

    def retail_pages(self, region: str) -> Iterator[RetailPage]:
        """Pages of the public prices of GPU sizes in one region; needs no login."""
        base = self.options.endpoint("azure_retail_prices", RETAIL_URL).removesuffix(RETAIL_PATH)
        only = (
            f"serviceName eq 'Virtual Machines' and armRegionName eq '{region}' "
            f"and contains(armSkuName, '{_SIZES}')"
        )
        params: Mapping[str, str] | None = {
            "api-version": API_VERSION,
            "currencyCode": "USD",
            "$filter": only,
        }
        url, seen = f"{base}{RETAIL_PATH}", set[str]()
        for _ in range(_MAX_PAGES):
            payload = self._http.get_json(url, params=params, api=RETAIL_API, region=region)
            page = parse_retail_page(payload, region)
            self.options.log.progress(region, RETAIL_API, page.items)
            yield page
            if not page.next_link:
                return
            if page.next_link in seen or urlsplit(page.next_link).hostname != urlsplit(base).hostname:
                break
            seen.add(page.next_link)
            url, params = page.next_link, None
        raise _changed("the pages go round in a circle or elsewhere", "NextPageLink", RETAIL_API, region)

    def _call(self, do: Callable[[], Any], api: str, region: str) -> Any:
        try:
            return within(self.options.timeout_s, do)
        except CallTimedOut as error:
            place = {"provider": PROVIDER, "region": region, "api": api}
            raise Unreachable(f"{error}; check the network and try again", **place) from None
        except Exception as error:  # the SDK lets faults of several libraries through; unknown ones go on
            fault = provider_error(error, api, region, self.options.retries)
            if fault is None:
                raise
            raise fault from None


def provider_error(error: Exception, api: str, region: str, retries: int) -> ProviderError | None:
    """Our error for one of the SDK's; None where it is not a fault of the call.

    Nothing of the SDK's own message is repeated: it may hold the subscription or a header.
    """
    from azure.core import exceptions

    place: dict[str, str] = {"provider": PROVIDER, "region": region, "api": api}
    if (refused := too_large(error, place)) is not None:
        return refused
    permission = _PERMISSIONS.get(api, api)
    status = getattr(error, "status_code", None)
    code = str(getattr(getattr(error, "error", None), "code", "") or "")
    if code in _SUBSCRIPTION_CODES:
        return ProviderError(f"{_SUBSCRIPTION_CODES[code]} ({code})", **place)
    if isinstance(error, exceptions.IncompleteReadError):
        return Unreachable("the answer was cut short; check the network and try again", **place)
    if isinstance(error, exceptions.ClientAuthenticationError) or status == 401:
        return _credentials_missing("the login is missing, expired or refused", api, region)
    if isinstance(error, exceptions.ServiceRequestError | exceptions.ServiceResponseError):
        return Unreachable(
            f"no whole answer ({type(error).__name__}); check the network and try again", **place
        )
    if status in (403, 404):
        return PermissionDenied("Azure refused access to the subscription", permission=permission, **place)
    if status == 429:
        return RateLimited(f"still throttled after {retries + 1} tries; try again later", **place)
    if isinstance(status, int) and status >= 500:
        return Unreachable(f"Azure answers HTTP {status}; try again later", **place)
    if isinstance(error, exceptions.AzureError | ValueError | TypeError | AttributeError | RecursionError):
        return _changed(f"the answer cannot be read ({type(error).__name__})", "body", api, region)
    return None


def _credentials_missing(what: str, api: str = "", region: str = "") -> CredentialsMissing:
    return CredentialsMissing(f"{what}; {LOGIN_HINT}", provider=PROVIDER, region=region, api=api)


def _changed(what: str, where: str, api: str, region: str) -> SchemaChanged:
    return SchemaChanged(
        f"{what}; update the planner", where=where, provider=PROVIDER, region=region, api=api
    )
