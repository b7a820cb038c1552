"""AWS answers to rows: the shapes of each interface, and the fields without which nothing is guessed."""

from __future__ import annotations

import copy
import json
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from catalogs.providers import aws_commitments, aws_ec2, aws_pricing, aws_quotas, aws_spot
from catalogs.providers.aws_client import mapped
from catalogs.providers.aws_rows import Listing, field, option_of_term, reservation
from catalogs.providers.base import FetchLog, ProviderError, SchemaChanged
from catalogs.providers.row_reader import RowReader
from catalogs.tables.model import PurchaseOption
from tests.draws import draws
from tests.fakes.aws import NOW, World, load, product

TODAY = "2026-11-20"
ALL = {option.value for option in PurchaseOption}


def types(change: Any = None) -> dict[str, dict[str, str]]:
    items = copy.deepcopy(load("instance_types.json"))
    if change:
        change({item["InstanceType"]: item for item in items})
    rows = aws_ec2.parse_instance_types({"InstanceTypes": items}, TODAY)
    return {row["instance_type"]: row for row in rows}


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "p4d.24xlarge",
            {"accelerator": "a100-40gb-sxm", "accelerator_count": "8", "intra_node": "nvswitch"},
        ),
        ("p4d.24xlarge", {"internode_gbps": "400", "rdma": "efa", "local_nvme_gib": "7450.6", "vcpus": "96"}),
        ("p4de.24xlarge", {"accelerator": "a100-80gb-sxm", "accelerator_memory_gib": "80"}),
        ("p5.48xlarge", {"internode_gbps": "3200", "intra_node_gb_per_s": "900", "memory_gib": "2048"}),
        (
            "g6.xlarge",
            {"accelerator": "l4-24gb-pcie", "accelerator_memory_gib": "22.35", "intra_node": "single"},
        ),
        ("g6.xlarge", {"internode_gbps": "2.5", "rdma": ""}),  # the baseline, not the burst of "up to 10"
        ("g6.12xlarge", {"intra_node": "pcie", "accelerator_count": "4"}),
        ("g6e.48xlarge", {"internode_gbps": "400"}),  # 4 cards of 400 each, 400 in all
        ("g6f.large", {"accelerator_count": "0.125", "accelerator_memory_gib": "2.79"}),
        ("g5g.xlarge", {"arch": "arm64", "local_nvme_gib": "0", "accelerator": "t4g-16gb-unknown"}),
        (
            "trn1.32xlarge",
            {"accelerator": "trn1-32gb", "accelerator_count": "16", "intra_node": "neuronlink"},
        ),
        ("trn2.48xlarge", {"accelerator_memory_gib": "96", "internode_gbps": "3200"}),
        ("inf2.xlarge", {"accelerator": "inf2-32gb", "accelerator_count": "1"}),
        ("dl1.24xlarge", {"accelerator": "Gaudi HL-205", "intra_node": "unknown"}),
    ],
)
def test_machines(name: str, wanted: dict[str, str]) -> None:
    row = types()[name]
    assert {key: row[key] for key in wanted} == wanted


def test_machines_without_accelerator_have_no_row() -> None:
    assert "m7i.large" not in types()


def test_a_figure_not_as_answered_is_noted() -> None:
    assert types()["trn2.48xlarge"]["note"] == "memory: nominal; the API answers 512 GiB per device"
    assert types()["p5.48xlarge"]["note"] == ""


def test_machines_agree_with_the_bundled_catalog() -> None:
    from catalogs.providers.known_types import known_types

    same = (
        "family",
        "accelerator",
        "accelerator_count",
        "accelerator_memory_gib",
        "vcpus",
        "memory_gib",
        "arch",
    )
    links = ("intra_node", "intra_node_gb_per_s", "internode_gbps", "rdma", "local_nvme_gib")
    for name, row in types().items():
        known = known_types("aws").get(name)
        if known:
            assert {key: row[key] for key in (*same, *links)} == {key: known[key] for key in (*same, *links)}


@pytest.mark.parametrize(
    "path",
    [
        "InstanceType",
        "VCpuInfo.DefaultVCpus",
        "MemoryInfo.SizeInMiB",
        "ProcessorInfo.SupportedArchitectures",
        "NetworkInfo",
        "InstanceStorageInfo.TotalSizeInGB",
    ],
)
def test_a_missing_field_is_named(path: str) -> None:
    def change(items: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        at = items["p5.48xlarge"]
        for parent in parents:
            at = at[parent]
        del at[last]

    with pytest.raises(SchemaChanged, match=path):
        types(change)


def test_an_accelerator_without_memory_is_named() -> None:
    with pytest.raises(SchemaChanged, match=r"GpuInfo\.Gpus.*MemoryInfo"):
        types(lambda items: items["p5.48xlarge"]["GpuInfo"]["Gpus"][0].pop("MemoryInfo"))


def test_unknown_fields_are_ignored() -> None:
    assert types(lambda items: items["p5.48xlarge"].update(QuantumInfo={"Qubits": 8})) == types()


# --- price list ----------------------------------------------------------------------------------------------------


def listed(change: Any = None, options: set[str] | None = None) -> list[dict[str, str]]:
    item = product(World(), "p4d.24xlarge", "us-east-1")
    if change:
        change(item)
    payload = {"PriceList": [json.dumps(item)]}
    return aws_pricing.parse_price_list(payload, TODAY, {"us-east-1"}, options or ALL)


def test_elements_of_the_price_list_are_json_texts() -> None:
    rows = listed()
    assert Counter(row["purchase_option"] for row in rows) == {
        "on_demand": 1,
        "reserved_1y": 6,
        "reserved_3y": 6,
    }
    found = {(row["purchase_option"], row["option_variant"]): row for row in rows}
    assert found["on_demand", ""]["price_per_hour"] == "22"
    assert found["reserved_1y", "standard.no_upfront"]["price_per_hour"] == "14.3"
    partial = found["reserved_3y", "convertible.partial_upfront"]
    assert (partial["price_per_hour"], partial["upfront_per_instance"]) == ("4.62", "121414")
    assert partial["term_hours"] == "26280"


def test_all_upfront_is_spread_over_the_term() -> None:
    row = next(row for row in listed() if row["option_variant"] == "standard.all_upfront")
    assert Decimal(row["price_per_hour"]) * Decimal(row["term_hours"]) == pytest.approx(Decimal(115632))
    assert row["upfront_per_instance"] == ""
    assert "115632 at the start over 8760 h" in row["source"]


@pytest.mark.parametrize(
    "attribute",
    [
        {"operatingSystem": "Windows"},
        {"tenancy": "Dedicated"},
        {"preInstalledSw": "SQL Std"},
        {"regionCode": "x"},
        {"capacitystatus": "AllocatedCapacityReservation"},
        {"marketoption": "CapacityBlock"},
    ],
)
def test_other_machines_of_the_list_are_left_out(attribute: dict[str, str]) -> None:
    assert listed(lambda item: item["product"]["attributes"].update(attribute)) == []


def test_a_price_of_zero_is_no_offer() -> None:
    def free(item: dict[str, Any]) -> None:
        for term in item["terms"]["OnDemand"].values():
            for dimension in term["priceDimensions"].values():
                dimension["pricePerUnit"] = {"USD": "0.0000000000"}

    assert "on_demand" not in {row["purchase_option"] for row in listed(free)}


@pytest.mark.parametrize("text", ["NaN", "-1", "free", "Infinity"])
def test_a_price_that_is_no_amount_is_named(text: str) -> None:
    def spoil(item: dict[str, Any]) -> None:
        for term in item["terms"]["OnDemand"].values():
            for dimension in term["priceDimensions"].values():
                dimension["pricePerUnit"] = {"USD": text}

    with pytest.raises(SchemaChanged, match="pricePerUnit"):
        listed(spoil)


@pytest.mark.parametrize("path", ["product", "terms"])
def test_a_price_without_its_parts_is_named(path: str) -> None:
    with pytest.raises(SchemaChanged, match=path):
        listed(lambda item: item.pop(path))


def test_an_element_that_is_no_json_is_named() -> None:
    with pytest.raises(SchemaChanged, match=r"PriceList element \(not JSON\)"):
        aws_pricing.parse_price_list({"PriceList": ['{"product":']}, TODAY, set(), ALL)


@given(
    hourly=st.decimals(0, 100, places=4),
    fee=st.decimals(0, 10**6, places=2),
    option=st.sampled_from(["1yr", "3yr"]),
)
@draws(60)
def test_a_reservation_costs_what_was_published(hourly: Decimal, fee: Decimal, option: str) -> None:
    term = option_of_term(option, "Partial Upfront", "standard")
    assert term is not None
    price = reservation(Listing("us-east-1", "p4d.24xlarge", "s", TODAY), term, hourly, fee)
    if hourly == 0 and fee == 0:
        assert price is None
        return
    assert price is not None
    hours = Decimal(str(term[0].term_hours))
    total = price.per_hour * hours + (price.upfront or 0)
    assert abs(total - (hourly * hours + fee)) < Decimal("0.01")


def test_other_terms_are_no_reservation() -> None:
    assert option_of_term("5yr", "No Upfront", "standard") is None
    assert option_of_term("1yr", "", "standard") is None


# --- spot ----------------------------------------------------------------------------------------------------------

ZONES = {"us-east-1a": "use1-az4"}


def quote(price: str, days_ago: float, **more: Any) -> dict[str, Any]:
    at = NOW - timedelta(days=days_ago)
    usual = {
        "AvailabilityZone": "us-east-1a",
        "InstanceType": "p4d.24xlarge",
        "ProductDescription": "Linux/UNIX",
    }
    return {**usual, "SpotPrice": price, "Timestamp": at, **more}


def spot(*items: dict[str, Any], on_demand: str = "22") -> list[dict[str, str]]:
    quotes = aws_spot.parse_spot_history({"SpotPriceHistory": list(items)}, ZONES, "us-east-1")
    advice = {("us-east-1", "p4d.24xlarge"): aws_spot.Advice("5-10%", Decimal("0.6"))}
    hourly = {("us-east-1", "p4d.24xlarge"): Decimal(on_demand)}
    return aws_spot.spot_rows(quotes, "us-east-1", NOW, advice, hourly)


def test_the_last_quote_is_the_price_and_the_week_is_told() -> None:
    # 8 for the first three of seven days (its quote is older than the week), 10 for the other four
    (row,) = spot(quote("10.0", 4), quote("8.0", 9))
    assert (row["price_per_hour"], row["zone"], row["basis"]) == ("10", "use1-az4", "observed")
    assert row["source"] == "ec2:DescribeSpotPriceHistory; 7-day mean 9.142857 variance 0.979592"
    assert row["interruption_band"] == "5-10%"


def test_a_zone_id_in_the_answer_wins() -> None:
    (row,) = spot(quote("9", 1, AvailabilityZoneId="use1-az6"))
    assert row["zone"] == "use1-az6"


def test_spot_without_a_discount_is_flagged() -> None:
    assert spot(quote("22", 1))[0]["flags"] == "spot_equals_on_demand"
    assert spot(quote("21", 1))[0]["flags"] == ""


def test_other_systems_are_left_out_and_repeats_count_once() -> None:
    assert spot(quote("9", 1, ProductDescription="Windows")) == []
    assert spot(quote("9", 1), quote("9", 1)) == spot(quote("9", 1))


def test_a_zone_nobody_knows_is_named() -> None:
    with pytest.raises(SchemaChanged, match="us-east-1z has no id"):
        spot(quote("9", 1, AvailabilityZone="us-east-1z"))


@given(st.lists(st.tuples(st.decimals(1, 50, places=2), st.floats(0.01, 9)), min_size=1, max_size=8))
@draws(60)
def test_the_mean_lies_between_the_quotes(pairs: list[tuple[Decimal, float]]) -> None:
    quotes = [aws_spot.Quote("t", "z", price, NOW - timedelta(days=days)) for price, days in pairs]
    ordered = sorted(quotes, key=lambda one: (one.at, one.price))
    mean, variance = aws_spot.weekly(ordered, NOW)
    prices = [price for price, _ in pairs]
    assert min(prices) - Decimal("1e-9") <= mean <= max(prices) + Decimal("1e-9")
    assert 0 <= variance <= (max(prices) - min(prices)) ** 2 / 4 + Decimal("1e-9")


def test_the_advisor_gives_bands_and_savings() -> None:
    found = aws_spot.parse_advisor(load("spot_advisor.json"), {"us-east-1"})
    assert found["us-east-1", "p4d.24xlarge"] == aws_spot.Advice("10-15%", Decimal("0.6"))
    assert {region for region, _ in found} == {"us-east-1"}


def test_a_band_nobody_knows_is_named() -> None:
    payload = load("spot_advisor.json")
    payload["ranges"][0]["label"] = "<1%"
    with pytest.raises(SchemaChanged, match=r"ranges\.label"):
        aws_spot.parse_advisor(payload, {"us-east-1"})


# --- commitments, quotas -------------------------------------------------------------------------------------------


def rate(**more: Any) -> dict[str, Any]:
    words = {"region": "us-east-1", "instanceType": "p4d.24xlarge", "tenancy": "shared"}
    words |= more.pop("words", {})
    offering = {
        "paymentOption": "No Upfront",
        "planType": "Compute",
        "durationSeconds": 31536000,
        "currency": "USD",
    }
    return {
        "savingsPlanOffering": offering | more.pop("offering", {}),
        "rate": "15.4",
        "unit": "Hrs",
        "usageType": "BoxUsage:p4d.24xlarge",
        "operation": "RunInstances",
        "properties": [{"name": key, "value": value} for key, value in words.items()],
        **more,
    }


def savings(**more: Any) -> list[tuple[str, str, str]]:
    rows = aws_commitments.parse_savings_rates(
        {"searchResults": [rate(**more)]}, "us-east-1", TODAY, {"p4d.24xlarge"}, ALL
    )
    return [(row["purchase_option"], row["option_variant"], row["price_per_hour"]) for row in rows]


def test_savings_plans() -> None:
    assert savings() == [("savings_plan_1y", "", "15.4")]
    plan = {"planType": "EC2Instance", "durationSeconds": 94608000}
    assert savings(offering=plan) == [("savings_plan_3y", "ec2_instance", "15.4")]
    assert savings(offering={"paymentOption": "All Upfront"}) == [
        ("savings_plan_1y", "compute.all_upfront", "15.4")
    ]
    assert savings(usageType="EUW1-BoxUsage:p4d.24xlarge") == savings()


@pytest.mark.parametrize(
    "other",
    [
        {"usageType": "UnusedBox:p4d.24xlarge"},
        {"usageType": "DedicatedUsage:p4d.24xlarge"},
        {"operation": "RunInstances:0002"},
        {"words": {"tenancy": "dedicated"}},
        {"words": {"region": "eu-west-1"}},
        {"words": {"instanceType": "m7i.large"}},
        {"offering": {"planType": "SageMaker"}},
        {"unit": "Lambda-GB-Second"},
    ],
)
def test_other_rates_are_left_out(other: dict[str, Any]) -> None:
    assert savings(**other) == []


def block(**more: Any) -> dict[str, Any]:
    usual = {"InstanceType": "p5.48xlarge", "AvailabilityZone": "us-east-1a", "InstanceCount": 2}
    return {**usual, "CapacityBlockDurationHours": 24, "UpfrontFee": "1512.00", "CurrencyCode": "USD", **more}


def test_a_block_is_priced_per_machine_and_hour() -> None:
    parse = aws_commitments.parse_blocks
    (row,) = parse({"CapacityBlockOfferings": [block()]}, ZONES, "us-east-1", TODAY)
    assert (row["price_per_hour"], row["zone"], row["purchase_option"]) == (
        "31.5",
        "use1-az4",
        "capacity_block",
    )
    cheap = block(UpfrontFee="1440.00", CapacityBlockDurationMinutes=1440)
    rows = parse({"CapacityBlockOfferings": [block(), cheap]}, ZONES, "us-east-1", TODAY)
    assert [row["price_per_hour"] for row in aws_commitments.cheapest(rows)] == ["30"]


@pytest.mark.parametrize(
    "name", ["UpfrontFee", "InstanceCount", "CapacityBlockDurationHours", "AvailabilityZone"]
)
def test_a_block_without_its_parts_is_named(name: str) -> None:
    item = block()
    del item[name]
    with pytest.raises(SchemaChanged, match=name):
        aws_commitments.parse_blocks({"CapacityBlockOfferings": [item]}, ZONES, "us-east-1", TODAY)


def test_quotas_of_families_in_vcpus() -> None:
    rows = aws_quotas.parse_quotas({"Quotas": load("quotas.json")}, "us-east-1")
    found = {row["code"]: (row["quota"], row["unit"], row["limit"]) for row in rows}
    assert found["L-417A185B"] == ("Running On-Demand P instances", "vCPU", "192")
    assert found["L-7212CCBC"] == ("All P Spot Instance Requests", "vCPU", "96")
    assert "L-0263D0A3" not in found


def test_the_codes_are_those_of_the_quota_rules() -> None:
    from catalogs.tariffs import load_tariffs

    rule = load_tariffs().quota_rule("aws", "p4d", "a100-40gb-sxm", "on_demand")
    assert rule is not None
    assert rule.code in {row["code"] for row in aws_quotas.parse_quotas({"Quotas": load("quotas.json")}, "r")}


def test_a_field_is_named_with_its_path() -> None:
    with pytest.raises(SchemaChanged) as caught:
        field({"a": {"b": None}}, "a.b.c", "api", "eu-west-1")
    assert (caught.value.where, caught.value.region, caught.value.api) == ("a.b", "eu-west-1", "api")


ODD = [{}, 3]


ODD_ANSWERS: dict[str, Any] = {
    "types": {"InstanceTypes": [*ODD, *load("instance_types.json")]},
    "quotas": {"Quotas": [*ODD, *load("quotas.json")]},
    "blocks": {"CapacityBlockOfferings": [*ODD, block()]},
    "spot": {"SpotPriceHistory": [*ODD, quote("1", 1)]},
    "prices": {
        "PriceList": ["{", json.dumps({"product": {}}), product(World(), "p4d.24xlarge", "us-east-1")]
    },
}


def _read_odd(name: str, reader: RowReader) -> Any:
    body = ODD_ANSWERS[name]
    if name == "types":
        return aws_ec2.parse_instance_types(body, TODAY, "", reader)
    if name == "quotas":
        return aws_quotas.parse_quotas(body, "us-east-1", reader)
    if name == "blocks":
        return aws_commitments.parse_blocks(body, ZONES, "us-east-1", TODAY, reader)
    if name == "spot":
        return aws_spot.parse_spot_history(body, ZONES, "us-east-1", reader)
    return aws_pricing.parse_price_list(body, TODAY, ["us-east-1"], ALL, reader)


@pytest.mark.parametrize("name", ODD_ANSWERS)
def test_an_odd_row_costs_itself(name: str) -> None:
    log = FetchLog()
    assert _read_odd(name, RowReader("row", log))
    assert len(log.not_understood) == 2
    assert all(note.name and "missing or not as documented" in note.reason for note in log.not_understood)


def test_quotas_that_count_machines_are_no_quotas_of_vcpus() -> None:
    named = ("Running On-Demand c3.large instances", "All p5.48xlarge Spot Instance Requests")
    quotas = [{"QuotaName": name, "QuotaCode": "L-1", "Value": 36.0} for name in named]
    assert aws_quotas.parse_quotas({"Quotas": quotas}, "us-east-1") == []


def test_a_block_of_no_zone_is_of_its_region_and_lasts_as_long_as_its_fee_says() -> None:
    item = block(AvailabilityZone="us-east-1", UpfrontFee="2,400.00", CapacityBlockDurationMinutes=1380)
    (row,) = aws_commitments.parse_blocks({"CapacityBlockOfferings": [item]}, {}, "us-east-1", TODAY)
    assert (row["zone"], row["price_per_hour"]) == ("", "50")


@pytest.mark.parametrize(
    ("code", "region", "kind"),
    [
        ("AuthFailure", "ap-east-1", "failed"),
        ("AuthFailure", "us-east-1", "credentials_missing"),
        ("OptInRequired", "ap-east-1", "failed"),
        ("NoSuchResourceException", "ap-east-1", "not_sold"),
    ],
)
def test_a_region_not_opted_in_is_no_matter_of_credentials(code: str, region: str, kind: str) -> None:
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 401}}
    with pytest.raises(ProviderError) as caught, mapped("ec2:DescribeInstanceTypes", region):
        raise ClientError(answer, "DescribeInstanceTypes")  # type: ignore[arg-type]
    assert caught.value.kind == kind


def _on_demand_dimension(item: dict[str, Any]) -> dict[str, Any]:
    (term,) = item["terms"]["OnDemand"].values()
    (dimension,) = term["priceDimensions"].values()
    found: dict[str, Any] = dimension
    return found


def test_of_several_prices_on_demand_the_one_in_force_counts() -> None:
    def change(item: dict[str, Any]) -> None:
        (term,) = item["terms"]["OnDemand"].values()
        for day, usd in (("2025-01-01", "33"), ("2026-06-01", "22"), ("2099-01-01", "1")):
            dimension = {**_on_demand_dimension(item), "pricePerUnit": {"USD": usd}}
            new = {**term, "effectiveDate": f"{day}T00:00:00Z", "priceDimensions": {"x": dimension}}
            item.setdefault("new", {})[day] = new
        item["terms"]["OnDemand"] = item.pop("new")

    assert [row["price_per_hour"] for row in listed(change, {"on_demand"})] == ["22"]


@pytest.mark.parametrize("location", ["US East (N. Virginia)", "Nowhere"])
def test_older_answers_name_the_place_in_words(location: str) -> None:
    def change(item: dict[str, Any]) -> None:
        attributes = item["product"]["attributes"]
        del attributes["regionCode"]
        attributes["location"] = location

    if location == "Nowhere":
        with pytest.raises(SchemaChanged, match="regionCode"):
            listed(change)
    else:
        assert listed(change) == listed()


def test_operations_that_bill_for_more_than_the_machine_are_left_out() -> None:
    assert listed(lambda item: item["product"]["attributes"].update(operation="RunInstances:0010")) == []


def test_an_odd_term_of_a_reservation_costs_neither_the_others_nor_on_demand() -> None:
    item = product(World(), "p4d.24xlarge", "us-east-1")
    first = next(iter(item["terms"]["Reserved"]))
    del item["terms"]["Reserved"][first]["termAttributes"]
    log = FetchLog()
    payload = {"PriceList": [json.dumps(item)]}
    rows = aws_pricing.parse_price_list(payload, TODAY, ["us-east-1"], ALL, RowReader("price", log))
    assert Counter(row["purchase_option"] for row in rows) == Counter(
        row["purchase_option"] for row in listed() if row["price_per_hour"]
    ) - Counter([next(row["purchase_option"] for row in listed() if row not in rows)])
    assert len(rows) == len(listed()) - 1
    (note,) = log.not_understood
    assert first in note.name


def test_a_unit_that_is_neither_hours_nor_a_fee_is_refused_by_name() -> None:
    with pytest.raises(SchemaChanged, match="Second"):
        listed(lambda item: _on_demand_dimension(item).update(unit="Second"))
    assert listed(lambda item: _on_demand_dimension(item).update(unit="Hour")) == listed()


def test_the_currency_that_has_a_price_counts() -> None:
    both = {"USD": "0.0000000000", "CNY": "398.1"}
    rows = listed(lambda item: _on_demand_dimension(item).update(pricePerUnit=both), {"on_demand"})
    assert [(row["price_per_hour"], row["currency"]) for row in rows] == [("398.1", "CNY")]


def test_an_hourly_amount_of_0_does_not_say_the_currency_of_the_fee() -> None:
    def change(item: dict[str, Any]) -> None:
        for term in item["terms"]["Reserved"].values():
            for dimension in term["priceDimensions"].values():
                (amount,) = dimension["pricePerUnit"].values()
                zero = not amount.strip("0.")
                dimension["pricePerUnit"] = {"USD": "0", "CNY": "0"} if zero else {"CNY": amount}
            # the fee first, the hourly amount behind it
            term["priceDimensions"] = dict(sorted(
                term["priceDimensions"].items(), key=lambda pair: pair[1]["unit"] != "Quantity"))  # fmt: skip

    rows = [row for row in listed(change) if row["purchase_option"].startswith("reserved")]
    assert rows and {row["currency"] for row in rows} == {"CNY"}


def test_moments_of_saved_answers_are_texts() -> None:
    told = quote("9", 1)
    saved = {**told, "Timestamp": told["Timestamp"].isoformat().replace("+00:00", "Z")}
    assert spot(saved) == spot(told)
    assert spot({**told, "Timestamp": told["Timestamp"].replace(tzinfo=None)}) == spot(told)
    with pytest.raises(SchemaChanged, match="Timestamp"):
        spot({**told, "Timestamp": "yesterday"})


def test_blocks_of_racks_are_asked_for_by_ultraserver_and_priced_per_machine() -> None:
    import botocore.session
    from botocore.validate import ParamValidator

    service = botocore.session.get_session().get_service_model("ec2")
    shape = service.operation_model("DescribeCapacityBlockOfferings").input_shape
    queries = aws_commitments.block_queries("p6e-gb200.36xlarge")
    assert [query["UltraserverType"] for query in queries] == ["u-p6e-gb200x36", "u-p6e-gb200x72"]
    for query in (*queries, *aws_commitments.block_queries("p5.48xlarge")):
        report = ParamValidator().validate({**query, "CapacityDurationHours": 24}, shape)
        assert not report.has_errors(), report.generate_report()
    rack = {"UltraserverType": "u-p6e-gb200x72", "UltraserverCount": 1, "UpfrontFee": "18285.696"}
    item = block(InstanceType="p6e-gb200.36xlarge", InstanceCount=18, **rack)
    (row,) = aws_commitments.parse_blocks({"CapacityBlockOfferings": [item]}, ZONES, "us-east-1", TODAY)
    assert (row["instance_type"], row["price_per_hour"]) == ("p6e-gb200.36xlarge", "42.328")
