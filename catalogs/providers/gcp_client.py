"""Calls to Google Cloud: Compute through its SDK, the Cloud Billing Catalog over HTTP; faults by kind.

The SDK is imported inside functions: it costs seconds. Its own retry covers 503 only (429, 500 and 502 fail at
the first answer), and its own deadline is ten minutes: both are set here, per page.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from catalogs.errors import missing_extra
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
from catalogs.providers.capped import cap_session, too_large
from catalogs.providers.gcp_skus import BILLING_API, PROVIDER, Sku, parse_skus, sku_reader
from catalogs.providers.gcp_types import (
    ACCELERATORS_API,
    QUOTA_API,
    REGIONS_API,
    TYPES_API,
    Machine,
    host_names,
    parse_machine,
)
from catalogs.providers.http import HttpClient
from catalogs.providers.limits import CallTimedOut, within
from catalogs.providers.row_reader import RowReader

if TYPE_CHECKING:
    from google.api_core.retry import Retry

BILLING_URL = "https://cloudbilling.googleapis.com"
COMPUTE_ENGINE = "services/6F81-5844-456A"
API_KEY_VARIABLE = "PLANNER_GCP_API_KEY"
LOGIN_HINT = (
    "log in with `gcloud auth application-default login` and name the project in GOOGLE_CLOUD_PROJECT"
)
# IAM has no permission for reading the public price list; the project must have the API switched on.
BILLING_NEEDS = "the Cloud Billing API (cloudbilling.googleapis.com) switched on in the project"
API_CALLS = (
    ApiCall(TYPES_API, "compute.machineTypes.list", "machine types per zone"),
    ApiCall(ACCELERATORS_API, "compute.acceleratorTypes.list", "GPUs attached to N1 machines, per zone"),
    ApiCall(REGIONS_API, "compute.regions.list", "regions of the project"),
    ApiCall(QUOTA_API, "compute.regions.get", "quotas per region"),
    ApiCall(BILLING_API, "", "prices"),
)
_PERMISSIONS = {call.call: call.permission or BILLING_NEEDS for call in API_CALLS}
_SCOPES = (
    "https://www.googleapis.com/auth/compute.readonly",
    "https://www.googleapis.com/auth/cloud-billing.readonly",
)
_PAGE = 500
_MAX_PAGES = 1000
_BILLING_PAGE = "5000"
_THROTTLED = frozenset(
    {
        "rateLimitExceeded",
        "userRateLimitExceeded",
        "quotaExceeded",
        "dailyLimitExceeded",
        "RATE_LIMIT_EXCEEDED",
    }
)


@dataclass
class Login:
    """Whose eyes to read with.

    Attributes:
        credentials: a google.auth credentials object; None for the API key alone.
        project: project id.
        api_key: key for the price list, "" for the credentials' token; never shown.
    """

    credentials: Any
    project: str
    api_key: str = field(default="", repr=False)


def default_login() -> Login:
    """Application-default credentials, the project they name, and an API key where one is set.

    A key alone is enough for prices.

    Raises:
        CredentialsMissing: when there are none, or no project is named.
    """
    key = os.environ.get(API_KEY_VARIABLE, "")
    try:
        import google.auth
        import google.cloud.compute_v1
        from google.auth.exceptions import GoogleAuthError
    except ImportError as error:
        if key:
            return Login(None, "", key)
        raise CredentialsMissing(missing_extra(error) or str(error), provider=PROVIDER) from None
    try:
        credentials, project = google.auth.default(scopes=list(_SCOPES))  # type: ignore[no-untyped-call,unused-ignore]
    except GoogleAuthError as error:
        if key:
            return Login(None, "", key)
        raise _credentials_missing(
            f"no application-default credentials ({type(error).__name__})", ""
        ) from None
    chosen = os.environ.get("GOOGLE_CLOUD_PROJECT") or project
    if not chosen:
        raise _credentials_missing("the credentials name no project", "")
    return Login(credentials, str(chosen), key)


class GcpClient:
    """Reads pages of Google's interfaces; opens nothing before the first call."""

    def __init__(self, options: FetchOptions, login: Callable[[], Login] = default_login) -> None:
        """Take settings only.

        Args:
            options: time-outs, retries and endpoints.
            login: gives the credentials at the first call.
        """
        self.options = options
        self._make_login = login
        self._login: Login | None = None
        self._http = HttpClient(PROVIDER, options, login_hint=LOGIN_HINT)

    def login(self) -> Login:
        """Credentials, asked for once."""
        if self._login is None:
            self._login = self._make_login()
        return self._login

    def machines(self) -> tuple[list[Machine], list[Machine]]:
        """Machine types with accelerators, and the N1 hosts that GPUs are attached to, per zone."""
        from google.cloud import compute_v1

        client = self._client(compute_v1.MachineTypesClient)
        hosts = host_names()
        reader = RowReader(
            "instance_type", self.options.log, {"provider": PROVIDER, "region": "", "api": TYPES_API}
        )
        parsed: list[Machine] = []
        for page in self._pages(client, compute_v1.AggregatedListMachineTypesRequest, TYPES_API):
            for scope, listed in page.items.items():
                self._warn(scope, listed)
                zone = scope.removeprefix("zones/")
                items = [
                    type(item).to_dict(item)
                    for item in listed.machine_types
                    if item.accelerators or item.name in hosts or not item.name
                ]
                parsed += reader.read(items, partial(parse_machine, zone=zone), lambda item: item["name"])
        reader.require_some()
        accelerated = [machine for machine in parsed if machine.accelerator_type]
        if not accelerated:
            raise _changed("the answer holds no machine type with accelerators", "items", TYPES_API)
        return accelerated, [machine for machine in parsed if not machine.accelerator_type]

    def accelerators(self) -> list[tuple[str, str]]:
        """(accelerator type, zone) pairs on offer."""
        from google.cloud import compute_v1

        client = self._client(compute_v1.AcceleratorTypesClient)
        out = []
        for page in self._pages(client, compute_v1.AggregatedListAcceleratorTypesRequest, ACCELERATORS_API):
            for scope, listed in page.items.items():
                self._warn(scope, listed)
                out += [(item.name, scope.removeprefix("zones/")) for item in listed.accelerator_types]
        if not any(name for name, _ in out):
            raise _changed("the answer holds no accelerator type", "items", ACCELERATORS_API)
        return out

    def regions(self) -> list[str]:
        """Regions of the project that are up."""
        from google.cloud import compute_v1

        client = self._client(compute_v1.RegionsClient)
        names = {
            region.name
            for page in self._pages(client, compute_v1.ListRegionsRequest, REGIONS_API)
            for region in page.items
            if region.status in ("UP", "")
        }
        if not any(names):
            raise _changed("the answer holds no region", "items", REGIONS_API)
        return sorted(name for name in names if name)

    def quotas(self, region: str) -> list[dict[str, Any]]:
        """Quotas of a region as reported by the API."""
        from google.cloud import compute_v1

        client = self._client(compute_v1.RegionsClient)
        answer = self._call(
            lambda: client.get(
                project=self.login().project,
                region=region,
                retry=self._retry(),
                timeout=self.options.timeout_s,
            ),
            QUOTA_API,
            region,
        )
        if not answer.quotas:
            raise _changed("the answer holds no quota", "quotas", QUOTA_API, region)
        return [type(quota).to_dict(quota) for quota in answer.quotas]

    def skus(self) -> Iterator[list[Sku]]:
        """Pages of Compute Engine's SKUs.

        Raises:
            ProviderError: by what went wrong; an API key the server does not know is missing credentials.
        """
        url = f"{self.options.endpoint('gcp_billing', BILLING_URL)}/v1/{COMPUTE_ENGINE}/skus"
        token, seen, reader = "", set[str](), sku_reader(self.options.log)
        for _ in range(_MAX_PAGES):
            params = {"currencyCode": "USD", "pageSize": _BILLING_PAGE}
            if token:
                params["pageToken"] = token
            payload = self._billing_page(url, params)
            yield parse_skus(payload, reader)
            token = str(payload.get("nextPageToken") or "")
            if not token:
                reader.require_some()
                return
            if token in seen:
                raise _changed("the pages go round in a circle", "nextPageToken", BILLING_API)
            seen.add(token)
        raise _changed("the pages do not end", "nextPageToken", BILLING_API)

    def _billing_page(self, url: str, params: Mapping[str, str]) -> Any:
        headers = self._billing_headers(url)
        try:
            return self._http.get_json(
                url, params=params, headers=headers, api=BILLING_API, permission=BILLING_NEEDS
            )
        except SchemaChanged as error:
            if error.where == "request" and self.login().api_key:
                raise _credentials_missing(f"the key in {API_KEY_VARIABLE} is refused", BILLING_API) from None
            raise

    def _billing_headers(self, url: str) -> dict[str, str]:
        """The key or the token, in headers: an address may end up in a log."""
        login = self.login()
        headers: dict[str, str] = {}
        if login.api_key:
            headers["X-Goog-Api-Key"] = login.api_key
        elif login.credentials is not None:
            from google.auth.transport.requests import Request

            self._call(lambda: login.credentials.before_request(Request(), "GET", url, headers), BILLING_API)
        return headers

    def _client(self, kind: Any) -> Any:
        """A client of the SDK; the scheme of a given endpoint is kept (without one it would be https)."""
        if self.login().credentials is None:
            raise _credentials_missing("an API key alone reads prices only", "")
        endpoint = self.options.endpoint("gcp_compute")
        settings = {"api_endpoint": endpoint} if endpoint else None
        client = kind(credentials=self.login().credentials, client_options=settings)
        session = getattr(client.transport, "_session", None)
        if session is not None:  # the interface has no redirects; a proxy's may lead anywhere
            session.max_redirects = 0
            cap_session(session, self.options.max_bytes)
        return client

    def _pages(self, client: Any, request: Any, api: str) -> Iterator[Any]:
        """Pages of a list, each with retries of its own."""
        list_ = getattr(client, "aggregated_list", None) or client.list
        token, seen = "", set[str]()
        for _ in range(_MAX_PAGES):
            page_request = request(project=self.login().project, max_results=_PAGE, page_token=token)
            fetch = partial(list_, page_request, retry=self._retry(), timeout=self.options.timeout_s)
            page = self._call(fetch, api)
            self.options.log.progress("", api, len(page.items))
            yield page
            token = page.next_page_token
            if not token:
                return
            if token in seen:
                raise _changed("the pages go round in a circle", "nextPageToken", api)
            seen.add(token)
        raise _changed("the pages do not end", "nextPageToken", api)

    def _warn(self, scope: str, listed: Any) -> None:
        """Tell when a zone could not be asked: its machines are missing, not gone."""
        if listed.warning.code in ("UNREACHABLE", "PARTIAL_SUCCESS"):
            self.options.log.remark(f"{scope}: no answer from this zone ({listed.warning.code})")

    def _retry(self) -> Retry:
        """Retry of one page: throttling, server faults and broken connections, `retries` times."""
        import requests
        from google.api_core import exceptions, retry

        again = (
            exceptions.TooManyRequests,
            exceptions.InternalServerError,
            exceptions.BadGateway,
            exceptions.ServiceUnavailable,
            exceptions.GatewayTimeout,
            requests.exceptions.ConnectionError,
            requests.exceptions.Timeout,
            requests.exceptions.ChunkedEncodingError,
        )
        left = [self.options.retries]

        def predicate(error: Exception) -> bool:
            left[0] -= 1
            return isinstance(error, again) and left[0] >= 0

        return retry.Retry(
            predicate=predicate,
            initial=self.options.backoff_s,
            maximum=self.options.max_wait_s,
            timeout=self.options.timeout_s,
        )

    def _call(self, do: Callable[[], Any], api: str, region: str = "") -> Any:
        try:
            return within(self.options.timeout_s, do)
        except ProviderError:
            raise
        except CallTimedOut as error:
            place = {"provider": PROVIDER, "region": region, "api": api}
            raise Unreachable(f"{error}; check the network and try again", **place) from None
        except Exception as error:  # the SDK lets faults of five libraries through; unknown ones go on
            fault = provider_error(error, api, region)
            if fault is None:
                raise
            raise fault from None


def provider_error(error: Exception, api: str, region: str = "") -> ProviderError | None:
    """Our error for one of the SDK's; None where it is not a fault of the call.

    Nothing of the SDK's own message is repeated: it may hold the whole URL.
    """
    import requests
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError, TransportError
    from google.protobuf.json_format import ParseError  # type: ignore[import-untyped,unused-ignore]

    place: dict[str, str] = {"provider": PROVIDER, "region": region, "api": api}
    if isinstance(error, exceptions.RetryError) and isinstance(error.cause, Exception):
        error = error.cause
    if (refused := too_large(error, place)) is not None:
        return refused
    if isinstance(error, requests.exceptions.TooManyRedirects):
        return _changed("the answer is a redirect, which is not followed", "Location", api, region)
    if isinstance(error, TransportError | requests.exceptions.RequestException):
        return Unreachable(
            f"no whole answer ({type(error).__name__}); check the network and try again", **place
        )
    if isinstance(error, GoogleAuthError | exceptions.Unauthorized):
        return _credentials_missing("the credentials are missing, expired or refused", api, region)
    if isinstance(error, exceptions.TooManyRequests) or _is_throttled(error):
        return RateLimited("still throttled after all tries; try again later", **place)
    if isinstance(error, exceptions.Forbidden):
        return PermissionDenied("Google refused access", permission=_PERMISSIONS.get(api, api), **place)
    if isinstance(error, exceptions.ServerError | exceptions.RetryError):
        return Unreachable(f"Google answers with a fault ({type(error).__name__}); try again later", **place)
    if isinstance(error, exceptions.NotFound):
        return PermissionDenied(
            "the project or region is not known, or not visible to these credentials",
            permission=_PERMISSIONS.get(api, api),
            **place,
        )
    if isinstance(error, ParseError | exceptions.GoogleAPIError | ValueError | RecursionError):
        return _changed(f"the answer cannot be read ({type(error).__name__})", "body", api, region)
    return None


def _is_throttled(error: Exception) -> bool:
    """Whether a refusal is throttling: Compute says 403 rateLimitExceeded besides 429."""
    reasons = {
        str(item.get("reason")) for item in getattr(error, "errors", None) or () if isinstance(item, dict)
    }
    return bool(reasons & _THROTTLED)


def _credentials_missing(what: str, api: str, region: str = "") -> CredentialsMissing:
    return CredentialsMissing(f"{what}; {LOGIN_HINT}", provider=PROVIDER, region=region, api=api)


def _changed(what: str, where: str, api: str, region: str = "") -> SchemaChanged:
    return SchemaChanged(
        f"{what}; update the planner", where=where, provider=PROVIDER, region=region, api=api
    )
