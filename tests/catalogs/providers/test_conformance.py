"""Every registered provider keeps to the contract; each is read through its fake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from catalogs.providers.aws import AwsProvider
from catalogs.providers.base import FetchOptions, Provider
from catalogs.providers.gpuhunt import GpuhuntProvider
from catalogs.providers.registry import BUILT_IN
from tests.catalogs.providers import azure_setup, gcp_setup
from tests.catalogs.providers.conformance import ProviderConformance
from tests.catalogs.providers.test_alibaba import provider as alibaba_provider
from tests.catalogs.providers.test_aws_faults import QUICK
from tests.fakes import alibaba, azure, gcp, gpuhunt
from tests.fakes.aws import NOW, environment, fake_aws
from tests.fakes.aws_clients import SharedClients
from tests.fakes.provider import FakeProvider


class TestAws(ProviderConformance):
    lists_unsold = False
    refused = frozenset(  # the fake sells Gaudi 1, whose peaks the catalog does not know
        {
            "instance_types.accelerator: unknown accelerator ...",
            "offers.instance_type: unknown instance type ...",
        }
    )

    @contextmanager
    def open(self) -> Iterator[Provider]:
        with fake_aws() as server, pytest.MonkeyPatch.context() as patch:
            for name, value in environment(server).items():
                patch.setenv(name, value)
            options = FetchOptions(**{**QUICK, "timeout_s": 10.0})
            yield AwsProvider(options, SharedClients(options), now=lambda: NOW)


class TestGcp(ProviderConformance):
    n_regions = 99
    lists_unsold = False

    @contextmanager
    def open(self) -> Iterator[Provider]:
        with gcp.fake_gcp() as server:
            yield gcp_setup.provider(server)


class TestAzure(ProviderConformance):
    regions = tuple(azure_setup.REGIONS)
    lists_unsold = False

    @contextmanager
    def open(self) -> Iterator[Provider]:
        with azure.fake_azure() as server:
            yield azure_setup.provider(server, regions=tuple(azure_setup.REGIONS))


class TestAlibaba(ProviderConformance):
    @contextmanager
    def open(self) -> Iterator[Provider]:
        with alibaba.server() as server:
            yield alibaba_provider(server)


class TestGpuhunt(ProviderConformance):
    n_regions = 99
    lists_unsold = False
    refused = frozenset(
        {
            "instance_types.accelerator: is missing",
            "offers.instance_type: unknown instance type ...",
            "offers.price_per_hour: is missing",
            "offers.region: is missing",
        }
    )

    @contextmanager
    def open(self) -> Iterator[Provider]:
        yield GpuhuntProvider(FetchOptions(), gpuhunt.module)


class TestFake(ProviderConformance):
    @contextmanager
    def open(self) -> Iterator[Provider]:
        yield FakeProvider()


def test_no_registered_provider_is_left_out() -> None:
    tested = {cls.__name__.removeprefix("Test").lower() for cls in ProviderConformance.__subclasses__()}
    assert set(BUILT_IN) <= tested
