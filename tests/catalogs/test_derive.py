"""Derived prices say so, never replace a published one, and unknown options are listed."""

from __future__ import annotations

from decimal import Decimal

import pytest

from catalogs.offers.derive import derive_offers, load_commitment_ratios, unknown_options
from catalogs.offers.flags import admit_offers
from catalogs.tables.columns import column_names
from catalogs.tables.model import OFFER_KEY, REGIONAL_OFFER_KEY, Catalog
from catalogs.tables.table import Table


def test_derived_offers_say_so_and_stack_with_the_catalog(bundled: Catalog) -> None:
    derived = derive_offers(bundled)
    assert derived.n_rows > 500
    assert tuple(derived) == column_names("offers")
    assert set(derived["basis"]) == {"derived"}
    assert set(derived["flags"]) == {"derived_from_ratio"}
    assert admit_offers(derived, allow_flagged=False).mask.all()
    stacked = Table.concat([bundled.offers, derived])
    keys = stacked.keys_of(*OFFER_KEY)
    assert len(set(keys)) == len(keys)
    assert not set(derived.keys_of(*REGIONAL_OFFER_KEY)) & set(bundled.offers.keys_of(*REGIONAL_OFFER_KEY))


def test_a_derived_price_is_on_demand_times_the_ratio(bundled: Catalog) -> None:
    derived = derive_offers(bundled)
    mine = derived.take(
        derived.equals("instance_type", "Standard_NC24ads_A100_v4")
        & derived.equals("region", "eastus")
        & derived.equals("purchase_option", "reserved_1y")
    )
    ratios = load_commitment_ratios()
    ratio = ratios.take(
        ratios.equals("instance_type", "Standard_NC24ads_A100_v4")
        & ratios.equals("purchase_option", "reserved_1y")
    )["ratio"][0]
    row = mine.row(0)
    assert Decimal(row["price_per_hour"]) == (Decimal("3.673") * Decimal(ratio)).quantize(Decimal("1e-8"))
    assert row["as_of"] == "2026-01-26"
    assert row["term_hours"] == 8760
    assert "3.673" not in row["source"]


@pytest.mark.parametrize(
    ("provider", "name", "expected"),
    [
        ("aws", "p4d.24xlarge", ["reserved_3y", "savings_plan_1y", "savings_plan_3y"]),
        ("gcp", "a3-highgpu-8g", ["flex_start", "future_reservation", "cud_1y", "cud_3y"]),
        (
            "alibaba",
            "ecs.gn7-c13g1.26xlarge",
            ["spot", "subscription"],
        ),  # a list price of 2024-12-31 is known
        ("onprem", "rack", []),
    ],
)
def test_unknown_options(bundled: Catalog, provider: str, name: str, expected: list[str]) -> None:
    assert unknown_options(bundled, provider, name) == expected
