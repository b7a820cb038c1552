"""Alibaba Cloud: what its answers become, and what is said when it cannot be asked."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import pytest

from catalogs.errors import CatalogError
from catalogs.providers.alibaba import AlibabaProvider, EcsClient, create, explain
from catalogs.providers.alibaba_rows import (
    newest_per_zone,
    parse_instance_types,
    parse_price,
    parse_regions,
    parse_spot,
    parse_zones,
)
from catalogs.providers.base import CredentialsMissing, FetchLog, FetchOptions, SchemaChanged, frame_rows
from catalogs.refresh.checking import check_fetched
from tests.fakes import alibaba as fake
from tests.fakes.http_base import FakeServer, Reply, Request

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


def test_a_subscription_is_a_price_per_hour_of_its_term() -> None:
    with fake.server() as server:
        one = provider(server)
        one.fetch_instance_types(["cn-hangzhou"])
        rows = frame_rows(one.fetch_offers(["cn-hangzhou"], frozenset({"subscription"})))
    own = {
        (row["option_variant"], row["term_hours"], row["price_per_hour"])
        for row in rows
        if row["instance_type"] == "ecs.gn6i-c16g1.4xlarge"
    }
    assert own == {("month", "720", "9.282"), ("year", "8760", "7.956")}


def test_an_odd_machine_costs_itself_and_is_named() -> None:
    log = FetchLog()
    odd = [{"InstanceTypeId": "ecs.odd.large"}, fake.machine("ecs.gn6i-c16g1.4xlarge"), "text"]
    (row,) = parse_instance_types({"InstanceTypes": {"InstanceType": odd}}, "2026-11-20", log)
    assert row["instance_type"] == "ecs.gn6i-c16g1.4xlarge"
    assert [(one.name, one.reason) for one in log.not_understood] == [
        ("ecs.odd.large", "CpuCoreCount: missing or not as documented"),
        ("row 3", "InstanceTypeId: missing or not as documented"),
    ]


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("OperationDenied", 403, "sold"),
        ("OperationDenied.NoStock", 403, "sold"),
        ("InvalidInstanceType.NotSupportDiskCategory", 403, "sold"),
        ("InvalidInstanceType.ValueNotSupported", 400, "sold"),
        ("InvalidSystemDiskCategory.ValueNotSupported", 400, "sold"),
        ("Zone.NotOnSale", 403, "sold"),
        ("PriceNotFound", 400, "sold"),
        ("RegionUnauthorized", 403, "region"),
        ("InvalidRegionId.NotFound", 404, "region"),
        ("Forbidden.RiskControl", 403, "blocked"),
        ("Forbidden.RAM", 400, "permission"),
        ("InvalidAccessKeyId.NotFound", 404, "credentials"),
    ],
)
def test_every_refusal_says_what_it_is_about(code: str, status: int, kind: str) -> None:
    place = {"provider": "alibaba", "region": "cn-beijing", "api": "ecs:DescribePrice"}
    fault = explain(fake.SdkLikeError(code, status, "LTAIsecret"), place, 1)
    assert fault is not None and kind in fault.message and "LTAI" not in fault.message


def test_the_default_disk_is_not_the_machine() -> None:
    """New families refuse the default system disk: the price is asked for again with the usual one."""
    with fake.server() as server:
        usual = server.routes["DescribePrice"]

        def refusing(request: Request) -> Any:
            if request.param("SystemDisk.Category") == "cloud_essd":
                return usual(request)
            return Reply({"Code": "InvalidSystemDiskCategory.ValueNotSupported", "Message": "no"}, 400)

        server.routes["DescribePrice"] = refusing
        one = provider(server)
        one.fetch_instance_types(["cn-hangzhou"])
        assert len(frame_rows(one.fetch_offers(["cn-hangzhou"], frozenset({"on_demand"})))) == 8


def test_available_without_stock_is_no_stock() -> None:
    def one(name: str, category: str) -> dict[str, str]:
        return {"Value": name, "Status": "Available", "StatusCategory": category}

    types = [one("a", "WithStock"), one("b", "WithoutStock"), one("c", "ClosedWithStock"), one("d", "")]
    zone = {
        "ZoneId": "z",
        "Status": "Available",
        "StatusCategory": "WithStock",
        "AvailableResources": {"AvailableResource": [{"SupportedResources": {"SupportedResource": types}}]},
    }
    odd = {"Status": "Available"}
    found = parse_zones({"AvailableZones": {"AvailableZone": [zone, odd]}}, "r")
    assert found == {"a": {"z"}, "c": {"z"}, "d": {"z"}}


def test_lists_none_of_whose_rows_can_be_read_have_changed_and_are_not_empty() -> None:
    for kind in ("odd", {"SupportedResources": {"SupportedResource": [{"Name": "a"}, {"Name": "b"}]}}):
        zone = {"ZoneId": "z", "Status": "Available", "StatusCategory": "WithStock",
                "AvailableResources": {"AvailableResource": [kind]}}  # fmt: skip
        with pytest.raises(SchemaChanged):
            parse_zones({"AvailableZones": {"AvailableZone": [zone]}}, "r")
    with pytest.raises(SchemaChanged):
        parse_regions({"Regions": {"Region": ["cn-hangzhou"]}})


def test_the_parts_of_a_price_are_read_in_every_spelling_and_nothing_costs_nothing() -> None:
    parts = [{"Resource": "instanceType", "OriginalPrice": "1,234.56"}]
    whole = {"Currency": "CNY", "OriginalPrice": 1300}
    for details in ({"ResourcePriceModel": parts}, {"DetailInfo": parts}, parts):
        answer = {"PriceInfo": {"Price": {**whole, "DetailInfos": details}}}
        (row,) = parse_price(answer, "r", "t", (), "d")
        assert (row["price_per_hour"], row["flags"]) == ("1234.56", "system_disk_separate")
    with pytest.raises(CatalogError, match="the price is 0"):
        parse_price({"PriceInfo": {"Price": {"Currency": "CNY", "OriginalPrice": 0}}}, "r", "t", (), "d")


def _spec(word: str, gib: float, count: int = 1) -> dict[str, Any]:
    return {"GPUSpec": f"NVIDIA {word}", "GPUMemorySize": gib, "GPUAmount": count}


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("ecs.vgn6i-m4.xlarge", _spec("T4/4", 4), ("t4-16gb-pcie", "0.25", "4")),
        ("ecs.vgn7i-vws-m4.xlarge", _spec("A10*1/6", 4), ("a10-24gb-pcie", "0.166667", "4")),
        ("ecs.sgn7i-vws-m8.4xlarge", _spec("A10", 8, 0), ("", "", "")),
        ("ecs.sgn7i-vws-m8.4xlarge", _spec("A10", 8), ("a10-24gb-pcie", "0.333333", "8")),
        ("ecs.gnx-h20.4xlarge", _spec("H20", 96), ("h20-96gb-sxm", "1", "96")),
    ],
)
def test_a_share_of_a_card_counts_as_a_share(
    name: str, fields: dict[str, Any], expected: tuple[str, ...]
) -> None:
    log = FetchLog()
    payload = {"InstanceTypes": {"InstanceType": [fake.machine(name, **fields)]}}
    (row,) = parse_instance_types(payload, "2026-11-20", log)
    cells = ("accelerator", "accelerator_count", "accelerator_memory_gib")
    assert tuple(row.get(cell, "") for cell in cells) == expected


def test_both_steps_of_kbit_are_whole_gbit() -> None:
    def gbps(kbit: int) -> str:
        one = fake.machine("ecs.x.large", InstanceBandwidthTx=kbit)
        return parse_instance_types({"InstanceTypes": {"InstanceType": [one]}}, "d", FetchLog())[0][
            "internode_gbps"
        ]

    assert [gbps(kbit) for kbit in (1_024_000, 3_072_000, 6_000_000)] == ["1", "3", "6"]


def test_a_share_that_is_stated_twice_counts_once() -> None:
    machine = {
        "InstanceTypeId": "ecs.sgn7i-vws-m2.xlarge", "CpuCoreCount": 4, "MemorySize": 15.5,
        "GPUSpec": "NVIDIA A10*1/12", "GPUMemorySize": 2.0,
    }  # fmt: skip
    for amount in (0, 1, 1 / 12):
        page = {"InstanceTypes": {"InstanceType": [{**machine, "GPUAmount": amount}]}}
        (row,) = parse_instance_types(page, "2026-11-28", FetchLog())
        assert float(row["accelerator_count"]) == pytest.approx(1 / 12, rel=1e-5)


def test_spot_prices_of_other_networks_and_systems_are_left_out() -> None:
    price = {
        "Timestamp": "2026-11-27T05:00:00Z", "InstanceType": "ecs.gn7i-c8g1.2xlarge", "ZoneId": "cn-hangzhou-h",
        "NetworkType": "vpc", "SpotPrice": 2.3,
    }  # fmt: skip
    later = {**price, "Timestamp": "2026-11-27T06:00:00Z"}
    rows = [
        price,
        {**later, "NetworkType": "classic", "SpotPrice": 1.1},
        {**later, "OSType": "windows", "SpotPrice": 5},
    ]
    page = {"Currency": "CNY", "SpotPrices": {"SpotPriceType": rows}}
    assert [row["price_per_hour"] for row in newest_per_zone(parse_spot(page, "cn-hangzhou"))] == ["2.3"]


@pytest.mark.parametrize(
    ("code", "status", "says"),
    [
        ("IncorrectInstanceType", 400, "not sold here"),
        ("InvalidSystemDiskSize.ValueNotSupported", 400, "not sold here"),
        ("QuotaExceed.AfterpayInstance", 403, "not sold here"),
        ("InvalidPayMethod", 403, "blocked"),
        ("InvalidTimeStamp.Expired", 400, "clock"),
        ("SDK.EndpointResolvingError", 0, "cannot use this region"),
    ],
)
def test_documented_codes_say_what_is_wrong(code: str, status: int, says: str) -> None:
    place = {"provider": "alibaba", "region": "cn-hangzhou", "api": "ecs:DescribePrice"}
    assert says in str(explain(fake.SdkLikeError(code, status, "secret"), place, 1))
