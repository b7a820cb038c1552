"""Alibaba Cloud: what its answers become, and what is said when it cannot be asked."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import pytest

from catalogs.providers.alibaba import AlibabaProvider, EcsClient, create
from catalogs.providers.alibaba_rows import (
    newest_per_zone,
    parse_instance_types,
    parse_price,
    parse_spot,
    parse_zones,
)
from catalogs.providers.base import CredentialsMissing, FetchLog, FetchOptions, SchemaChanged, frame_rows
from catalogs.refresh.checking import check_fetched
from tests.fakes import alibaba as fake
from tests.fakes.http_base import FakeServer

QUICK = {"timeout_s": 10.0, "retries": 2, "backoff_s": 0.0}
BOTH = frozenset({"on_demand", "spot"})


def provider(server: FakeServer, **more: Any) -> AlibabaProvider:
    """A provider that asks the fake."""
    options = FetchOptions(**{**QUICK, **more})
    factory: Callable[[str, FetchOptions], EcsClient] = lambda region, o: fake.HttpClient(server.url, o)  # noqa: E731
    return AlibabaProvider(options, factory)


@pytest.fixture(scope="module")
def fetched() -> Any:
    """Types and offers of all regions, and the log."""
    with fake.server() as server:
        one = provider(server)
        regions = one.fetch_regions()
        types = frame_rows(one.fetch_instance_types(regions))
        offers = frame_rows(one.fetch_offers(regions, BOTH))
        return regions, types, offers, one.options.log, server


def test_all_machines_come_also_those_without_an_offer(fetched: Any) -> None:
    regions, types, offers, _, server = fetched
    assert regions == list(fake.REGIONS)
    assert {row["instance_type"] for row in types} == {one["InstanceTypeId"] for one in fake.MACHINES}
    assert "ecs.gn7-unsold.3xlarge" not in {row["instance_type"] for row in offers}
    assert server.count("DescribeInstanceTypes") == 3 * len(regions)  # five machines, two per page


def test_what_a_machine_is(fetched: Any) -> None:
    types = {row["instance_type"]: row for row in fetched[1]}
    big = types["ecs.gn7e-c16g1.32xlarge"]
    assert (big["accelerator"], big["accelerator_count"], big["accelerator_memory_gib"]) == (
        "a100-80gb-unknown",
        "8",
        "80",
    )
    assert (big["family"], big["vcpus"], big["internode_gbps"], big["arch"]) == ("gn7e", "128", "6", "x86_64")
    new = types["ecs.gn9x-new.8xlarge"]  # not in the bundled catalog: by the provider's own words
    assert (new["accelerator"], new["rdma"], new["intra_node"]) == ("l20-48gb-pcie", "erdma", "unknown")


def test_prices_are_those_of_the_machine_alone_in_their_own_currency(fetched: Any) -> None:
    offers = fetched[2]
    own = [
        row
        for row in offers
        if row["instance_type"] == "ecs.gn6i-c16g1.4xlarge" and row["region"] == "cn-beijing"
    ]
    listed = [row for row in own if row["purchase_option"] == "on_demand"]
    assert [(row["zone"], row["price_per_hour"], row["currency"], row["flags"]) for row in listed] == [
        ("cn-beijing-a", "13.26", "CNY", "system_disk_separate"),
        ("cn-beijing-b", "13.26", "CNY", "system_disk_separate"),
    ]
    spot = {row["zone"]: row for row in own if row["purchase_option"] == "spot"}
    assert {zone: row["price_per_hour"] for zone, row in spot.items()} == {
        "cn-beijing-a": "3.978",  # the newest of three hours, over two pages
        "cn-beijing-b": "3.978",
    }
    assert all(row["basis"] == "observed" and len(row["as_of"]) == 10 for row in spot.values())


def test_a_hidden_model_is_flagged_and_a_machine_not_sold_is_told(fetched: Any) -> None:
    _, _, offers, log, _ = fetched
    hidden = {row["flags"] for row in offers if row["instance_type"] == "ecs.gn8v-8x.48xlarge"}
    assert hidden == {"hidden_model;system_disk_separate"}
    assert [(one.what, one.name) for one in log.not_understood] == [
        ("price", "cn-beijing/ecs.gn9x-new.8xlarge")
    ]


def test_every_row_passes_the_checks(fetched: Any) -> None:
    regions, types, offers, _, _ = fetched
    checked = check_fetched(types, offers, regions)
    assert checked.refused == {} and len(checked.offers) == len(offers) == 2 * 4 * 4 - 2


def test_machines_without_an_accelerator_only_when_asked_for() -> None:
    with fake.server() as server:
        one = provider(server, accelerated_only=False)
        rows = frame_rows(one.fetch_instance_types(["cn-hangzhou"]))
    plain = next(row for row in rows if row["instance_type"] == "ecs.g7.large")
    assert plain["accelerator"] == "" and check_fetched(rows, []).n_without_accelerator == 1


def test_quotas() -> None:
    with fake.server() as server:
        rows = frame_rows(provider(server).fetch_quotas(["cn-hangzhou"]))
    assert [(row["quota"], row["unit"], row["limit"]) for row in rows] == [
        ("max-postpaid-instance-vcpu-count", "vCPU", "1000"),
        ("max-spot-instance-vcpu-count", "vCPU", "0"),
    ]


def test_without_the_sdk_the_error_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("alibabacloud"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(CredentialsMissing, match=r"pip install 'ml-training-planner\[alibaba\]'"):
        create(FetchOptions()).fetch_regions()


def test_an_accelerator_nobody_knows_is_told_and_left_to_the_checks() -> None:
    log = FetchLog()
    payload = {"InstanceTypes": {"InstanceType": [fake.machine("ecs.gnx.large", GPUSpec="NVIDIA Q9000")]}}
    (row,) = parse_instance_types(payload, "2026-11-20", log)
    assert row["accelerator"] == "" and log.not_understood[0].name == "Q9000"
    assert check_fetched([row], []).refused == {"instance_types.accelerator: is missing": 1}


def test_the_memory_tells_models_of_one_name_apart() -> None:
    def canonical_of(memory: float) -> str:
        one = fake.machine("ecs.gnx.large", GPUSpec="NVIDIA A100", GPUMemorySize=memory)
        return parse_instance_types({"InstanceTypes": {"InstanceType": [one]}}, "2026-11-20", FetchLog())[0][
            "accelerator"
        ]

    assert [canonical_of(memory) for memory in (40.0, 80.0, 10.0)] == [
        "a100-40gb-unknown",
        "a100-80gb-unknown",
        "",
    ]


@pytest.mark.parametrize(
    ("parse", "where"),
    [
        (lambda: parse_instance_types({"InstanceTypes": {}}, "d", FetchLog()), "InstanceTypes.InstanceType"),
        (
            lambda: parse_instance_types({"InstanceTypes": {"InstanceType": [{}]}}, "d", FetchLog()),
            "InstanceTypeId",
        ),
        (
            lambda: parse_price({"PriceInfo": {"Price": {"Currency": "CNY"}}}, "r", "t", (), "d"),
            "OriginalPrice",
        ),
        (
            lambda: parse_price(
                {"PriceInfo": {"Price": {"Currency": "CNY", "OriginalPrice": "?"}}}, "r", "t", (), "d"
            ),
            "price",
        ),
        (lambda: parse_spot({"Currency": "CNY", "SpotPrices": {"SpotPriceType": {}}}, "r"), "SpotPriceType"),
        (lambda: parse_zones({}, "r"), "RequestId"),
    ],
)
def test_a_missing_field_is_named(parse: Callable[[], Any], where: str) -> None:
    with pytest.raises(SchemaChanged, match=where):
        parse()


def test_the_newest_price_of_each_zone_wins_in_any_order() -> None:
    rows = [
        ("2026-11-20T02", {"zone": "a", "instance_type": "t", "n": "2"}),
        ("2026-11-20T01", {"zone": "a", "instance_type": "t", "n": "1"}),
    ]
    assert newest_per_zone(rows) == newest_per_zone(reversed(rows)) == [rows[0][1]]
