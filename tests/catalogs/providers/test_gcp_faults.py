"""Every fault of every interface of Google Cloud: what the user sees, and that yesterday's prices still load."""

from __future__ import annotations

import pytest

from catalogs.providers.base import ProviderError
from catalogs.refresh.report import Outcome
from catalogs.refresh.run import refresh
from tests.catalogs.providers.gcp_setup import make, options, provider
from tests.catalogs.stored import stored
from tests.fakes import gcp as fake
from tests.fakes.http_base import KINDS as COMMON_KINDS
from tests.fakes.http_base import LATE_S, LIMIT_S

APIS = {
    fake.REGIONS: "compute.regions.list",
    fake.MACHINE_TYPES: "compute.machineTypes.aggregatedList",
    fake.ACCELERATOR_TYPES: "compute.acceleratorTypes.aggregatedList",
    fake.SKUS: "cloudbilling.services.skus.list",
}
PERMISSIONS = {
    fake.REGIONS: "compute.regions.list",
    fake.MACHINE_TYPES: "compute.machineTypes.list",
    fake.ACCELERATOR_TYPES: "compute.acceleratorTypes.list",
    fake.SKUS: "cloudbilling.googleapis.com",
    fake.REGION: "compute.regions.get",
}
KINDS = {**COMMON_KINDS, "empty_page": "schema_changed"}
HARMLESS = ("throttle_then_ok", "http_500_once", "duplicate_rows")

pytestmark = pytest.mark.usefixtures("home")


def _refresh(faults: dict[str, str]) -> Outcome:
    with fake.fake_gcp(faults, slow_s=LATE_S) as server:
        given = options(server, timeout_s=LIMIT_S if "slow" in faults.values() else 5.0)

        return refresh(["gcp"], given, create=lambda _, chosen: make(chosen)).outcomes[0]


@pytest.mark.parametrize("route", APIS)
@pytest.mark.parametrize("fault", KINDS)
def test_a_fault_is_named_and_yesterday_stays(route: str, fault: str) -> None:
    before = stored("gcp").sha256["gcp"]
    outcome = _refresh({route: fault})
    assert outcome.status == ("skipped" if fault == "expired_credentials" else "failed")
    failure = outcome.failures[0]
    assert failure.kind == KINDS[fault]
    assert failure.api == APIS[route]
    assert failure.message.startswith("gcp ")
    assert fake.SECRET not in str(outcome)
    if fault == "access_denied":
        assert PERMISSIONS[route] in failure.message
    if fault == "expired_credentials":
        assert "gcloud auth application-default login" in failure.message
    assert outcome.last_good_as_of
    assert stored("gcp").sha256["gcp"] == before


@pytest.mark.parametrize("route", APIS)
@pytest.mark.parametrize("fault", HARMLESS)
def test_a_passing_fault_is_not_seen(route: str, fault: str) -> None:
    outcome = _refresh({route: fault})
    assert (outcome.status, outcome.failures, outcome.refused) == ("added", (), {})
    assert (outcome.n_instance_types, outcome.n_offers) == (16, 52)


@pytest.mark.parametrize("fault", [*KINDS, *HARMLESS])
def test_faults_of_quotas(fault: str) -> None:
    with fake.fake_gcp({fake.REGION: fault}, slow_s=LATE_S) as server:
        one = provider(server, timeout_s=LIMIT_S if fault == "slow" else 5.0)
        if fault in HARMLESS:
            assert len(one.fetch_quotas(["us-central1"])) == 5
            return
        with pytest.raises(ProviderError) as caught:
            one.fetch_quotas(["us-central1"])
    assert caught.value.kind == KINDS[fault]
    assert (caught.value.region, caught.value.api) == ("us-central1", "compute.regions.get")
    assert fake.SECRET not in str(caught.value)
    if fault == "access_denied":
        assert PERMISSIONS[fake.REGION] in str(caught.value)


def test_one_region_without_quotas_hides_no_other() -> None:
    with fake.fake_gcp({"/compute/v1/projects/*/regions/europe-west4": "access_denied"}) as server:
        one = provider(server)
        rows = one.fetch_quotas([])
    assert set(rows["region"]) == {"us-central1"}
    assert [error.region for error in one.options.log.failures] == ["europe-west4"]
