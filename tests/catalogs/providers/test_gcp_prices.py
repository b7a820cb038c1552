"""Prices composed of parts: known list prices come out, and a missing part never makes a bargain."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.providers.gcp_prices import (
    OPTIONS,
    Reconciliation,
    bundled_machines,
    flag_offers,
    load_machine_rules,
    machine_rule,
    price_machines,
)
from catalogs.providers.gcp_skus import RateBook, Sku, build_rate_book, load_sku_rules, parse_skus
from catalogs.providers.gcp_types import Machine
from catalogs.providers.known_types import known_types
from tests.fakes.gcp import fixture

AS_OF = "2026-11-20"
ALL = frozenset(OPTIONS)


def _machine(name: str, kind: str, gpus: int, vcpus: int, gib: int, ssd: int = 0) -> Machine:
    return Machine(name, "us-central1-a", vcpus, Decimal(gib), kind, gpus, ssd, "x86_64", False)


A2 = _machine("a2-highgpu-1g", "nvidia-tesla-a100", 1, 12, 85)
A2_ULTRA = _machine("a2-ultragpu-1g", "nvidia-a100-80gb", 1, 12, 170, 375)
A3 = _machine("a3-highgpu-8g", "nvidia-h100-80gb", 8, 208, 1872, 6000)
A3_SMALL = _machine("a3-highgpu-1g", "nvidia-h100-80gb", 1, 26, 234, 750)
A3_MEGA = _machine("a3-megagpu-8g", "nvidia-h100-mega-80gb", 8, 208, 1872, 6000)
A4 = _machine("a4-highgpu-8g", "nvidia-b200", 8, 224, 3968, 12000)
G2 = _machine("g2-standard-4", "nvidia-l4", 1, 4, 16)


@pytest.fixture(scope="module")
def book() -> RateBook:
    return build_rate_book(parse_skus({"skus": fixture("skus")}))


def _price(machine: Machine, option: str, book: RateBook) -> str | None:
    rows, _ = price_machines([machine], book, ALL, AS_OF)
    return next((row["price_per_hour"] for row in rows if row["purchase_option"] == option), None)


@pytest.mark.parametrize(
    ("machine", "option", "price"),
    [
        (A2, "on_demand", "3.673385"),  # published list prices of us-central1
        (A2_ULTRA, "on_demand", "5.06879789"),  # with its local SSD; 5.0277 without
        (A3, "on_demand", "88.489927847"),
        (A3_MEGA, "on_demand", "93.399902247"),
        (G2, "on_demand", "0.706832255"),
        (A4, "on_demand", "128.88"),  # eight slices of the whole machine, nothing added
        (A4, "spot", "39.6336"),
        (A3, "flex_start", "38.320038247"),
        (A2, "cud_1y", "2.314207"),
        (A2, "cud_3y", "1.285691"),
    ],
)
def test_the_sum_of_the_parts_is_the_list_price(
    machine: Machine, option: str, price: str, book: RateBook
) -> None:
    assert _price(machine, option, book) == price


def test_flex_start_is_an_option_of_its_own_and_far_below_on_demand(book: RateBook) -> None:
    rows, _ = price_machines([A2], book, ALL, AS_OF)
    by_option = {row["purchase_option"]: Decimal(row["price_per_hour"]) for row in rows}
    assert by_option["flex_start"] < by_option["on_demand"] * Decimal("0.6")
    assert by_option["on_demand"] == Decimal("3.673385")


def test_commitments_are_regional_and_last_their_term(book: RateBook) -> None:
    rows, _ = price_machines([A2, replace(A2, zone="us-central1-b")], book, ALL, AS_OF)
    told = {(r["purchase_option"], r["zone"], r["option_variant"], r["term_hours"]) for r in rows}
    assert {item for item in told if item[0].startswith("cud")} == {
        ("cud_1y", "", "resource", "8760"),
        ("cud_3y", "", "resource", "26280"),
    }
    assert {item[1] for item in told if item[0] == "on_demand"} == {"us-central1-a", "us-central1-b"}


def test_small_a3_machines_are_not_sold_on_demand(book: RateBook) -> None:
    assert _price(A3_SMALL, "on_demand", book) is None
    assert _price(A3_SMALL, "spot", book) is not None
    _, found = price_machines([A3_SMALL], book, frozenset({"on_demand"}), AS_OF)
    assert found.machines == ()  # not sold is not the same as not priced


@pytest.mark.parametrize("component", ["cpu", "ram", "gpu", "local_ssd"])
def test_a_missing_part_leaves_no_price_and_is_reported(component: str, book: RateBook) -> None:
    poor = replace(book, rates={key: rate for key, rate in book.rates.items() if key[0] != component})
    rows, found = price_machines([A3], poor, frozenset({"on_demand"}), AS_OF)
    assert rows == []
    assert [(item.instance_type, item.option) for item in found.machines] == [(A3.name, "on_demand")]
    assert component in found.machines[0].missing[0]


def test_the_price_of_another_region_is_not_borrowed(book: RateBook) -> None:
    rows, found = price_machines([replace(A2, zone="us-west4-b")], book, ALL, AS_OF)
    assert rows == []
    assert {item.region for item in found.machines} == {"us-west4"}


def test_a_machine_whose_ssd_is_not_known_has_no_price(book: RateBook) -> None:
    new = _machine("a3-ultragpu-9g", "nvidia-h200-141gb", 8, 224, 2952)
    rows, found = price_machines([new], book, ALL, AS_OF)
    assert rows == []
    assert "local SSD is not known" in found.machines[0].missing[0]


def test_a_series_nobody_described_has_no_price_and_is_reported(book: RateBook) -> None:
    rows, found = price_machines([_machine("a9-hyper-8g", "nvidia-b200", 8, 9, 9)], book, ALL, AS_OF)
    assert rows == []
    assert found.machines[0].option == "any option"
    assert machine_rule("a9-hyper-8g") is None


def test_both_ways_are_reconciled(book: RateBook) -> None:
    _, found = price_machines([A2, A2_ULTRA], book, ALL, AS_OF)
    assert {note.description.split(" running")[0] for note in found.skus} == {
        "Nvidia X900 GPU",
        "Commitment v1: Nvidia Tesla V100 GPU",
        "Nvidia Tesla P100 GPU",
        "Nvidia Tesla P4 GPU",
    }
    assert ("gpu", "nvidia-b200") in found.idle
    assert ("gpu", "nvidia-tesla-a100") not in found.idle
    assert {(item.instance_type, item.option) for item in found.machines} == {
        (A2_ULTRA.name, "cud_1y"),
        (A2_ULTRA.name, "cud_3y"),
    }
    text = "\n".join(found.lines())
    assert "79 SKUs understood, 4 GPU-related ones not" in text
    assert "no price for a2-ultragpu-1g in us-central1 by cud_1y: no gpu SKU of nvidia-a100-80gb" in text
    assert "no machine uses the gpu SKUs of nvidia-b200" in text
    assert Reconciliation(0, (), (), (), ()).lines() == ["0 SKUs understood, 0 GPU-related ones not"]


@pytest.mark.parametrize(
    ("name", "kind", "words", "price", "expected"),
    [
        ("g4-standard-6", "nvidia-rtx-pro-6000", "1/8 vGPU no lssd running in Iowa", "0.64688", "0.64688"),
        ("ct5p-hightpu-4t", "ct5p", "TpuV5p running in Iowa", "4.2", "16.8"),
        ("a4x-highgpu-4g", "nvidia-gb200", "A4X Nvidia GB200 (1 gpu slice) running in Iowa", "17", "68"),
    ],
)
def test_a_slice_pays_for_its_whole_machine(
    name: str, kind: str, words: str, price: str, expected: str
) -> None:
    count = int(name[-2]) if name[-2].isdigit() and name[-1] != "6" else 1
    machine = Machine(name, "us-central1-a", 6, Decimal(22), kind, count, 12000, "x86_64", False)
    group = ("Compute", "TPU" if kind.startswith("ct") else "GPU", "OnDemand")
    book = build_rate_book([Sku("X", words, group, ("us-central1",), "h", Decimal(price), "USD")])
    rows, _ = price_machines([machine], book, frozenset({"on_demand"}), AS_OF)
    assert [row["price_per_hour"] for row in rows] == [expected]


def test_a_machine_without_its_disks_pays_for_none(book: RateBook) -> None:
    bare = replace(A2_ULTRA, name="a2-ultragpu-1g-nolssd", ssd_gib=0)
    prices = [price_machines([one], book, frozenset({"on_demand"}), AS_OF)[0][0] for one in (A2_ULTRA, bare)]
    full, less = (Decimal(row["price_per_hour"]) for row in prices)
    assert less < full


def test_spot_without_discount_and_retired_machines_are_flagged(book: RateBook) -> None:
    dear = dict(book.rates)
    for key in list(dear):
        if key[2] == "spot":
            dear[key] = dear[*key[:2], "on_demand", key[3]]
    rows, _ = price_machines([A2], replace(book, rates=dear), frozenset({"on_demand", "spot"}), AS_OF)
    flags = {row["purchase_option"]: row["flags"] for row in flag_offers(rows, frozenset())}
    assert flags == {"on_demand": "", "spot": "spot_equals_on_demand"}
    flags = {row["purchase_option"]: row["flags"] for row in flag_offers(rows, {A2.name})}
    assert flags == {"on_demand": "retired", "spot": "retired;spot_equals_on_demand"}


def test_every_bundled_machine_but_one_has_a_rule_whose_gpu_is_priced() -> None:
    known = {name: machine_rule(name) for name in known_types("gcp")}
    assert [name for name, rule in known.items() if rule is None] == ["a3-edgegpu-8g"]
    priced = {rule.series for rule, _ in load_sku_rules() if rule.component == "gpu"}
    hosts = {rule.series for rule, _ in load_sku_rules() if rule.component == "cpu"}
    for rule in load_machine_rules():
        assert rule.accelerator_type in priced or rule.pattern == "n1-*"
        assert rule.host in hosts or rule.gpu_covers == "cpu ram local_ssd"
    assert {machine.accelerator_type for machine in bundled_machines()} <= priced


_rate = st.decimals(min_value="0.000000001", max_value="20", places=9)


@given(
    rates=st.tuples(_rate, _rate, _rate),
    vcpus=st.integers(1, 416),
    gib=st.integers(1, 4096),
    gpus=st.integers(1, 16),
)
def test_the_price_is_the_exact_sum(
    rates: tuple[Decimal, Decimal, Decimal], vcpus: int, gib: int, gpus: int
) -> None:
    parts = (("cpu", "a2"), ("ram", "a2"), ("gpu", "nvidia-tesla-a100"))
    made = {(*part, "spot", "us-central1"): rate for part, rate in zip(parts, rates, strict=True)}
    machine = replace(A2, vcpus=vcpus, memory_gib=Decimal(gib), accelerators=gpus)
    rows, _ = price_machines([machine], RateBook(made, "USD"), frozenset({"spot"}), AS_OF)
    exact = vcpus * rates[0] + gib * rates[1] + gpus * rates[2]
    assert Decimal(rows[0]["price_per_hour"]) == exact
