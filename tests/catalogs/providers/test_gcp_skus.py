"""SKU rules: the whole description decides, and what no rule understands is reported."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest

from catalogs.providers.base import FetchLog, SchemaChanged
from catalogs.providers.gcp_skus import (
    UNUSED,
    WATCH,
    Sku,
    build_rate_book,
    load_sku_rules,
    parse_skus,
    pattern_of,
    sku_reader,
)
from catalogs.providers.gcp_types import load_accelerator_types
from tests.fakes.gcp import fixture

US = ("us-central1",)


def _sku(description: str, price: str = "1", group: str = "GPU", usage: str = "OnDemand", **more: Any) -> Sku:
    family = more.get("family", "Compute")
    unit = more.get("unit", "h")
    return Sku(
        more.get("sku_id", description), description, (family, group, usage), US, unit, Decimal(price), "USD"
    )


def _key_of(sku: Sku) -> tuple[str, str, str] | None:
    keys = [key[:3] for key in build_rate_book([sku]).rates]
    return keys[0] if keys else None


@pytest.mark.parametrize(
    ("description", "usage", "part"),
    [
        ("Nvidia Tesla A100 GPU running in Americas", "OnDemand", ("nvidia-tesla-a100", "on_demand")),
        ("Nvidia Tesla A100 80GB GPU running in Americas", "OnDemand", ("nvidia-a100-80gb", "on_demand")),
        (
            "Nvidia Tesla A100 GPU attached to DWS Defined Duration VMs running in Americas",
            "OnDemand",
            ("nvidia-tesla-a100", "flex_start"),
        ),
        (
            "Nvidia Tesla A100 80GB GPU attached to Spot Preemptible VMs running in Seoul",
            "Preemptible",
            ("nvidia-a100-80gb", "spot"),
        ),
        (
            "Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas",
            "OnDemand",
            ("nvidia-b200", "spot"),
        ),
        ("A4 Nvidia B200 (1 gpu slice) running in Americas", "OnDemand", ("nvidia-b200", "on_demand")),
        (
            "Nvidia H100 80GB Plus GPU running in Americas",
            "OnDemand",
            ("nvidia-h100-mega-80gb", "on_demand"),
        ),
        ("Nvidia H100 80GB GPU running in Americas", "OnDemand", ("nvidia-h100-80gb", "on_demand")),
        ("Commitment v1: Nvidia L4 GPU in Frankfurt for 1 Year", "Commit1Yr", ("nvidia-l4", "cud_1y")),
        (
            "Commitment v1: Nvidia L4 GPU running in Frankfurt for 3 Years",
            "Commit3Yr",
            ("nvidia-l4", "cud_3y"),
        ),
        ("H200 141GB GPU running in Netherlands", "OnDemand", ("nvidia-h200-141gb", "on_demand")),
        ("1/8 vGPU no lssd running in Iowa", "OnDemand", ("nvidia-rtx-pro-6000 1/8", "on_demand")),
    ],
)
def test_a_gpu_sku_is_the_option_its_words_say(description: str, usage: str, part: tuple[str, str]) -> None:
    assert _key_of(_sku(description, usage=usage)) == ("gpu", *part)


@pytest.mark.parametrize(
    "description",
    [
        "Reserved Nvidia Tesla A100 GPU in Americas",
        "Reserved Nvidia H100 80GB Mega GPU in Americas in Calendar Mode",
        "DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) in Americas",
        "Nvidia Tesla T4 GPU attached to Sole Tenancy VMs running in Americas",
        "NVIDIA L4 Virtual Workstation running in Americas",
        "Reserved V5e TPU in Seoul in Calendar Mode",
        "3/8 vGPU attached to DWS Defined Duration VMs running in Iowa",
        "Commitment v1: Nvidia Tesla A100 GPU running in Americas for 5 Years",
    ],
)
def test_other_products_are_left_aside_and_counted(description: str) -> None:
    book = build_rate_book([_sku(description)])
    assert (book.rates, book.notes, sum(book.unused.values())) == ({}, [], 1)


@pytest.mark.parametrize(
    "description",
    [
        "Nvidia Tesla A100 GPU",
        "Nvidia Tesla A100 GPU running in",
        "Cheap Nvidia Tesla A100 GPU running in Americas",
        "Nvidia X900 GPU running in Americas",
        "A3Hyper Instance Core running in Americas",
    ],
)
def test_a_description_that_almost_fits_is_reported_and_prices_nothing(description: str) -> None:
    book = build_rate_book([_sku(description)])
    assert book.rates == {}
    assert [note.reason for note in book.notes] == ["no rule fits its description"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"group": "CPU"}, "resource group is 'CPU'"),
        ({"usage": "Commit1Yr"}, "usage type is 'Commit1Yr'"),
        ({"family": "Storage"}, "resource family is 'Storage'"),
        ({"unit": "min"}, "its unit is 'min'"),
        ({"price": "0"}, "its price is zero"),
    ],
)
def test_a_category_unit_or_price_that_contradicts_is_reported(change: dict[str, str], reason: str) -> None:
    book = build_rate_book([_sku("Nvidia L4 GPU running in Americas", **change)])  # type: ignore[arg-type]
    assert book.rates == {}
    assert reason in book.notes[0].reason


def test_two_different_prices_of_one_part_are_both_refused() -> None:
    words = "Nvidia L4 GPU running in {}"
    book = build_rate_book([_sku(words.format(place), price) for place, price in (("A", "1"), ("B", "2"))])
    assert book.rates == {}
    assert "another SKU has 1/h" in book.notes[0].reason
    same = build_rate_book([_sku(words.format(place), "2") for place in ("A", "B")])
    assert (len(same.rates), same.notes) == (1, [])


def test_a_third_price_does_not_revive_a_refused_part() -> None:
    skus = [
        _sku(f"Nvidia L4 GPU running in {place}", price) for place, price in zip("ABC", "121", strict=True)
    ]
    assert build_rate_book(skus).rates == {}


def test_a_page_served_twice_changes_nothing() -> None:
    skus = parse_skus({"skus": fixture("skus")})
    once, twice = build_rate_book(skus), build_rate_book([*skus, *skus])
    assert (once.rates, once.understood, once.notes) == (twice.rates, twice.understood, twice.notes)


def test_other_machines_are_of_no_concern() -> None:
    book = build_rate_book([_sku("N2 Instance Core running in Americas", group="CPU")])
    assert (book.rates, book.notes, book.unused) == ({}, [], {})


def test_prices_are_units_and_nanos_exactly() -> None:
    item = next(item for item in fixture("skus") if item["description"].startswith("Nvidia H100 80GB Plus"))
    assert parse_skus({"skus": [item]})[0].price == Decimal("10.344276")


def test_ram_per_gb_and_ssd_per_month_become_gib_and_hours() -> None:
    book = build_rate_book(
        [
            _sku("A2 Instance Ram running in Americas", "0.001", "RAM", unit="GBy.h"),
            _sku("SSD backed Local Storage", "0.073", "LocalSSD", unit="GiBy.mo", family="Storage"),
        ]
    )
    assert book.rate("ram", "a2", "on_demand", "us-central1") == Decimal("0.001073741824")
    assert book.rate("local_ssd", "any", "on_demand", "us-central1") == Decimal("0.0001")


def test_the_newest_price_is_in_force() -> None:
    item = dict(fixture("skus")[0])
    old = dict(item["pricingInfo"][0], effectiveTime="2020-01-01T00:00:00Z")
    expression = dict(old["pricingExpression"])
    expression["tieredRates"] = [
        {"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": "9", "nanos": 0}}
    ]
    old["pricingExpression"] = expression
    for order in ([old, *item["pricingInfo"]], [*item["pricingInfo"], old]):
        assert parse_skus({"skus": [{**item, "pricingInfo": order}]})[0].price == Decimal("0.031611")


@pytest.mark.parametrize("name", ["skuId", "description", "category", "serviceRegions"])
def test_a_sku_without_a_field_costs_itself_and_is_named(name: str) -> None:
    item = {key: value for key, value in fixture("skus")[0].items() if key != name}
    log = FetchLog()
    assert len(parse_skus({"skus": [fixture("skus")[1], item, 3]}, sku_reader(log))) == 1
    assert log.not_understood[0].reason == f"{name}: missing"
    assert len(log.not_understood) == 2


def test_a_page_of_nothing_but_odd_skus_is_a_change_of_schema_at_the_end() -> None:
    reader = sku_reader(FetchLog())
    assert parse_skus({"skus": [{"idOfSku": "x"}, {"idOfSku": "y"}]}, reader) == []
    with pytest.raises(SchemaChanged, match="not one of 2 rows"):
        reader.require_some()


@pytest.mark.parametrize(
    "infos", [None, [], [{}], [{"pricingExpression": {"usageUnit": "h", "tieredRates": []}}]]
)
def test_a_sku_without_a_price_has_none_and_is_noted(infos: Any) -> None:
    item = {**_item("Nvidia L4 GPU running in Americas"), "pricingInfo": infos}
    (sku,) = parse_skus({"skus": [item]})
    assert sku.price is None
    assert [note.reason for note in build_rate_book([sku]).notes] == ["its price is tiered or absent"]


def _item(description: str) -> dict[str, Any]:
    return {**fixture("skus")[0], "description": description, "category": {
        "resourceFamily": "Compute", "resourceGroup": "GPU", "usageType": "OnDemand"}}  # fmt: skip


def test_of_twins_that_hardly_differ_the_dearer_stays() -> None:
    words = "Nvidia L4 GPU running in {}"
    book = build_rate_book([_sku(words.format(p), price) for p, price in (("A", "0.5600"), ("B", "0.5602"))])
    assert list(book.rates.values()) == [Decimal("0.5602")]
    assert "the higher one is kept" in book.notes[0].reason


@pytest.mark.parametrize("payload", [{}, [], None, {"skus": {}}])
def test_an_answer_of_another_form_is_a_change_of_schema(payload: Any) -> None:
    with pytest.raises(SchemaChanged):
        parse_skus(payload)


def test_unknown_fields_are_ignored() -> None:
    item = {**fixture("skus")[0], "newField": {"x": 1}}
    assert parse_skus({"skus": [item], "more": 1}) == parse_skus({"skus": [fixture("skus")[0]]})


def _examples(text: str) -> list[str]:
    """Descriptions that a pattern stands for: with all of its optional words, and with none."""
    text = text.replace("{place}", "Americas").replace("{any}", "x").replace("{series}", "2")
    full = text.replace("[", "").replace("]", "")
    while "[" in text:
        text = re.sub(r"\[[^\[\]]*\]", "", text)
    return [full, text]


def test_no_two_pricing_rules_fit_one_description() -> None:
    pricing = [(rule, pattern) for rule, pattern in load_sku_rules() if rule.component not in (UNUSED, WATCH)]
    for rule, _ in pricing:
        for example in _examples(rule.description):
            assert [r.part for r, pattern in pricing if pattern.fullmatch(example)] == [rule.part], example


def test_rules_are_told_with_evidence_and_every_gpu_has_all_options() -> None:
    options = {"on_demand", "spot", "flex_start", "cud_1y", "cud_3y"}
    rules = [rule for rule, _ in load_sku_rules()]
    assert {rule.evidence for rule in rules} == {"read", "assumed"}
    assert all(rule.source and rule.as_of for rule in rules)
    series = {rule.series for rule in rules if rule.component == "gpu"}
    for name in series:
        assert {rule.option for rule in rules if rule.series == name} == options
    assert {name.split(" ")[0] for name in series} <= set(load_accelerator_types())


def test_brackets_and_words_of_a_pattern() -> None:
    pattern = pattern_of("A (1 x)[ [running ]in {place}]")
    assert pattern.fullmatch("A (1 x)")
    assert pattern.fullmatch("A (1 x) in B")
    assert pattern.fullmatch("A (1 x) running in B C")
    assert not pattern.fullmatch("A (1 x) in ")
    assert not pattern.fullmatch("A 1 x")
