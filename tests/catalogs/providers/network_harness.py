"""One harness for all providers: a fault of the table at one interface, asked through the provider's own transport."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from catalogs.providers.base import FetchOptions, ProviderError
from tests.catalogs.providers import gcp_setup
from tests.catalogs.providers.network_faults import FINE, NetworkFault, json_of
from tests.fakes import alibaba, azure, gcp
from tests.fakes.aws import SECRETS, World, environment, fake_aws
from tests.fakes.http_base import FakeServer

QUICK = FetchOptions(
    retries=1, backoff_s=0.001, max_wait_s=0.01, timeout_s=5.0, max_bytes=8 << 20, max_workers=2
)
LATEST_S = 0.25  # of an answer that never ends
MOST_S = 30.0  # of any fault, retries and pauses included: one that is waited for takes a minute
Ask = Callable[[FetchOptions], Any]


@dataclass
class Asked:
    """A provider in front of its fake, ready to be asked again and again.

    Attributes:
        server: the fake.
        ask: one interface of the provider, with these options.
        good: what it answers without a fault.
        secrets: what no message may hold.
    """

    server: FakeServer
    ask: Ask
    good: str
    secrets: tuple[str, ...]


@contextlib.contextmanager
def _aws() -> Iterator[tuple[FakeServer, Ask, tuple[str, ...]]]:
    from catalogs.providers.aws import AwsProvider
    from tests.fakes.aws_clients import SharedClients

    with fake_aws(world=World()) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None))
        for name, value in environment(server).items():
            patch.setenv(name, value)
        yield server, lambda given: AwsProvider(given, SharedClients(given)).fetch_regions(), SECRETS


@contextlib.contextmanager
def _gcp() -> Iterator[tuple[FakeServer, Ask, tuple[str, ...]]]:
    with gcp.fake_gcp() as server:
        yield (
            server,
            lambda given: gcp_setup.make(replace(given, endpoints=gcp.endpoints(server))).fetch_regions(),
            (gcp.SECRET,),
        )


@contextlib.contextmanager
def _azure() -> Iterator[tuple[FakeServer, Ask, tuple[str, ...]]]:
    from catalogs.providers.azure_client import AzureClient

    with azure.fake_azure() as server:

        def ask(given: FetchOptions) -> Any:
            options = replace(given, endpoints=azure.endpoints(server))
            return list(AzureClient(options, azure.client_factory()).resource_skus("eastus"))

        yield server, ask, (azure.SECRET,)


@contextlib.contextmanager
def _azure_retail() -> Iterator[tuple[FakeServer, Ask, tuple[str, ...]]]:
    from catalogs.providers.azure_client import AzureClient

    with azure.fake_azure() as server:

        def ask(given: FetchOptions) -> Any:
            options = replace(given, endpoints=azure.endpoints(server))
            pages = list(AzureClient(options, azure.client_factory()).retail_pages("eastus"))
            return [
                [str(row) for row in page.rows] if hasattr(page, "rows") else page.items for page in pages
            ]

        yield server, ask, (azure.SECRET,)


@contextlib.contextmanager
def _alibaba() -> Iterator[tuple[FakeServer, Ask, tuple[str, ...]]]:
    from catalogs.providers.alibaba import AlibabaProvider

    with alibaba.server() as server:

        def ask(given: FetchOptions) -> Any:
            return AlibabaProvider(
                given, lambda _, options: alibaba.HttpClient(server.url, options)
            ).fetch_regions()

        yield server, ask, ("LTAIsecretKeyIdOfTheUser",)


@contextlib.contextmanager
def _alibaba_sdk() -> Iterator[tuple[FakeServer, Ask, tuple[str, ...]]]:
    from catalogs.providers.alibaba import create

    keys = {"ID": "LTAIsecretKeyIdOfTheUser", "SECRET": "alibabaSecretOfTheUser0123456789"}
    with alibaba.server() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in keys.items():
            patch.setenv(f"ALIBABA_CLOUD_ACCESS_KEY_{name}", value)

        def ask(given: FetchOptions) -> Any:
            return create(replace(given, endpoints={"alibaba_ecs": server.url})).fetch_regions()

        yield server, ask, tuple(keys.values())


# Interfaces, each with its own transport: four SDKs, plain HTTP, and the calls behind Alibaba Cloud's client.
INTERFACES = {
    "aws": _aws,
    "gcp": _gcp,
    "azure": _azure,
    "azure retail": _azure_retail,
    "alibaba": _alibaba,
    "alibaba sdk": _alibaba_sdk,
}
NEEDED = {"alibaba sdk": "alibabacloud_ecs20140526"}  # modules of extras


@contextlib.contextmanager
def opened(interface: str) -> Iterator[Asked]:
    """Open an interface and ask it once without a fault."""
    with INTERFACES[interface]() as (server, ask, secrets):
        yield Asked(server, ask, json_of(ask(QUICK)), secrets)


def outcome(asked: Asked, fault: NetworkFault) -> str:
    """What is wrong with how a fault ends; "" where it ends as it may."""
    options = replace(QUICK, timeout_s=LATEST_S) if fault.is_slow else QUICK
    asked.server.wire = fault.wire
    began = time.monotonic()
    try:
        answer = json_of(asked.ask(options))
        kind = FINE if answer == asked.good else f"another answer: {answer[:80]}"
        text = ""
    except ProviderError as error:
        kind, text = error.kind, str(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        return f"{type(error).__name__}: {str(error)[:120]}"
    finally:
        asked.server.wire = None
    if kind not in fault.allowed:
        return f"{kind}: {text[:160]}"
    if any(secret in text for secret in asked.secrets) or "\n" in text or len(text) > 400:
        return f"a message that shows too much: {text[:160]}"
    took = time.monotonic() - began
    return f"took {took:.1f} s" if took > MOST_S else ""
