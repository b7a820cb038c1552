"""Google Cloud as a provider: machines, zones, quotas, paging, retries, logins; against the fake."""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import Any

import pytest

from catalogs.providers import gcp_client
from catalogs.providers.base import CredentialsMissing, FetchLog, PermissionDenied, SchemaChanged, frame_rows
from catalogs.providers.gcp import API_CALLS, GcpProvider, create
from catalogs.providers.gcp_client import Login, provider_error
from catalogs.providers.gcp_prices import load_machine_rules
from catalogs.providers.gcp_types import (
    Machine,
    attach_accelerators,
    load_accelerator_types,
    parse_machine,
    parse_quotas,
    type_rows,
)
from catalogs.store.validate import References, validate_rows
from tests.catalogs.providers.gcp_setup import AS_OF, options, provider
from tests.fakes import gcp as fake
from tests.fakes.http_base import Request

ITEM = {"name": "a2-highgpu-1g", "guest_cpus": 12, "memory_mb": 87040}


def _rows(frame: Any) -> list[dict[str, str]]:
    return frame_rows(frame)


def test_machines_of_every_page_and_zone_come_out_valid() -> None:
    with fake.fake_gcp() as server:
        one = provider(server)
        types, offers = _rows(one.fetch_instance_types([])), _rows(one.fetch_offers([], frozenset()))
        pages = server.count(fake.MACHINE_TYPES)
    assert pages == 2  # four zones, two to a page; asked for once for both tables
    accelerators = [{"accelerator": row["accelerator"]} for row in types]
    references = References.of(accelerators, types, {})
    assert validate_rows("instance_types", types, references)[1] == ()
    assert validate_rows("offers", offers, references)[1] == ()
    assert len(types) == 16
    assert {row["purchase_option"] for row in offers} == set(GcpProvider.info.purchase_options)
    assert {row["as_of"] for row in [*types, *offers]} == {AS_OF}


def test_a_machine_has_what_the_interface_tells_and_the_links_that_are_known() -> None:
    with fake.fake_gcp() as server:
        rows = {row["instance_type"]: row for row in _rows(provider(server).fetch_instance_types([]))}
    big = rows["a3-megagpu-8g"]
    assert (big["accelerator"], big["accelerator_count"], big["memory_gib"]) == ("h100-80gb-sxm", "8", "1872")
    assert (big["rdma"], big["internode_gbps"], big["local_nvme_gib"]) == ("tcpxo", "1800", "6000")
    assert big["source"].startswith("compute.machineTypes.aggregatedList")
    assert rows["a2-megagpu-16g"]["status"] == "retired"
    assert rows["n1-standard-8+nvidia-tesla-t4x1"]["family"] == "n1+t4"


def test_regions_and_options_asked_for_are_the_only_ones() -> None:
    with fake.fake_gcp() as server:
        one = provider(server)
        assert one.fetch_regions() == ["europe-west4", "us-central1"]  # the one that is down is not there
        rows = _rows(one.fetch_offers(["europe-west4"], frozenset({"spot", "reserved_1y"})))
    assert {(row["region"], row["purchase_option"]) for row in rows} == {("europe-west4", "spot")}


def test_what_was_not_understood_is_told_with_reasons() -> None:
    with fake.fake_gcp() as server:
        one = provider(server)
        one.fetch_instance_types([])
        one.fetch_offers([], frozenset())
    told = {(item.what, item.name.split(" in ")[0]): item.reason for item in one.options.log.not_understood}
    assert "not in gcp_accelerators.csv" in told["instance_type", "a9-hypergpu-8g"]
    assert told["sku", "0058-0000-0000 Nvidia X900 GPU running"] == "no rule fits its description"
    assert told["price", "a2-ultragpu-1g"].startswith("no gpu SKU of nvidia-a100-80gb")
    assert one.reconciliation is not None
    assert one.reconciliation.understood == 79


def test_offers_of_a_retired_machine_are_flagged() -> None:
    with fake.fake_gcp() as server:
        rows = _rows(provider(server).fetch_offers([], frozenset()))
    flags = {row["flags"] for row in rows if row["instance_type"] == "a2-megagpu-16g"}
    assert flags == {"retired"}


def test_quotas_are_those_of_gpus_and_vcpus() -> None:
    with fake.fake_gcp() as server:
        rows = _rows(provider(server).fetch_quotas(["us-central1"]))
    limits = {row["code"]: (row["unit"], row["limit"]) for row in rows}
    assert limits["NVIDIA_A100_GPUS"] == ("GPU", "16")
    assert limits["CPUS"] == ("vCPU", "72")
    assert "DISKS_TOTAL_GB" not in limits


@pytest.mark.parametrize("missing", ["guest_cpus", "memory_mb", "name"])
def test_a_machine_without_a_size_is_a_change_of_schema(missing: str) -> None:
    with pytest.raises(SchemaChanged) as caught:
        parse_machine({**ITEM, missing: None}, "us-central1-a")
    assert caught.value.where == missing
    assert caught.value.region == "us-central1"


def test_a_quota_without_its_limit_is_a_change_of_schema() -> None:
    with pytest.raises(SchemaChanged, match=r"quotas\.limit"):
        parse_quotas("us-central1", [{"metric": "NVIDIA_T4_GPUS"}])


def test_an_odd_quota_costs_itself() -> None:
    log = FetchLog()
    good = {"metric": "NVIDIA_T4_GPUS", "limit": 4.0}
    assert len(parse_quotas("us-central1", [{"metric": "CPUS"}, good], log)) == 1
    assert [one.name for one in log.not_understood] == ["us-central1/CPUS"]


def test_gpus_are_attached_only_where_host_and_gpu_are_and_the_host_is_not_too_large() -> None:
    hosts = [
        parse_machine({**ITEM, "name": name}, zone)
        for name in ("n1-standard-8", "n1-highmem-96")
        for zone in ("r-a", "r-b")
    ]
    offered = [("nvidia-tesla-t4", "r-b"), ("nvidia-tesla-v100", "r-a"), ("nvidia-tesla-t4-vws", "r-a")]
    made = {(m.name, m.zone) for m in attach_accelerators(hosts, offered)}
    assert made == {
        *((f"n1-standard-8+nvidia-tesla-t4x{count}", "r-b") for count in (1, 2, 4)),
        *((f"n1-standard-8+nvidia-tesla-v100x{count}", "r-a") for count in (1, 2, 4, 8)),
        ("n1-highmem-96+nvidia-tesla-t4x4", "r-b"),
        ("n1-highmem-96+nvidia-tesla-v100x8", "r-a"),
    }


@pytest.mark.parametrize(
    ("name", "kind", "count", "partitions", "expected"),
    [
        ("g4-standard-6", "nvidia-rtx-pro-6000", 1, 0, ("rtxpro6000-96gb-pcie", "0.125", "12", "")),
        ("g4-standard-24", "nvidia-rtx-pro-6000", 1, 0, ("rtxpro6000-96gb-pcie", "0.5", "48", "")),
        ("a4x-maxgpu-4g-metal", "nvidia-gb300", 4, 4, ("gb300-288gb", "4", "279", "12000")),
        ("a3-highgpu-8g-nolssd", "nvidia-h100-80gb", 8, 0, ("h100-80gb-sxm", "8", "80", "0")),
        ("ct5lp-hightpu-4t", "ct5lp", 4, 0, ("tpu-v5e-16gb", "4", "16", "")),
        ("ct6e-standard-8t", "ct6e", 8, 0, ("tpu-v6e-32gb", "8", "32", "")),
    ],
)
def test_machines_of_new_series(name: str, kind: str, count: int, partitions: int, expected: Any) -> None:
    card = {"guest_accelerator_type": kind, "guest_accelerator_count": count}
    item = {
        **ITEM,
        "name": name,
        "accelerators": [card],
        "bundled_local_ssds": {"partition_count": partitions},
    }
    (row,) = type_rows([parse_machine(item, "r-a")], AS_OF, FetchLog())
    cells = ("accelerator", "accelerator_count", "accelerator_memory_gib", "local_nvme_gib")
    assert tuple(row[cell] for cell in cells) == expected


def test_chips_of_a_tpu_machine_have_their_own_links() -> None:
    chips = Machine("ct5p-hightpu-4t", "r-a", 208, Decimal(448), "ct5p", 4, 0, "x86_64", False)
    (row,) = type_rows([chips], AS_OF, FetchLog())
    assert (row["intra_node"], row["intra_node_gb_per_s"]) == ("ici", "400")


def test_a_virtual_workstation_is_no_machine_of_its_own() -> None:
    log = FetchLog()
    item = {
        **ITEM,
        "accelerators": [{"guest_accelerator_type": "nvidia-l4-vws", "guest_accelerator_count": 1}],
    }
    assert type_rows([parse_machine(item, "r-a")], AS_OF, log) == []
    assert log.not_understood == []


def test_a_new_machine_of_a_known_gpu_has_unknown_links() -> None:
    new = Machine("a4x-highgpu-2g", "r-a", 140, Decimal(884), "nvidia-gb200", 4, 0, "arm64", False)
    (row,) = type_rows([new], AS_OF, FetchLog())
    assert (row["accelerator"], row["intra_node"], row["arch"]) == ("gb200-186gb", "unknown", "arm64")
    assert "not in the API" in row["note"]


def test_tables_of_facts_name_their_source() -> None:
    assert all(rule.source and rule.as_of for rule in load_machine_rules())
    assert all(kind.source and kind.as_of for kind in load_accelerator_types().values())


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_each_page_is_tried_again(status: int) -> None:
    seen: dict[str, int] = {}

    def once(request: Request) -> Any:
        token = request.param("pageToken")
        seen[token] = seen.get(token, 0) + 1
        if seen[token] == 1:
            return fake.Reply({"error": {"code": status, "message": "again"}}, status)
        return fake.ROUTES[fake.MACHINE_TYPES](request)

    with fake.fake_gcp(routes={fake.MACHINE_TYPES: once}) as server:
        assert len(provider(server).fetch_instance_types([])) == 16  # one retry allowed, and one per page
    assert list(seen.values()) == [2, 2]


def test_throttling_told_as_403_is_no_lack_of_permission() -> None:
    errors = [{"reason": "rateLimitExceeded", "domain": "usageLimits", "message": "x"}]
    body = {"error": {"code": 403, "message": "x", "errors": errors}}
    with (
        fake.fake_gcp(routes={fake.REGIONS: lambda _: fake.Reply(body, 403)}) as server,
        pytest.raises(gcp_client.RateLimited),
    ):
        provider(server).fetch_regions()


def test_a_project_that_is_not_visible_names_the_permission() -> None:
    missing = {fake.REGIONS: lambda _: fake.Reply({"error": {"code": 404, "message": "x"}}, 404)}
    with fake.fake_gcp(routes=missing) as server, pytest.raises(PermissionDenied) as caught:
        provider(server).fetch_regions()
    assert caught.value.permission == "compute.regions.list"


def test_pages_in_a_circle_end() -> None:
    loop = {fake.SKUS: lambda _: {"skus": fake.fixture("skus")[:1], "nextPageToken": "again"}}
    with fake.fake_gcp(routes=loop) as server, pytest.raises(SchemaChanged) as caught:
        provider(server).fetch_offers([], frozenset())
    assert caught.value.where == "nextPageToken"


def test_a_zone_that_did_not_answer_is_told() -> None:
    def partly(_: Request) -> Any:
        items = fake.fixture("machine_types")
        items["zones/us-west9-a"]["warning"]["code"] = "UNREACHABLE"
        return {"items": items}

    with fake.fake_gcp(routes={fake.MACHINE_TYPES: partly}) as server:
        one = provider(server)
        one.fetch_instance_types([])
    assert one.options.log.remarks == ["zones/us-west9-a: no answer from this zone (UNREACHABLE)"]


def test_no_login_says_how_to_log_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    monkeypatch.delenv(gcp_client.API_KEY_VARIABLE, raising=False)
    with fake.fake_gcp() as server:
        one = create(options(server))
        with pytest.raises(CredentialsMissing, match="gcloud auth application-default login"):
            one.fetch_regions()
    assert server.requests == []


def test_a_login_file_reaches_every_interface(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    with fake.fake_gcp() as server:
        for name, value in fake.environment(server, tmp_path).items():
            monkeypatch.setenv(name, value)
        one = create(options(server, endpoints={}))
        assert len(one.fetch_offers([], frozenset())) == 52
        told = {
            request.headers.get("authorization") for request in server.requests if request.method == "GET"
        }
    assert told == {f"Bearer {fake.SECRET}"}


def test_an_api_key_goes_into_a_header_never_into_an_address() -> None:
    with fake.fake_gcp() as server:
        one = GcpProvider(options(server), login=lambda: Login(None, fake.PROJECT, fake.API_KEY))
        pages = list(one._client.skus())
        asked = server.requests
    assert sum(len(page) for page in pages) == len(fake.fixture("skus"))
    assert {request.headers.get("x-goog-api-key") for request in asked} == {fake.API_KEY}
    assert all(fake.API_KEY not in str(request.query) for request in asked)


def test_with_an_api_key_alone_bundled_machines_get_todays_prices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv(gcp_client.API_KEY_VARIABLE, fake.API_KEY)
    with fake.fake_gcp() as server:
        one = create(options(server))
        assert "us-central1" in one.fetch_regions()
        types = _rows(one.fetch_instance_types(["us-central1"]))
        offers = _rows(one.fetch_offers(["us-central1"], frozenset({"on_demand"})))
        assert {request.path for request in server.requests} == {fake.SKUS}
        with pytest.raises(CredentialsMissing):
            one.fetch_quotas(["us-central1"])
    prices = {row["instance_type"]: row["price_per_hour"] for row in offers}
    assert prices["a2-ultragpu-1g"] == "5.06879789"
    assert "a3-highgpu-1g" not in prices
    assert {row["instance_type"] for row in types} >= set(prices)
    assert any("bundled catalog" in text for text in one.options.log.remarks)


def test_a_refused_api_key_is_missing_credentials() -> None:
    refused = {fake.SKUS: lambda _: fake.Reply({"error": {"code": 400, "message": "API key not valid"}}, 400)}
    with fake.fake_gcp(routes=refused) as server:
        one = GcpProvider(options(server), login=lambda: Login(None, fake.PROJECT, fake.API_KEY))
        with pytest.raises(CredentialsMissing) as caught:
            list(one._client.skus())
    assert gcp_client.API_KEY_VARIABLE in str(caught.value)
    assert fake.API_KEY not in str(caught.value)


@pytest.mark.parametrize(
    "fault", ["access_denied", "expired_credentials", "http_500_forever", "malformed_json"]
)
def test_no_secret_in_messages_logs_or_representations(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)  # the SDK's own debug notes repeat what a server says
    with fake.fake_gcp(fault) as server:
        one = provider(server)
        for call in (
            one.fetch_regions,
            lambda: one.fetch_instance_types([]),
            lambda: list(one._client.skus()),
        ):
            with pytest.raises(gcp_client.ProviderError) as caught:
                call()
            error: BaseException | None = caught.value
            assert fake.SECRET not in str(error)
            assert error is not None
            assert error.__cause__ is None
    assert fake.SECRET not in caplog.text
    assert fake.API_KEY not in repr(Login(None, fake.PROJECT, fake.API_KEY))


def test_a_defect_of_ours_is_not_called_a_fault_of_google() -> None:
    assert provider_error(KeyError("x"), "api") is None


def test_every_call_has_its_permission_or_is_public() -> None:
    needs = {call.call: call.permission for call in API_CALLS}
    assert [name for name, permission in needs.items() if not permission] == [
        "cloudbilling.services.skus.list"
    ]
    assert all(permission.split(".")[-1] in ("list", "get") for permission in needs.values() if permission)
