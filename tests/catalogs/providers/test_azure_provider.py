"""Azure as a provider: with a login and without, sizes, restrictions, quotas, paging; against the fake."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError

from catalogs.providers.azure import API_CALLS, AzureProvider, create
from catalogs.providers.azure_client import SUBSCRIPTION_VARIABLE, ProviderError, provider_error
from catalogs.providers.azure_types import load_size_patterns, parse_resource_skus, parse_usages, type_rows
from catalogs.providers.base import CredentialsMissing, FetchLog, SchemaChanged, frame_rows
from catalogs.providers.row_reader import RowReader
from catalogs.store.validate import References, validate_rows
from tests.catalogs.providers.azure_setup import AS_OF, REGIONS, options, provider
from tests.fakes import azure as fake
from tests.fakes.http_base import Request

ND = "Standard_ND96asr_v4"


def _sku(**change: Any) -> dict[str, Any]:
    return {**fake.fixture("resource_skus")[0], **change}


def _told(**capabilities: str) -> list[dict[str, str]]:
    usual = {"vCPUs": "96", "MemoryGB": "900", "GPUs": "8"}
    return [{"name": name, "value": value} for name, value in {**usual, **capabilities}.items() if value]


def test_sizes_and_prices_come_out_valid() -> None:
    with fake.fake_azure() as server:
        one = provider(server)
        types = frame_rows(one.fetch_instance_types(REGIONS))
        offers = frame_rows(one.fetch_offers(REGIONS, frozenset()))
    references = References.of([{"accelerator": row["accelerator"]} for row in types], types, {})
    assert validate_rows("instance_types", types, references)[1] == ()
    assert validate_rows("offers", offers, references)[1] == ()
    assert (len(types), len(offers)) == (5, 13)
    assert {row["purchase_option"] for row in offers} == set(AzureProvider.info.purchase_options)
    assert {row["source"].partition(";")[0] for row in offers} == {"Retail Prices API 2023-01-01-preview"}
    evicted = [row for row in offers if "evicted" in row["source"]]
    assert [(row["instance_type"], row["purchase_option"]) for row in evicted] == [(ND, "spot")]
    assert evicted[0]["source"].endswith("evicted 5-10 % per hour (Resource Graph)")
    assert evicted[0]["interruption_band"] == ""  # the catalog's bands are per month


def test_every_page_of_every_region_is_read() -> None:
    with fake.fake_azure() as server:
        one = provider(server)
        one.fetch_offers(REGIONS, frozenset())
        assert server.count(fake.RETAIL) == 6  # three pages per region
        assert server.count(fake.SKUS) == 6
        filters = {request.param("$filter") for request in server.requests if request.path == fake.RETAIL}
    wanted = "serviceName eq 'Virtual Machines' and armRegionName eq 'eastus' and contains(armSkuName, 'Standard_N')"
    assert wanted in filters


def test_without_a_login_known_sizes_have_public_prices() -> None:
    with fake.fake_azure() as server:
        one = provider(server, public=True)
        types = {row["instance_type"]: row for row in frame_rows(one.fetch_instance_types(REGIONS))}
        offers = frame_rows(one.fetch_offers(REGIONS, frozenset({"on_demand"})))
        assert server.count(fake.SKUS) == 0
    assert len(types) == 51
    assert "az login" in one.options.log.remarks[0]
    prices = {(row["region"], row["instance_type"]): row["price_per_hour"] for row in offers}
    assert prices["eastus", ND] == "27.197"
    assert not one.info.needs_credentials


def test_without_azure_identity_the_login_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SUBSCRIPTION_VARIABLE, fake.SUBSCRIPTION)
    monkeypatch.setitem(__import__("sys").modules, "azure.identity", None)
    with (
        fake.fake_azure() as server,
        pytest.raises(CredentialsMissing, match=r"ml-training-planner\[azure\]"),
    ):
        create(options(server)).fetch_quotas(["eastus"])


def test_what_is_left_aside_is_counted() -> None:
    with fake.fake_azure() as server:
        one = provider(server)
        one.fetch_offers(REGIONS, frozenset())
    reasons = ("Low Priority", "Windows", "cloud services", "dedicated host", "dev/test")
    assert {reason: one.left_aside[reason] for reason in reasons} == dict.fromkeys(reasons, 1)
    assert not any("Windows" in text for text in one.options.log.remarks)


def test_regions_are_those_of_the_table() -> None:
    with fake.fake_azure() as server:
        regions = provider(server).fetch_regions()
    assert {"eastus", "westeurope"} <= set(regions)


def test_a_size_closed_to_the_subscription_has_no_capacity_there() -> None:
    with fake.fake_azure() as server:
        one = provider(server)
        rows = frame_rows(one.fetch_offers(REGIONS, frozenset({"on_demand"})))
    capacity = {(row["region"], row["instance_type"]): row["capacity"] for row in rows}
    assert capacity["westeurope", ND] == "0"
    assert capacity["eastus", ND] == ""
    assert any("westeurope (NotAvailableForSubscription)" in text for text in one.options.log.remarks)


def test_many_regions_are_one_call_for_all() -> None:
    with fake.fake_azure() as server:
        one = provider(server, max_workers=1)
        assert len(one.fetch_instance_types(REGIONS)) == 5
        assert server.count(fake.SKUS) == 3  # three pages of the list of all regions
        assert len(one.fetch_instance_types(["westeurope"])) == 2
        assert server.count(fake.SKUS) == 3  # asked for once


def test_shares_of_a_gpu_and_links_stay_as_known() -> None:
    with fake.fake_azure() as server:
        rows = {
            row["instance_type"]: row for row in frame_rows(provider(server).fetch_instance_types(REGIONS))
        }
    assert rows["Standard_NV6ads_A10_v5"]["accelerator_count"] == "0.16666667"  # the interface says 1
    assert (rows[ND]["rdma"], rows[ND]["internode_gbps"]) == ("infiniband", "1600")
    new = rows["Standard_ND96isrf_H100_v5"]
    assert (new["accelerator"], new["accelerator_count"], new["intra_node"], new["rdma"]) == (
        "h100-80gb-sxm",
        "8",
        "unknown",
        "unspecified",
    )


def test_zones_leave_out_those_closed() -> None:
    sizes = {(size.name, size.region): size for size in parse_resource_skus(fake.fixture("resource_skus"))}
    assert sizes["Standard_NC24ads_A100_v4", "eastus"].zones == ("1", "2")
    assert sizes[ND, "eastus"].zones == ("1", "2")
    assert not any(name == "Standard_D4s_v5" for name, _ in sizes)


def test_another_count_than_the_bundled_one_is_told_and_taken() -> None:
    log = FetchLog()
    (row,) = type_rows(parse_resource_skus([_sku(capabilities=_told(GPUs="4"))]), AS_OF, log)
    assert row["accelerator_count"] == "4"
    assert log.remarks == [f"{ND}: 4 GPUs by the interface, 8 in the bundled catalog"]


@pytest.mark.parametrize(
    ("item", "where"),
    [
        (_sku(capabilities=_told(vCPUs="")), "capabilities.vCPUs"),
        (_sku(capabilities=_told(MemoryGB="much")), "capabilities.MemoryGB"),
        (_sku(capabilities=_told(GPUs="NaN")), "capabilities.GPUs"),
        (_sku(name=None), "name"),
        (_sku(locations=[], locationInfo=[]), "locations"),
    ],
)
def test_a_size_that_lacks_something_costs_itself(item: dict[str, Any], where: str) -> None:
    log = FetchLog()
    found = parse_resource_skus([item, _sku()], RowReader("instance_type", log))
    assert [size.name for size in found] == [ND]
    assert log.not_understood[0].reason == f"{where}: missing or not as documented"


def test_quotas_are_those_of_vcpus() -> None:
    with fake.fake_azure() as server:
        rows = frame_rows(provider(server).fetch_quotas(["eastus"]))
    assert {row["code"]: row["limit"] for row in rows} == {
        "cores": "100",
        "standardNDASv4_A100Family": "192",
        "lowPriorityCores": "3",
    }
    assert {row["unit"] for row in rows} == {"vCPU"}


@pytest.mark.parametrize(
    ("usage", "where"), [({"limit": 1}, "name.value"), ({"name": {"value": "x"}}, "limit")]
)
def test_a_usage_that_lacks_something_costs_itself(usage: dict[str, Any], where: str) -> None:
    log = FetchLog()
    good = {"name": {"value": "cores"}, "limit": 1}
    assert len(parse_usages("eastus", [usage, good], log)) == 1
    assert log.not_understood[0].reason == f"{where}: missing or not as documented"
    with pytest.raises(SchemaChanged, match=where):
        parse_usages("eastus", [usage])


def test_a_region_without_gpu_sizes_has_no_prices_and_that_is_no_fault() -> None:
    with fake.fake_azure() as server:
        one = provider(server)
        one.fetch_instance_types([])
        assert len(one.fetch_offers(["australiacentral2"], frozenset())) == 0
        with pytest.raises(SchemaChanged):
            one.fetch_offers(["australiacentral", "australiacentral2"], frozenset())
    assert "australiacentral2: no prices of sizes with GPUs" in one.options.log.remarks


def test_one_region_that_fails_hides_no_other() -> None:
    def partly(request: Request) -> Any:
        if "westeurope" in request.param("$filter"):
            return fake.Reply({"error": {"code": 500}}, 500)
        return fake.ROUTES[fake.RETAIL](request)

    with fake.fake_azure(routes={fake.RETAIL: partly}) as server:
        one = provider(server)
        rows = frame_rows(one.fetch_offers(REGIONS, frozenset()))
    assert {row["region"] for row in rows} == {"eastus"}
    assert [(error.region, error.kind) for error in one.options.log.failures] == [
        ("westeurope", "unreachable")
    ]


@pytest.mark.parametrize("link", ["https://elsewhere.example/api/retail/prices?$skip=1", "same"])
def test_a_next_page_elsewhere_or_in_a_circle_is_not_followed(link: str) -> None:
    def odd(request: Request) -> Any:
        target = f"{request.base_url}{request.path}?x=1" if link == "same" else link
        return {"Items": fake.fixture("retail_items")[:1], "NextPageLink": target}

    with fake.fake_azure(routes={fake.RETAIL: odd}) as server:
        with pytest.raises(SchemaChanged) as caught:
            provider(server).fetch_offers(["eastus"], frozenset())
        assert len(server.requests) < 10
    assert caught.value.where == "NextPageLink"


@pytest.mark.parametrize(
    "fault", ["access_denied", "expired_credentials", "http_500_forever", "malformed_json"]
)
def test_no_secret_in_messages_or_logs(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)  # the SDK's own debug notes repeat what a server says
    with fake.fake_azure(fault) as server:
        one = provider(server)
        for call in (lambda: one.fetch_quotas(["eastus"]), lambda: one.fetch_instance_types(REGIONS)):
            with pytest.raises(ProviderError) as caught:
                call()
            assert fake.SECRET not in str(caught.value)
            assert fake.SUBSCRIPTION not in str(caught.value)
            assert caught.value.__cause__ is None
        assert any("authorization" in request.headers for request in server.requests)
    assert fake.SECRET not in caplog.text


def test_a_defect_of_ours_is_not_called_a_fault_of_azure() -> None:
    assert provider_error(KeyError("x"), "api", "", 1) is None


def test_every_call_has_its_permission_or_is_public() -> None:
    needs = {call.call: call.permission for call in API_CALLS}
    assert [name for name, permission in needs.items() if not permission] == ["Retail Prices API"]
    assert all(permission.endswith("/read") for permission in needs.values() if permission)


def test_size_patterns_name_their_source_and_a_known_accelerator() -> None:
    from catalogs.tables.accelerators import load_accelerators

    known = set(load_accelerators()["accelerator"])
    assert all(pattern.source and pattern.as_of for pattern in load_size_patterns())
    assert {pattern.accelerator for pattern in load_size_patterns()} <= known


@pytest.mark.parametrize(
    ("code", "status", "says"),
    [
        ("MissingSubscriptionRegistration", 409, "az provider register"),
        ("SubscriptionNotFound", 404, SUBSCRIPTION_VARIABLE),
        ("ReadOnlyDisabledSubscription", 409, "disabled"),
    ],
)
def test_codes_of_the_subscription_say_what_to_do(code: str, status: int, says: str) -> None:
    error = HttpResponseError("secret")
    error.status_code, error.error = status, SimpleNamespace(code=code)  # type: ignore[assignment]
    fault = provider_error(error, "Microsoft.Compute/skus", "eastus", 1)
    assert fault is not None
    assert says in str(fault) and "secret" not in str(fault)
