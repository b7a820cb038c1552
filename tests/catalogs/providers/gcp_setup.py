"""A GCP provider that reads from the fake, quickly."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from catalogs.providers.base import FetchOptions
from catalogs.providers.gcp import GcpProvider
from catalogs.providers.gcp_client import Login
from tests.fakes import gcp as fake

if TYPE_CHECKING:
    from tests.fakes.http_base import FakeServer

AS_OF = "2026-11-20"
QUICK: dict[str, Any] = {"retries": 1, "backoff_s": 0.001, "max_wait_s": 0.01, "timeout_s": 5.0}


def login() -> Login:
    """Credentials with the fake's token, which cannot be renewed."""
    from google.oauth2.credentials import Credentials

    return Login(Credentials(token=fake.SECRET), fake.PROJECT)  # type: ignore[no-untyped-call]


def options(server: FakeServer, **more: Any) -> FetchOptions:
    """Options that point at the fake."""
    return FetchOptions(**{"endpoints": fake.endpoints(server), **QUICK, **more})


def make(given: FetchOptions) -> GcpProvider:
    """The provider under test, with options as they are."""
    return GcpProvider(given, login=login, today=lambda: date.fromisoformat(AS_OF))


def provider(server: FakeServer, **more: Any) -> GcpProvider:
    """The provider under test, pointed at the fake."""
    return make(options(server, **more))
