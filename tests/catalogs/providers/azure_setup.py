"""An Azure provider that reads from the fake, quickly."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from catalogs.providers.azure import AzureProvider
from catalogs.providers.base import FetchOptions
from tests.fakes import azure as fake

if TYPE_CHECKING:
    from tests.fakes.http_base import FakeServer

AS_OF = "2026-11-20"
REGIONS = ["eastus", "westeurope"]
QUICK: dict[str, Any] = {"retries": 1, "backoff_s": 0.001, "max_wait_s": 0.01, "timeout_s": 5.0}


def options(server: FakeServer, **more: Any) -> FetchOptions:
    """Options that point at the fake."""
    return FetchOptions(**{"endpoints": fake.endpoints(server), **QUICK, **more})


def make(given: FetchOptions, *, public: bool = False) -> AzureProvider:
    """The provider under test, with options as they are; `public` is without a login."""
    more = {} if public else {"client": fake.client_factory()}
    return AzureProvider(given, today=lambda: date.fromisoformat(AS_OF), **more)


def provider(server: FakeServer, *, public: bool = False, **more: Any) -> AzureProvider:
    """The provider under test, pointed at the fake."""
    return make(options(server, **more), public=public)
