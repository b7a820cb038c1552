"""Canonical ids and alias tables."""

from __future__ import annotations

import csv

import pytest

from catalogs.errors import CatalogError
from catalogs.tables.accelerators import canonical, load_accelerators, load_aliases
from catalogs.tables.columns import DATA_DIRECTORY, read_csv_table
from catalogs.tables.normalize import decimal_text, family_of, split_date
from catalogs.tables.regions import regions_in


@pytest.mark.parametrize(
    ("name", "provider", "instance_type", "expected"),
    [
        ("A100-SXM-80", "performance", "", "a100-80gb-sxm"),
        ("H100-PCIe", "performance", "", "h100-80gb-pcie"),
        ("V100-PCIe-32", "performance", "", "v100-32gb-pcie"),
        ("Trainium1", "performance", "", "trn1-32gb"),
        ("A100", "aws", "p4d.24xlarge", "a100-40gb-sxm"),
        ("A100-80GB", "azure", "Standard_NC24ads_A100_v4", "a100-80gb-pcie"),
        ("A100-80GB", "azure", "Standard_ND96amsr_A100_v4", "a100-80gb-sxm"),
        ("A100-80GB", "alibaba", "ecs.gn7e-c16g1.4xlarge", "a100-80gb-unknown"),
        ("A100", "lambda", "gpu_1x_a100", "a100-40gb-unknown"),
        ("A100", "lambda", "gpu_1x_a100_sxm4", "a100-40gb-sxm"),
        ("H100", "lambda", "gpu_1x_h100_pcie", "h100-80gb-pcie"),
        ("a100-40gb-sxm", "onprem", "", "a100-40gb-sxm"),
    ],
)
def test_canonical(name: str, provider: str, instance_type: str, expected: str) -> None:
    assert canonical(name, provider, instance_type) == expected


def test_an_unknown_word_names_the_alias_table() -> None:
    with pytest.raises(CatalogError, match=r"aliases/aws\.csv"):
        canonical("Z9000", "aws", "z9.large")


def test_every_alias_leads_to_a_known_accelerator() -> None:
    known = set(load_accelerators()["accelerator"])
    tables = [path.stem for path in (DATA_DIRECTORY / "aliases").glob("*.csv")]
    assert {"aws", "azure", "gcp", "alibaba", "lambda", "performance"} <= set(tables)
    for table in tables:
        for alias in load_aliases(table):
            assert alias.accelerator in known, alias
            assert alias.source


def test_interconnects_carry_rates_and_sources() -> None:
    rows = read_csv_table("interconnects", DATA_DIRECTORY / "interconnects.csv").rows()
    found = {row["interconnect"]: row for row in rows}
    assert found["nvswitch-600"]["gb_per_s"] == 600
    assert found["efa-3200"]["gbps"] == 3200
    assert found["infiniband-1600"]["gbps"] == 1600
    assert all(row["source"] and row["as_of"] for row in rows)


def test_provider_options_are_purchase_options() -> None:
    from catalogs.tables.model import PurchaseOption

    with (DATA_DIRECTORY / "provider_options.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["purchase_option"] for row in rows} <= {option.value for option in PurchaseOption}
    assert all(row["source"] and row["as_of"] for row in rows)


@pytest.mark.parametrize(
    ("provider", "name", "family"),
    [
        ("aws", "p6-b200.48xlarge", "p6-b200"),
        ("aws", "g4dn.metal", "g4dn"),
        ("gcp", "n1-standard-16+nvidia-tesla-t4x2", "n1+t4"),
        ("gcp", "a3-megagpu-8g", "a3-megagpu"),
        ("azure", "Standard_ND96asr_v4", "NDasrA100_v4"),
        ("azure", "Standard_NC24rs_v3", "NCv3"),
        ("alibaba", "ecs.gn8is-2x.8xlarge", "gn8is"),
        ("lambda", "gpu_8x_h100_sxm5", "gpu_h100_sxm5"),
        ("elsewhere", "box", "box"),
    ],
)
def test_family(provider: str, name: str, family: str) -> None:
    assert family_of(provider, name) == family


def test_residency_groups_and_countries() -> None:
    assert ("aws", "eu-west-1") in regions_in("eu")
    assert ("aws", "eu-west-2") not in regions_in("eu")
    assert ("azure", "germanywestcentral") in regions_in("DE")
    assert ("gcp", "europe-west2") in regions_in("europe")


def test_decimals_lose_float_noise_only() -> None:
    assert decimal_text("49.35922000000001") == "49.35922"
    assert decimal_text("100") == "100"
    assert decimal_text("0.00000001") == "0.00000001"
    for text in ("", "nan", "x", "inf"):
        with pytest.raises(ValueError, match="not"):
            decimal_text(text)


def test_dates_keep_their_remark() -> None:
    assert split_date("2026-04 or later (undated)") == ("2026-04", "or later (undated)")
    with pytest.raises(ValueError, match="ISO date"):
        split_date("spring 2026")
