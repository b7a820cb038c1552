"""A user's own machines."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.errors import CatalogInputError
from catalogs.offers.owned_cost import OwnedCost
from catalogs.offers.static import load_static, owned_cost_breakdown
from catalogs.tables.columns import load_columns

GOOD = """\
version: 1
defaults:
  region: berlin
  usd_per_kwh: 0.25
machines:
  - instance_type: rack-a100
    accelerator: A100-SXM-80
    accelerator_count: 8
    vcpus: 128
    memory_gib: 2048
    intra_node: nvswitch
    internode_gbps: 1600
    rdma: infiniband
    nodes: 4
    purchase_price_usd: 199000
    lifetime_years: 4
    power_kw: 6.5
    pue: 1.3
    hosting_usd_per_month: 900
    utilisation_ratio: 0.7
  - instance_type: rack-old
    accelerator: v100-16gb-sxm
    accelerator_count: 1
    vcpus: 64
    memory_gib: 512
    nodes: 2
    cost_basis: marginal
    power_watts: 350
  - instance_type: gpu-box
    provider: mycloud
    region: us-1
    accelerator: h100-80gb-sxm
    accelerator_count: 8
    vcpus: 128
    memory_gib: 2048
    nodes: 16
    purchase_option: on_demand
    price_per_hour: 49.24
    currency: EUR
"""


def write(tmp_path: Path, text: str, name: str = "own.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def faults(path: Path) -> list[str]:
    with pytest.raises(CatalogInputError) as caught:
        load_static(path)
    return [line.removeprefix(f"{path}:") for line in str(caught.value).split("\n")]


def test_own_machines_become_offers_with_finite_capacity(tmp_path: Path) -> None:
    static = load_static(write(tmp_path, GOOD))
    offers, types = static.offers, static.instance_types
    assert offers["purchase_option"].tolist() == ["owned", "owned", "on_demand"]
    assert offers["capacity"].tolist() == [4.0, 2.0, 16.0]
    assert offers["provider"].tolist() == ["onprem", "onprem", "mycloud"]
    assert offers["region"].tolist() == ["berlin", "berlin", "us-1"]
    assert offers["currency"].tolist() == ["USD", "USD", "EUR"]
    assert set(offers["basis"]) == {"declared"}
    assert types["accelerator"].tolist() == ["a100-80gb-sxm", "v100-16gb-sxm", "h100-80gb-sxm"]
    assert types["accelerator_memory_gib"].tolist() == [80.0, 16.0, 80.0]
    assert types["intra_node"].tolist() == ["nvswitch", "single", "unknown"]
    assert np.isnan(types["internode_gbps"][1])


@pytest.mark.parametrize(
    "link", next(c.choices for c in load_columns()["instance_types"] if c.name == "intra_node")
)
def test_every_link_of_the_catalog_can_be_stated(tmp_path: Path, link: str) -> None:
    text = GOOD.replace("intra_node: nvswitch", f"intra_node: {link}")
    assert load_static(write(tmp_path, text)).instance_types["intra_node"][0] == link


def costs(tmp_path: Path, text: str = GOOD) -> tuple[OwnedCost, OwnedCost]:
    """Costs of the two owned machines."""
    rack, old, quoted = load_static(write(tmp_path, text)).costs
    assert rack is not None and old is not None and quoted is None
    return rack, old


def test_an_owned_machine_competes_at_what_is_still_paid(tmp_path: Path) -> None:
    rack, old = costs(tmp_path)
    power, hosting = (part.usd_per_hour for part in rack.parts)
    assert power == Decimal("6.5") * Decimal("1.3") * Decimal("0.25")
    assert abs(hosting - Decimal(900) / (730 * Decimal("0.7"))) < Decimal("1e-7")
    assert rack.usd_per_hour == rack.marginal_usd_per_hour == power + hosting
    assert old.usd_per_hour == Decimal("0.35") * Decimal("0.25")
    assert old.full_usd_per_hour is None  # what it was bought for is unknown
    offers = load_static(write(tmp_path, GOOD)).offers
    assert offers["option_variant"].tolist() == ["marginal", "marginal", ""]
    assert Decimal(str(offers["price_per_hour"][0])) == power + hosting


@pytest.mark.parametrize("asked", ["cost_basis: full", "purchase_option: dedicated"])
def test_full_cost_adds_the_purchase(tmp_path: Path, asked: str) -> None:
    text = GOOD.replace("    nodes: 4\n", f"    nodes: 4\n    {asked}\n")
    rack, _ = costs(tmp_path, text)
    purchase = Decimal(199000) / (Decimal(4) * 8760 * Decimal("0.7"))
    assert [part.label for part in rack.parts] == ["purchase", "power", "hosting"]
    assert abs(rack.parts[0].usd_per_hour - purchase) < Decimal("1e-7")
    assert rack.usd_per_hour == costs(tmp_path)[0].full_usd_per_hour
    offers = load_static(write(tmp_path, text)).offers
    assert offers["option_variant"].tolist() == ["full", "marginal", ""]
    assert Decimal(str(offers["price_per_hour"][0])) == rack.usd_per_hour


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    lifetime_years: 4\n", "", "6: lifetime_years: required"),
        ("    power_kw: 6.5\n", "", "6: power_kw: give power_kw or power_watts"),
        ("  usd_per_kwh: 0.25\n", "  usd_per_kwh: 0\n", "21: usd_per_kwh: an hour"),
        ("cost_basis: marginal", "cost_basis: full", "21: purchase_price_usd: required"),
    ],
)
def test_what_the_cost_of_an_owned_machine_needs(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    assert message in "\n".join(faults(write(tmp_path, GOOD.replace(old, new, 1))))


def test_the_tables_have_the_catalogs_columns(tmp_path: Path) -> None:
    from catalogs.tables.columns import load_columns

    static = load_static(write(tmp_path, GOOD))
    for name, table in (("instance_types", static.instance_types), ("offers", static.offers)):
        assert [column.name for column in load_columns()[name]] == list(table)


def test_csv_says_the_same(tmp_path: Path) -> None:
    text = (
        "instance_type,accelerator,accelerator_count,vcpus,memory_gib,nodes,price_per_hour\n"
        "box,a100-80gb-sxm,8,96,1152,3,9.5\n"
        "\n"
        "box2,t4-16gb-pcie,1,4,16,5,0.3\n"
    )
    static = load_static(write(tmp_path, text, "own.csv"))
    assert static.offers["price_per_hour"].tolist() == ["9.5", "0.3"]


def test_all_faults_at_once_with_their_lines(tmp_path: Path) -> None:
    text = """\
machines:
  - instance_type: a
    accelerator: a100-80gb-sxn
    accelerator_count: -8
    vcpu: 128
    memory_gib: lots
    nodes: 1.5
  - instance_type: b
    accelerator: h100-80gb-sxm
    accelerator_count: 8
    vcpus: 1
    memory_gib: 10
    nodes: 1
    intra_node: nvlnk
    price_per_hour: 3
    power_kw: 5
extra: 1
"""
    found = faults(write(tmp_path, text))
    lines = ["2", "2", "3", "4", "5", "6", "7", "14", "16", "17"]
    assert [line.split(":")[0] for line in found] == lines
    everything = "\n".join(found)
    assert "did you mean a100-80gb-sxm" in everything
    assert "did you mean vcpus" in everything
    assert "did you mean nvlink" in everything
    assert "16: power_kw: give either price_per_hour" in everything


def test_a_name_of_several_accelerators_is_answered_with_all_of_them(tmp_path: Path) -> None:
    text = (
        "instance_type,accelerator,accelerator_count,vcpus,memory_gib,nodes,price_per_hour\n"
        "box,H100,8,96,1152,3,9\n"
    )
    (found,) = faults(write(tmp_path, text, "own.csv"))
    assert "accelerator: 'H100' is not known (did you mean" in found
    assert "h100-80gb-sxm" in found and "h100-80gb-pcie" in found


def test_csv_faults_name_the_row(tmp_path: Path) -> None:
    text = (
        "instance_type,accelerator,accelerator_count,vcpus,memory_gib,nodes,price_per_hour\n"
        "box,nope,8,96,1152,3,-1\nshort\n"
    )
    found = "\n".join(faults(write(tmp_path, text, "own.csv")))
    assert "2: accelerator" in found
    assert "2: price_per_hour" in found
    assert "3: row: 1 cells" in found


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "own.yaml", "empty"),
        ("machines: []", "own.yaml", "no machine"),
        ("- a", "own.yaml", "mapping"),
        ("machines: [", "own.yaml", "not YAML"),
        ("machines: 3", "own.yaml", "machines"),
        ("machines: [3]", "own.yaml", "mapping of fields"),
        ("x", "own.txt", ".yaml"),
        ("", "own.csv", "no machine"),
    ],
)
def test_files_that_are_not_a_machine_list(tmp_path: Path, text: str, name: str, message: str) -> None:
    assert message in "\n".join(faults(write(tmp_path, text, name)))


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(CatalogInputError, match="cannot be read"):
        load_static(tmp_path / "absent.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(CatalogInputError, match="UTF-8"):
        load_static(tmp_path / "binary.yaml")


def test_duplicates_and_two_machines_of_one_name(tmp_path: Path) -> None:
    text = (
        "instance_type,accelerator,accelerator_count,vcpus,memory_gib,nodes,price_per_hour,region\n"
        "box,a100-80gb-sxm,8,96,1152,3,9.5,here\n"
        "box,a100-80gb-sxm,8,96,1152,3,9.5,here\n"
        "box,a100-80gb-sxm,8,64,1152,3,9.5,there\n"
    )
    found = "\n".join(faults(write(tmp_path, text, "own.csv")))
    assert "3: instance_type: 'box' is listed on line 2 already" in found
    assert "4: vcpus: 'box' has another value" in found


money = st.decimals(min_value=1, max_value=10**6, places=2)


@given(money, st.integers(1, 20), st.decimals(min_value="0.05", max_value=1, places=2), money)
def test_full_cost_covers_what_was_paid(price: Decimal, years: int, used: Decimal, hosting: Decimal) -> None:
    cost = owned_cost_breakdown(
        power_kw=Decimal(5),
        usd_per_kwh=Decimal("0.2"),
        purchase_price_usd=price,
        lifetime_years=Decimal(years),
        hosting_usd_per_month=hosting,
        utilisation_ratio=used,
    )
    hours = Decimal(8760) * years * used
    paid = price + hosting * 12 * years + hours * 5 * Decimal("0.2")
    assert abs(cost.usd_per_hour * hours - paid) <= hours * Decimal("2e-7")
    assert cost.full_usd_per_hour == cost.usd_per_hour
    assert 0 < cost.marginal_usd_per_hour <= cost.usd_per_hour
