"""The bundled snapshot: counts, families, dates, flags, and what is known of each machine."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from catalogs.inspection.summary import find_types
from catalogs.offers.flags import load_flags, split_flags
from catalogs.store.validate import References, validate_rows
from catalogs.tables.columns import column_names, load_columns, make_table
from catalogs.tables.model import INSTANCE_TYPE_KEY, OFFER_KEY, REGIONAL_OFFER_KEY, Catalog
from catalogs.tables.regions import residency_groups
from catalogs.tables.table import Table

DATE = re.compile(r"20\d\d-(0[1-9]|1[0-2])(-\d\d)?")
FAMILIES = {
    "aws": "p3 p3dn p4d p4de p5 p5e p5en p6-b200 p6-b300 g4dn g5 g6 g6e trn1 inf2",
    "gcp": "a2-highgpu a2-ultragpu a2-megagpu a3-highgpu a3-megagpu a3-ultragpu g2-standard n1+t4 n1+v100",
    "azure": "NCv3 NDv2 NDasrA100_v4 NDamsrA100_v4 NC_A100_v4 ND_H100_v5 NC_H100_v5 NC_T4_v3",
    "alibaba": "gn6v gn7 gn7i gn7e gn8v gn8is",
    "lambda": "gpu_h100_sxm5 gpu_a100_sxm4",
}


def text_rows(table: Table) -> list[dict[str, str]]:
    return [
        {
            name: "" if value != value else f"{value:g}" if isinstance(value, float) else str(value)
            for name, value in row.items()
        }
        for row in table.rows()
    ]


def test_size(bundled: Catalog) -> None:
    assert bundled.instance_types.n_rows >= 250
    assert bundled.offers.n_rows >= 6000
    assert len(set(bundled.offers.keys_of(*REGIONAL_OFFER_KEY))) >= 6000
    clouds = {"aws", "gcp", "azure", "alibaba", "lambda", "oci", "vastai"}
    assert {m.provider for m in bundled.manifests} == clouds
    assert sum(m.n_offers for m in bundled.manifests) == bundled.offers.n_rows


def test_keys_are_unique_and_offers_have_a_machine(bundled: Catalog) -> None:
    assert max(Counter(bundled.offers.keys_of(*OFFER_KEY)).values()) == 1
    assert min(bundled.offers.lookup(bundled.instance_types, INSTANCE_TYPE_KEY)) >= 0
    assert min(bundled.instance_types.lookup(bundled.accelerators, ("accelerator",))) >= 0


@pytest.mark.parametrize("provider", FAMILIES)
def test_families_are_there(bundled: Catalog, provider: str) -> None:
    types = bundled.instance_types
    found = set(types.take(types.equals("provider", provider))["family"])
    assert set(FAMILIES[provider].split()) <= found


def test_every_row_has_a_source_and_a_date(bundled: Catalog) -> None:
    for table in (bundled.offers, bundled.instance_types, bundled.accelerators):
        assert all(table["source"])
        assert all(DATE.fullmatch(text) for text in set(table["as_of"]))
        places = [text for text in {*table["source"], *table["as_of"]} if "/work" in text or "/tmp" in text]
        assert not places


def test_every_row_passes_the_data_dictionary(bundled: Catalog) -> None:
    from catalogs.tariffs import usd_per

    types = text_rows(bundled.instance_types)
    references = References.of(text_rows(bundled.accelerators), types, {"CNY": float(usd_per("CNY"))})
    for name, rows in (("instance_types", types), ("offers", text_rows(bundled.offers))):
        kept, faults = validate_rows(name, rows, references)
        assert not faults, faults[:3]
        assert len(kept) == len(rows)


def test_every_region_is_known_with_its_residency(bundled: Catalog) -> None:
    groups = residency_groups()
    places = set(zip(bundled.offers["provider"], bundled.offers["region"], strict=True))
    assert places <= set(groups)
    assert groups["aws", "eu-central-1"] == groups["azure", "westeurope"] == "eu"
    assert groups["alibaba", "us-east-1"] == groups["aws", "us-east-1"] == "us"
    assert groups["alibaba", "cn-hangzhou"] == "cn"
    assert groups["gcp", "europe-west2"] == "uk"


def test_every_flag_is_in_the_flag_table(bundled: Catalog) -> None:
    used = {flag for text in set(bundled.offers["flags"]) for flag in split_flags(text)}
    assert used <= set(load_flags())


@pytest.mark.parametrize("name", ["ecs.gn7-c13g1.26xlarge", "ecs.gn7-c12g1.3xlarge", "ecs.ebmgn7.26xlarge"])
def test_gn7_has_specs_and_a_dated_price(bundled: Catalog, name: str) -> None:
    machine = find_types(bundled, name)[0]
    assert machine["accelerator"] == "a100-40gb-unknown"
    assert machine["vcpus"] > 0
    assert machine["memory_gib"] > 0
    mine = bundled.offers.take(bundled.offers.equals("instance_type", name))
    assert set(mine["purchase_option"]) == {"on_demand"} and set(mine["as_of"]) == {"2024-12-31"}
    per_card = mine.number("price_per_hour") / machine["accelerator_count"]
    assert ((per_card > 28) & (per_card < 32)).all()  # CNY


def test_tpus_are_listed_without_a_price(bundled: Catalog) -> None:
    machines = [row for row in bundled.instance_types.rows() if row["accelerator"].startswith("tpu-")]
    assert {row["accelerator"] for row in machines} == {"tpu-v5e-16gb", "tpu-v5p-95gb", "tpu-v6e-32gb"}
    assert not bundled.offers.is_in("instance_type", {row["instance_type"] for row in machines}).any()


def test_spot_basis_and_dates(bundled: Catalog) -> None:
    offers = bundled.offers
    spot = offers.equals("purchase_option", "spot")
    derived = spot & offers.equals("provider", "aws") & offers.equals("basis", "derived")
    assert set(offers.take(derived)["as_of"]) == {"2025-06-28"}
    floor = np.asarray(["administered_floor" in text for text in offers["flags"]])
    assert set(offers.take(floor)["basis"]) == {"derived"}
    assert set(offers.take(floor)["purchase_option"]) == {"spot"}
    assert int(floor.sum()) == 527


def test_spot_is_below_on_demand_unless_flagged(bundled: Catalog) -> None:
    offers = bundled.offers
    key = ("provider", "region", "zone", "instance_type")
    prices = offers.number("price_per_hour")
    places = zip(offers.keys_of(*key), offers["purchase_option"], prices, strict=True)
    listed = {place: price for place, option, price in places if option == "on_demand"}
    rows = zip(offers.keys_of(*key), offers["purchase_option"], offers["flags"], prices, strict=True)
    for place, option, flags, price in rows:
        if option == "spot" and place in listed:
            assert ("spot_equals_on_demand" in flags) == (price >= listed[place]), place


def test_retired_types(bundled: Catalog) -> None:
    types = bundled.instance_types
    retired = set(types.take(types.equals("status", "retired"))["instance_type"])
    assert retired >= {
        "p3.2xlarge",
        "p3.8xlarge",
        "p3.16xlarge",
        "p2.xlarge",
        "Standard_NC24rs_v3",
        "Standard_NV12s_v3",
    }
    assert "Standard_NV32as_v4" not in retired  # no date of its end is published
    mine = bundled.offers.take(bundled.offers.is_in("instance_type", retired))
    assert all("retired" in split_flags(text) for text in mine["flags"])


def test_accelerators_of_note(bundled: Catalog) -> None:
    chips = {row["accelerator"]: row for row in bundled.accelerators.rows()}
    assert chips["a100-80gb-sxm"]["bf16_tflops"] == 312
    assert chips["h100-80gb-sxm"]["bf16_tflops"] == 989
    assert np.isnan(chips["v100-16gb-sxm"]["bf16_tflops"])
    assert np.isnan(chips["h-96gb-unknown"]["fp16_tflops"])
    for name, chip in chips.items():
        if name.endswith("-unknown"):
            assert np.isnan(chip["link_gb_per_s"]), name
    assert not chips["inf2-32gb"]["trainable"]
    assert not chips["inf1-8gb"]["trainable"]
    assert chips["trn1-32gb"]["trainable"]


def test_unknown_form_is_never_faster_than_a_stated_one(bundled: Catalog) -> None:
    chips = {row["accelerator"]: row for row in bundled.accelerators.rows()}
    for stem in ("a100-40gb", "a100-80gb", "v100-16gb", "v100-32gb"):
        cautious = chips[f"{stem}-unknown"]
        for form in ("sxm", "pcie"):
            for rate in ("fp16_tflops", "memory_gb_per_s"):
                assert cautious[rate] <= chips[f"{stem}-{form}"][rate]


MACHINES = {
    "p4d.24xlarge": ("a100-40gb-sxm", "nvswitch", 600, 400, "efa"),
    "p3.16xlarge": ("v100-16gb-sxm", "nvlink", 300, None, ""),
    "p5.48xlarge": ("h100-80gb-sxm", "nvswitch", 900, 3200, "efa"),
    "Standard_NC24ads_A100_v4": ("a100-80gb-pcie", "single", None, 20, ""),
    "Standard_ND96asr_v4": ("a100-40gb-sxm", "nvswitch", 600, 1600, "infiniband"),
    "Standard_NC80adis_H100_v5": ("h100-94gb-nvl", "pcie", None, 80, ""),
    "a2-highgpu-1g": ("a100-40gb-sxm", "single", None, 24, ""),
    "a2-highgpu-8g": ("a100-40gb-sxm", "nvswitch", 600, 100, ""),
    "a3-ultragpu-8g": ("h200-141gb-sxm", "nvswitch", 900, 3200, "roce"),
    "ecs.gn7e-c16g1.32xlarge": ("a100-80gb-unknown", "unknown", None, 64, ""),
    "gpu_1x_h100_pcie": ("h100-80gb-pcie", "single", None, None, ""),
    "gpu_8x_a100_80gb_sxm4": ("a100-80gb-sxm", "unknown", None, None, ""),
    "trn1.32xlarge": ("trn1-32gb", "neuronlink", None, 800, "efa"),
    "g6.xlarge": ("l4-24gb-pcie", "single", None, 2.5, ""),
    "ct5p-hightpu-4t": ("tpu-v5p-95gb", "ici", 400, None, ""),
    "ct5lp-hightpu-8t": ("tpu-v5e-16gb", "ici", 200, None, ""),
}


@pytest.mark.parametrize("name", MACHINES)
def test_machine(bundled: Catalog, name: str) -> None:
    machine = find_types(bundled, name)[0]
    chip, link, rate, network, rdma = MACHINES[name]
    assert (machine["accelerator"], machine["intra_node"], machine["rdma"]) == (chip, link, rdma)
    for value, expected in ((machine["intra_node_gb_per_s"], rate), (machine["internode_gbps"], network)):
        assert np.isnan(value) if expected is None else value == expected


def test_usable_memory_is_not_the_nominal_one(bundled: Catalog) -> None:
    assert find_types(bundled, "g6.xlarge")[0]["accelerator_memory_gib"] == 22.35
    assert find_types(bundled, "g6f.large")[0]["accelerator_count"] == 0.125


def test_tables_have_the_dictionary_s_columns(bundled: Catalog) -> None:
    assert tuple(bundled.offers) == column_names("offers")
    assert tuple(bundled.instance_types) == column_names("instance_types")
    assert tuple(bundled.accelerators) == column_names("accelerators")
    assert all(column.description for columns in load_columns().values() for column in columns)


def test_an_empty_table_has_the_columns() -> None:
    assert make_table("offers", [], "none").n_rows == 0
