"""A loopback Azure: Resource SKUs, compute usages, and the public Retail Prices.

Replies have the shape of the real interfaces (texts as capabilities, absolute links to the next page).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fakes.http_base import FakeServer, Handler, Reply, Request

if TYPE_CHECKING:
    from catalogs.providers.base import FetchOptions

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "azure"
SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
SECRET = "fake-bearer-91be07"  # must never be seen in a message, a log or a snapshot
SKUS = "/subscriptions/*/providers/Microsoft.Compute/skus"
USAGES = "/subscriptions/*/providers/Microsoft.Compute/locations/*/usages"
EVICTIONS = "/providers/Microsoft.ResourceGraph/resources"
RETAIL = "/api/retail/prices"
_PAGES = 3


def fixture(name: str) -> Any:
    """A recorded-shape reply."""
    return json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))


def _region_of(request: Request, field: str) -> str:
    found = re.search(rf"{field} eq '(\w+)'", request.param("$filter"))
    return found.group(1) if found else request.param("region")


def _paged(
    request: Request,
    items: list[Any],
    name: str,
    link: str,
    keep: Mapping[str, str],
    extra: Mapping[str, Any],
) -> dict[str, Any]:
    """A third of the items, and the absolute address of the rest."""
    at = int(request.param("$skip") or 0)
    size = -(-len(items) // _PAGES) or 1
    body = {**extra, name: items[at : at + size]}
    if at + size < len(items):
        kept = "&".join(f"{key}={value}" for key, value in {**keep, "$skip": str(at + size)}.items())
        body[link] = f"{request.base_url}{request.path}?{kept}"
    elif link == "NextPageLink":
        body[link] = None
    return body


def _skus(request: Request) -> Any:
    region = _region_of(request, "location")
    items = [item for item in fixture("resource_skus") if not region or region in item["locations"]]
    return _paged(request, items, "value", "nextLink", {"region": region, "api-version": "2021-07-01"}, {})


def _usages(request: Request) -> Any:
    return _paged(request, fixture("usages"), "value", "nextLink", {"api-version": "2026-04-01"}, {})


def _retail(request: Request) -> Any:
    region = _region_of(request, "armRegionName")
    items = [item for item in fixture("retail_items") if item["armRegionName"] == region]
    envelope = {"BillingCurrency": "USD", "CustomerEntityId": "Default", "CustomerEntityType": "Retail"}
    return _paged(request, items, "Items", "NextPageLink", {"region": region}, envelope)


def _evictions(request: Request) -> Any:
    def row(rate: str) -> dict[str, str]:
        return {"skuName": "standard_nd96asr_v4", "location": "eastus", "spotEvictionRate": rate}

    if request.json()["options"].get("$skipToken"):
        return {"data": [row("5-10")]}
    return {"data": [{**row("?"), "location": "westus"}], "$skipToken": "more"}


ROUTES: Mapping[str, Handler] = {SKUS: _skus, USAGES: _usages, RETAIL: _retail, EVICTIONS: _evictions}
_ERRORS = {
    "throttle": (429, "TooManyRequests"),
    "http_500": (500, "InternalServerError"),
    "expired": (401, "ExpiredAuthenticationToken"),
    "access": (403, "AuthorizationFailed"),
}


def error_reply(kind: str, request: Request) -> Reply | None:
    """The error body of Azure's management interface."""
    for start, (status, code) in _ERRORS.items():
        if kind.startswith(start):
            body = {"error": {"code": code, "message": f"the client '{SECRET}' had a problem"}}
            return Reply(body, status, {"Retry-After": "0"} if status == 429 else {})
    return None


def fake_azure(
    faults: str | Mapping[str, str] | None = None,
    *,
    routes: Mapping[str, Handler] | None = None,
    slow_s: float = 1.0,
    latency_s: float = 0.0,
) -> FakeServer:
    """The server; `faults` by the route constants of this module."""
    return FakeServer(
        {**ROUTES, **(routes or {})}, faults, error_reply=error_reply, slow_s=slow_s, latency_s=latency_s
    )


def endpoints(fake: FakeServer) -> dict[str, str]:
    """For `FetchOptions.endpoints`."""
    return {"azure_management": fake.url, "azure_retail_prices": fake.url}


class FakeCredential:
    """A login whose token is `SECRET`."""

    def get_token(self, *scopes: str, **settings: Any) -> Any:
        """The token, as the SDK asks for it."""
        from azure.core.credentials import AccessToken

        return AccessToken(SECRET, int(time.time()) + 3600)


def client_factory() -> Callable[[FetchOptions], Any]:
    """For `AzureProvider(client=...)`: the SDK's client, allowed to send its token over loopback http."""
    from azure.core.pipeline.policies import SansIOHTTPPolicy

    from catalogs.providers.azure_client import management_client

    class OverHttp(SansIOHTTPPolicy[Any, Any]):
        def on_request(self, request: Any) -> None:
            request.context.options.setdefault("enforce_https", False)

    return lambda options: management_client(
        FakeCredential(), SUBSCRIPTION, options, per_call_policies=[OverHttp()]
    )
