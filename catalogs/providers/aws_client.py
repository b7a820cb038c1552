"""Calls to AWS: clients with the SDK's own retries, paging, and its errors turned into ours.

Credentials are the SDK's own chain (environment, shared files, profile, SSO, role). No message carries the
SDK's text of a refused request: that may name keys and account ids.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from catalogs.errors import install_command, missing_extra
from catalogs.providers.aws_rows import PROVIDER, changed
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
from catalogs.providers.capped import cap_botocore, too_large
from catalogs.providers.limits import CallTimedOut, within

HOME_REGION = "us-east-1"  # where the global interfaces (regions, prices, savings plans) are asked
LOGIN_HINT = "run `aws configure` or `aws sso login`, or name a profile in AWS_PROFILE"
MAX_PAGES = 5000

# What is called, and what a policy must allow for it.
API_CALLS: tuple[ApiCall, ...] = (
    ApiCall("ec2:DescribeRegions", "ec2:DescribeRegions", "which regions the account may use"),
    ApiCall(
        "ec2:DescribeAvailabilityZones",
        "ec2:DescribeAvailabilityZones",
        "zone ids of spot and capacity blocks",
    ),
    ApiCall("ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypes", "what each machine is"),
    ApiCall(
        "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypeOfferings", "where each type is offered"
    ),
    ApiCall("ec2:DescribeSpotPriceHistory", "ec2:DescribeSpotPriceHistory", "spot prices"),
    ApiCall("ec2:DescribeCapacityBlockOfferings", "ec2:DescribeCapacityBlockOfferings", "capacity blocks"),
    ApiCall("pricing:GetProducts", "pricing:GetProducts", "on-demand and reserved prices"),
    ApiCall(
        "savingsplans:DescribeSavingsPlansOfferingRates",
        "savingsplans:DescribeSavingsPlansOfferingRates",
        "Savings Plans",
    ),
    ApiCall("service-quotas:ListServiceQuotas", "servicequotas:ListServiceQuotas", "quotas (`--quota live`)"),
    ApiCall("bulk price list", "", "on-demand and reserved prices without an account"),
    ApiCall("spot advisor data file", "", "interruption bands"),
)
_PERMISSIONS = {call.call: call.permission for call in API_CALLS}
_CREDENTIAL_CODES = frozenset(
    {
        "AuthFailure", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature", "InvalidAccessKeyId",
        "InvalidClientTokenId", "InvalidSignatureException", "MissingAuthenticationToken",
        "MissingAuthenticationTokenException", "RequestExpired", "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)  # fmt: skip
_DENIED_CODES = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "NotAuthorized",
        "UnauthorizedOperation",
        "UnauthorizedException",
    }
)
_THROTTLE_CODES = frozenset(
    {
        "BandwidthLimitExceeded", "LimitExceededException", "PriorRequestNotComplete", "RequestLimitExceeded",
        "RequestThrottled", "RequestThrottledException", "SlowDown", "Throttling", "ThrottlingException",
        "ThrottledException", "TooManyRequestsException",
    }
)  # fmt: skip
# The region does not sell this at all: nothing is wrong, and nothing is there.
_NOT_SOLD_CODES = frozenset({"NoSuchResourceException", "UnsupportedOperation", "Unsupported"})


def _sdk(module: str) -> Any:
    """A module of the SDK, imported when it is first needed: it costs more than most commands."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise CredentialsMissing(missing_extra(error) or str(error), provider=PROVIDER) from None


class NotSoldHere(ProviderError):  # noqa: N818 - a kind of answer more than an error
    """The interface is not there in this region."""

    kind = "not_sold"


class AwsClients:
    """SDK clients by service and region, made once; safe to use from several threads."""

    def __init__(self, options: FetchOptions, session: Any = None) -> None:
        """Take settings only.

        Args:
            options: retries, time-outs, endpoints.
            session: a boto3 session; None: the SDK's default one, made at the first call.
        """
        self.options = options
        self._session = session
        self._made: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()  # sessions are not thread-safe, clients are

    def get(self, service: str, region: str) -> Any:
        """Client of a service in a region."""
        with self._lock:
            key = (service, region)
            if key not in self._made:
                with mapped(f"{service}:client", region):
                    self._made[key] = self._create(service, region)
            return self._made[key]

    def _create(self, service: str, region: str) -> Any:
        if self._session is None:
            self._session = _sdk("boto3").Session()
        config = _sdk("botocore.config").Config(
            retries={"mode": "standard", "total_max_attempts": self.options.retries + 1},
            connect_timeout=min(10.0, self.options.timeout_s),
            read_timeout=self.options.timeout_s,
            max_pool_connections=max(10, self.options.max_workers),
        )
        endpoint = self.options.endpoint(f"aws_{service.replace('-', '_')}") or None
        client = self._session.client(service, region_name=region, config=config, endpoint_url=endpoint)
        cap_botocore(client, self.options.max_bytes)
        client.meta.events.register("before-parse", check_body)
        return client

    def has_credentials(self) -> bool:
        """Whether the SDK's chain finds credentials; asks no server but the machine's own metadata.

        Without the SDK there are none: what is public is read all the same.
        """
        if self._session is None and importlib.util.find_spec("boto3") is None:
            self.options.log.remark(f"no boto3, so no account is queried; {install_command('aws')}")
            return False
        with self._lock, mapped("credentials", ""):
            if self._session is None:
                self._session = _sdk("boto3").Session()
            return self._session.get_credentials() is not None

    def pages(
        self, service: str, method: str, region: str, place: str | None = None, **arguments: Any
    ) -> Iterator[Mapping[str, Any]]:
        """Every page of a call.

        Args:
            service: SDK name of the service.
            method: the client's method, snake case.
            region: region of the endpoint.
            place: region the answer is about, for messages; None: the endpoint's.
            **arguments: the call's own arguments.

        Raises:
            ProviderError: by what went wrong.
        """
        place = region if place is None else place
        client = self.get(service, region)
        api = f"{service}:{client.meta.method_to_api_mapping[method]}"
        name = _token_name(client, method)
        token, seen = "", set()
        for _ in range(MAX_PAGES):
            page = self._page(client, method, api, place, {**arguments, **({name: token} if token else {})})
            yield page
            token = page.get(name) or ""
            if not token:
                return
            if token in seen:
                raise changed(api, f"{name} (the same page again)", place)
            seen.add(token)
        raise changed(api, f"{name} (more than {MAX_PAGES} pages)", place)

    def _page(
        self, client: Any, method: str, api: str, place: str, arguments: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """One page; a body that was cut or damaged is asked for once more, which the SDK does not do."""
        with mapped(api, place):
            try:
                page: Mapping[str, Any] = self._ask(client, method, arguments)
            except Exception as error:
                if not _is_damaged(error) or not self.options.retries:
                    raise
                time.sleep(min(self.options.backoff_s, self.options.max_wait_s))
                page = self._ask(client, method, arguments)
        return page

    def _ask(self, client: Any, method: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = within(
            self.options.timeout_s, lambda: getattr(client, method)(**arguments)
        )
        return answer


def _token_name(client: Any, method: str) -> str:
    """Name of the paging token, the same in request and answer; AWS spells it both ways."""
    operation = client.meta.service_model.operation_model(client.meta.method_to_api_mapping[method])
    members = operation.input_shape.members
    return "nextToken" if "nextToken" in members else "NextToken"


def check_body(response_dict: Mapping[str, Any], **_: Any) -> None:
    """Hook before the SDK parses an answer: it takes a cut body, and JSON it cannot read, for an empty answer.

    Raises:
        IncompleteReadError: when the body is shorter than the server said.
        ResponseParserError: when a JSON body is not JSON.
    """
    if response_dict.get("status_code", 200) >= 300:
        return
    headers, body = response_dict.get("headers", {}), response_dict.get("body", b"")
    length = headers.get("content-length", "")
    if length.isdigit() and "content-encoding" not in headers and len(body) < int(length):
        raise _sdk("botocore.exceptions").IncompleteReadError(
            actual_bytes=len(body), expected_bytes=int(length)
        )
    if "json" in headers.get("content-type", ""):
        try:
            json.loads(body)
        except (ValueError, RecursionError) as error:
            raise _sdk("botocore.parsers").ResponseParserError("the body is not JSON") from error


def _is_damaged(error: Exception) -> bool:
    return isinstance(error, _sdk("botocore.exceptions").IncompleteReadError) or _is_parser_error(error)


@contextlib.contextmanager
def mapped(api: str, region: str) -> Iterator[None]:
    """Turn the SDK's errors into ours.

    Raises:
        ProviderError: the kind that fits; its text is ours, not the SDK's.
    """
    try:
        yield
    except ProviderError:
        raise
    except Exception as error:
        fault = _fault(error, api, region)
        if fault is None:
            raise
        raise fault from None


def _fault(error: Exception, api: str, region: str) -> ProviderError | None:
    from urllib3.exceptions import HTTPError

    sdk = _sdk("botocore.exceptions")
    place = {"provider": PROVIDER, "region": region, "api": api}
    if (refused := too_large(error, place)) is not None:
        return refused
    if isinstance(error, sdk.ClientError):
        return _refused(error, place)
    missing: tuple[type[Exception], ...] = (
        sdk.NoCredentialsError,
        sdk.PartialCredentialsError,
        sdk.CredentialRetrievalError,
        sdk.ProfileNotFound,
        sdk.TokenRetrievalError,
        sdk.SSOError,
        sdk.NoAuthTokenError,
    )
    if isinstance(error, missing):
        return CredentialsMissing(
            f"no usable AWS credentials ({type(error).__name__}); {LOGIN_HINT}", **place
        )
    if isinstance(error, sdk.ParamValidationError | sdk.UnknownServiceError):
        return SchemaChanged(
            "the SDK refuses the request; update the planner or boto3", where="request", **place
        )
    if _is_parser_error(error):
        return SchemaChanged("the answer cannot be read", where="body", **place)
    if isinstance(error, CallTimedOut):
        return Unreachable(f"{error}; check the network and try again", **place)
    if isinstance(error, sdk.HTTPClientError | HTTPError | sdk.IncompleteReadError | sdk.BotoCoreError):
        return Unreachable(f"{_reason(error)}; check the network and try again", **place)
    return None


def _is_parser_error(error: Exception) -> bool:
    return isinstance(error, _sdk("botocore.parsers").ResponseParserError)


def _reason(error: Exception) -> str:
    sdk = _sdk("botocore.exceptions")

    words: tuple[tuple[type[Exception], str], ...] = (
        (sdk.ConnectTimeoutError, "no connection in time"),
        (sdk.ReadTimeoutError, "no answer in time"),
        (sdk.SSLError, "TLS failed"),
        (sdk.ProxyConnectionError, "the proxy failed"),
        (sdk.EndpointConnectionError, "the endpoint cannot be reached"),
        (sdk.ConnectionClosedError, "the connection was closed"),
        (sdk.IncompleteReadError, "the answer was cut short"),
    )
    return next((text for kind, text in words if isinstance(error, kind)), type(error).__name__)


def _refused(error: Any, place: Mapping[str, str]) -> ProviderError:
    """The error of a request that AWS answered with a refusal, by its code and status."""
    answer = error.response
    code = str(answer.get("Error", {}).get("Code", ""))
    status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    tries = int(answer.get("ResponseMetadata", {}).get("RetryAttempts", 0)) + 1
    if code == "OptInRequired" or (code == "AuthFailure" and place["region"] not in ("", HOME_REGION)):
        # The home region took the same credentials: a region refuses them where the account has not opted in.
        return ProviderError(f"the account has not opted in to this region ({code}); skipped", **place)
    if code in _CREDENTIAL_CODES:
        return CredentialsMissing(
            f"AWS refuses the credentials ({code}): expired or wrong; {LOGIN_HINT}", **place
        )
    if code in _DENIED_CODES or status == 403:
        permission = _PERMISSIONS.get(place["api"], "") or place["api"]
        return PermissionDenied(
            "AWS denies the call; allow it in an IAM policy", permission=permission, **place
        )
    if code in _THROTTLE_CODES or status == 429:
        return RateLimited(f"still throttled after {tries} tries ({code}); try again later", **place)
    if code in _NOT_SOLD_CODES:
        return NotSoldHere(f"not available here ({code})", **place)
    if status >= 500:
        return Unreachable(f"AWS answers HTTP {status} after {tries} tries; try again later", **place)
    return SchemaChanged(f"AWS refuses the request ({code}); update the planner", where="request", **place)
