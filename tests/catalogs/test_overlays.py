"""Price overlays."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalogs.errors import CatalogInputError
from catalogs.offers.overlays import Overlay, PriceNote, apply_overlays
from catalogs.tables.table import Table

TYPES = Table(
    {
        "provider": ["aws", "aws", "gcp"],
        "instance_type": ["p4d.24xlarge", "g5.xlarge", "a2"],
        "family": ["p4d", "g5", "a2"],
    }
)


def offers(*prices: str) -> Table:
    prices = prices or ("21.957642", "10.1", "1.006", "3.673385", "")
    n = len(prices)
    return Table(
        {
            "provider": ["aws", "aws", "aws", "gcp", "gcp"][:n],
            "region": ["us-east-1", "eu-west-1", "us-east-1", "us-central1", "us-central1"][:n],
            "instance_type": ["p4d.24xlarge", "p4d.24xlarge", "g5.xlarge", "a2", "a2"][:n],
            "purchase_option": ["on_demand", "spot", "on_demand", "on_demand", "cud_3y"][:n],
            "price_per_hour": list(prices),
            "upfront_per_instance": ["", "1000", "", "", ""][:n],
            "flags": ["", "administered_floor", "", "", ""][:n],
            "basis": ["list"] * n,
        }
    )


def prices(table: Table) -> list[str]:
    return [str(text) for text in table["price_per_hour"]]


def test_percent_is_exact_and_scales_the_upfront_part() -> None:
    made, notes = apply_overlays(
        offers(), TYPES, [Overlay(provider="aws", family="p4d", change="-12%", note="EDP")]
    )
    assert prices(made) == ["19.32272496", "8.888", "1.006", "3.673385", ""]
    assert made["upfront_per_instance"].tolist() == ["", "880", "", "", ""]
    assert made["flags"].tolist() == ["overlay", "administered_floor;overlay", "", "", ""]
    assert notes == (PriceNote("overlay 1: -12% on provider aws, family p4d (EDP), 2 offers"),)


def test_added_and_absolute() -> None:
    made, _ = apply_overlays(
        offers(),
        TYPES,
        [
            Overlay(instance_type="g5.*", change="+0.40"),
            Overlay(provider="gcp", purchase_option="cud_*", change="3.20"),
        ],
    )
    assert prices(made) == ["21.957642", "10.1", "1.406", "3.673385", "3.2"]
    assert made["basis"].tolist() == ["list", "list", "list", "list", "declared"]


def test_order_is_the_order_written() -> None:
    half, add = (
        Overlay(change="-50%", provider="gcp", purchase_option="on_demand"),
        Overlay(change="+1", provider="gcp"),
    )
    assert prices(apply_overlays(offers(), TYPES, [half, add])[0])[3] == "2.8366925"
    assert prices(apply_overlays(offers(), TYPES, [add, half])[0])[3] == "2.3366925"


def test_an_unknown_price_stays_unknown_under_a_discount() -> None:
    assert prices(apply_overlays(offers(), TYPES, [Overlay(change="-10%")])[0])[4] == ""


def test_region_patterns_and_an_overlay_that_hits_nothing() -> None:
    made, notes = apply_overlays(
        offers(), TYPES, [Overlay(region="aws/us-*", change="-1%"), Overlay(region="mars", change="-1%")]
    )
    assert [flag == "overlay" for flag in made["flags"]] == [True, False, True, False, False]
    assert notes[1].is_warning and not notes[0].is_warning
    assert str(notes[1]).startswith("warning: overlay 2") and "mars" in notes[1].text


def test_faults_name_every_overlay() -> None:
    wrong = [
        Overlay(change="-100%"),
        Overlay(change="cheap"),
        Overlay(instance_type="g5.xlarge", change="-2.00"),
    ]
    with pytest.raises(CatalogInputError) as caught:
        apply_overlays(offers(), TYPES, wrong)
    lines = str(caught.value).split("\n")
    assert len(lines) == 3
    assert "overlay 1" in lines[0] and "above 0" in lines[0]
    assert "overlay 2" in lines[1] and "'-12%'" in lines[1]
    assert "g5.xlarge" in lines[2]


@pytest.mark.parametrize("text", ["12%", "", "1e5", "--1", "1.2.3", "NaN", "-12 %"])
def test_change_that_is_not_understood(text: str) -> None:
    with pytest.raises(CatalogInputError, match="overlay 1"):
        apply_overlays(offers(), TYPES, [Overlay(change=text)])


@given(st.decimals(min_value="0.0001", max_value=1000, places=6), st.integers(-99, 500))
def test_percent_equals_decimal_arithmetic(price: Decimal, percent: int) -> None:
    made, _ = apply_overlays(offers(str(price)), TYPES, [Overlay(change=f"{percent:+d}%")])
    assert Decimal(prices(made)[0]) == price * (100 + percent) / 100


def test_no_overlay_changes_nothing() -> None:
    table = offers()
    made, notes = apply_overlays(table, TYPES, [])
    assert made is table
    assert notes == ()
    assert np.array_equal(made["price_per_hour"], table["price_per_hour"])
