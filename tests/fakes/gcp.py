"""A loopback Google Cloud: Compute (machine types, accelerator types, regions) and the Cloud Billing Catalog.

Replies have the shape of the real interfaces (camel case, zones as scopes, pages by token) with a few machines.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fakes.http_base import Change, FakeServer, Handler, Reply, Request

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "gcp"
PROJECT = "example-project"
SECRET = "fake-token-0d2f6c"  # must never be seen in a message, a log or a snapshot
API_KEY = "fake-key-77ab01"
MACHINE_TYPES = "/compute/v1/projects/*/aggregated/machineTypes"
ACCELERATOR_TYPES = "/compute/v1/projects/*/aggregated/acceleratorTypes"
REGIONS = "/compute/v1/projects/*/regions"
REGION = "/compute/v1/projects/*/regions/*"
SKUS = "/v1/services/6F81-5844-456A/skus"
_PAGES = 3


def fixture(name: str) -> Any:
    """A recorded-shape reply."""
    return json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))


def _page(items: list[Any], request: Request, parameter: str) -> tuple[list[Any], str]:
    """A third of the items and the token of the next page, whatever size the client asks for."""
    at = int(request.param(parameter) or 0)
    size = -(-len(items) // _PAGES) or 1
    more = at + size < len(items)
    return items[at : at + size], str(at + size) if more else ""


def _aggregated(name: str) -> Handler:
    def answer(request: Request) -> Any:
        items, token = _page(list(fixture(name).items()), request, "pageToken")
        body = {"kind": f"compute#{name}", "id": "x", "items": dict(items), "selfLink": ""}
        return {**body, "nextPageToken": token} if token else body

    return answer


def _regions(request: Request) -> Any:
    items, token = _page(fixture("regions"), request, "pageToken")
    return {"kind": "compute#regionList", "items": items, **({"nextPageToken": token} if token else {})}


def _region(request: Request) -> Any:
    return {**fixture("region"), "name": request.path.rpartition("/")[2]}


def _skus(request: Request) -> Any:
    items, token = _page(fixture("skus"), request, "pageToken")
    return {"skus": items, "nextPageToken": token}


ROUTES: Mapping[str, Handler] = {
    MACHINE_TYPES: _aggregated("machine_types"),
    ACCELERATOR_TYPES: _aggregated("accelerator_types"),
    REGION: _region,
    REGIONS: _regions,
    SKUS: _skus,
}
_ERRORS = {
    "throttle": (429, "rateLimitExceeded", "RESOURCE_EXHAUSTED"),
    "http_500": (500, "backendError", "INTERNAL"),
    "expired": (401, "authError", "UNAUTHENTICATED"),
    "access": (403, "forbidden", "PERMISSION_DENIED"),
}


def error_reply(kind: str, request: Request) -> Reply | None:
    """Google's error body."""
    for start, (code, reason, status) in _ERRORS.items():
        if kind.startswith(start):
            message = f"Request had a problem with {SECRET}"
            errors = [{"message": message, "domain": "global", "reason": reason}]
            body = {"error": {"code": code, "message": message, "status": status, "errors": errors}}
            return Reply(body, code, {"Retry-After": "0"} if code == 429 else {})
    return None


def _each_list(value: Any, twice: bool) -> Any:
    """Lists emptied or doubled at every depth but inside a machine or a SKU."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [*value, *value] if twice else []
    if isinstance(value, dict):
        return {key: _each_list(inner, twice) for key, inner in value.items()}
    return value


def _change(twice: bool) -> Change:
    return lambda data: json.dumps(_each_list(json.loads(data), twice)).encode()


CHANGES: Mapping[str, Change] = {"empty_page": _change(False), "duplicate_rows": _change(True)}


def fake_gcp(
    faults: str | Mapping[str, str] | None = None,
    *,
    routes: Mapping[str, Handler] | None = None,
    slow_s: float = 1.0,
    latency_s: float = 0.0,
) -> FakeServer:
    """The server; `faults` by the route constants of this module."""
    return FakeServer(
        {**ROUTES, **(routes or {})},
        faults,
        error_reply=error_reply,
        changes=CHANGES,
        slow_s=slow_s,
        latency_s=latency_s,
    )


def endpoints(fake: FakeServer) -> dict[str, str]:
    """For `FetchOptions.endpoints`."""
    return {"gcp_compute": fake.url, "gcp_billing": fake.url}


def environment(fake: FakeServer, directory: Path) -> dict[str, str]:
    """For a run of the program: endpoints, and a user's login whose token needs no renewal.

    A service account would do too, but its SDK asks a Google address for the account's regions.
    """
    account = {
        "type": "authorized_user",
        "client_id": "client",
        "client_secret": "not-used",
        "refresh_token": "not-used",
        "token": SECRET,
        "expiry": "2099-01-01T00:00:00Z",
        "quota_project_id": PROJECT,
    }
    path = directory / "application_default_credentials.json"
    path.write_text(json.dumps(account), encoding="utf-8")
    return {
        "GOOGLE_APPLICATION_CREDENTIALS": str(path),
        "GOOGLE_CLOUD_PROJECT": PROJECT,
        "PLANNER_GCP_ENDPOINT": fake.url,
        "PLANNER_BILLING_ENDPOINT": fake.url,
    }
