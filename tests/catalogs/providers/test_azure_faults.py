"""Every fault of every interface of Azure: what the user sees, and that yesterday's prices still load."""

from __future__ import annotations

import pytest

from catalogs.providers.base import ProviderError
from catalogs.refresh.report import Outcome
from catalogs.refresh.run import refresh
from tests.catalogs.providers.azure_setup import REGIONS, make, options, provider
from tests.catalogs.stored import stored
from tests.fakes import azure as fake
from tests.fakes.http_base import KINDS as COMMON_KINDS
from tests.fakes.http_base import LATE_S, LIMIT_S

APIS = {fake.SKUS: "Microsoft.Compute/skus", fake.RETAIL: "Retail Prices API"}
PERMISSIONS = {
    fake.SKUS: "Microsoft.Compute/skus/read",
    fake.USAGES: "Microsoft.Compute/locations/usages/read",
    fake.RETAIL: "Retail Prices API",
}
KINDS = {**COMMON_KINDS, "empty_page": "schema_changed"}
HARMLESS = ("throttle_then_ok", "http_500_once", "duplicate_rows")

pytestmark = pytest.mark.usefixtures("home")


def _refresh(faults: dict[str, str], *, regions: tuple[str, ...] = tuple(REGIONS)) -> Outcome:
    with fake.fake_azure(faults, slow_s=LATE_S) as server:
        slow = "slow" in faults.values()
        given = options(server, timeout_s=LIMIT_S if slow else 5.0, regions=regions)

        return refresh(["azure"], given, create=lambda _, chosen: make(chosen)).outcomes[0]


@pytest.mark.parametrize("route", APIS)
@pytest.mark.parametrize("fault", KINDS)
def test_a_fault_is_named_and_yesterday_stays(route: str, fault: str) -> None:
    before = stored("azure").sha256["azure"]
    outcome = _refresh({route: fault})
    assert outcome.status == ("skipped" if fault == "expired_credentials" else "failed")
    failure = outcome.failures[0]
    assert failure.kind == KINDS[fault]
    assert failure.api == APIS[route]
    assert failure.message.startswith("azure ")
    assert fake.SECRET not in str(outcome)
    assert fake.SUBSCRIPTION not in str(outcome)
    if fault == "access_denied":
        assert PERMISSIONS[route] in failure.message
    if (fault, route) == ("expired_credentials", fake.SKUS):
        assert "az login" in failure.message
    assert outcome.last_good_as_of
    assert stored("azure").sha256["azure"] == before


@pytest.mark.parametrize("route", APIS)
@pytest.mark.parametrize("fault", HARMLESS)
def test_a_passing_fault_is_not_seen(route: str, fault: str) -> None:
    outcome = _refresh({route: fault})
    assert (outcome.status, outcome.failures, outcome.refused) == ("added", (), {})


@pytest.mark.parametrize("fault", [*KINDS, *HARMLESS])
def test_faults_of_quotas(fault: str) -> None:
    with fake.fake_azure({fake.USAGES: fault}, slow_s=LATE_S) as server:
        one = provider(server, timeout_s=LIMIT_S if fault == "slow" else 5.0)
        if fault in HARMLESS:
            assert len(one.fetch_quotas(["eastus"])) == 3
            return
        with pytest.raises(ProviderError) as caught:
            one.fetch_quotas(["eastus"])
    assert caught.value.kind == KINDS[fault]
    assert (caught.value.region, caught.value.api) == ("eastus", "Microsoft.Compute/locations/usages")
    assert fake.SECRET not in str(caught.value)
    if fault == "access_denied":
        assert PERMISSIONS[fake.USAGES] in str(caught.value)
