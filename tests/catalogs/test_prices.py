"""Well-known list prices, pinned: a wrong import must not pass."""

from __future__ import annotations

from decimal import Decimal

import pytest

from catalogs.tables.model import Catalog

# provider, region, instance type, price in the list's currency as published (Alibaba: without system disk)
KNOWN = [
    ("aws", "us-east-1", "p4d.24xlarge", "21.957642"),
    ("aws", "us-east-1", "p4de.24xlarge", "27.44705"),
    ("aws", "us-east-1", "p5.48xlarge", "55.04"),
    ("aws", "us-east-1", "p3.2xlarge", "3.06"),
    ("aws", "us-east-1", "p3dn.24xlarge", "31.212"),
    ("aws", "us-east-1", "g4dn.xlarge", "0.526"),
    ("aws", "us-east-1", "g5.48xlarge", "16.288"),
    ("aws", "us-east-1", "g6e.48xlarge", "30.13118"),
    ("aws", "us-east-1", "trn1.32xlarge", "21.50"),
    ("aws", "us-east-1", "inf2.48xlarge", "12.98127"),
    ("gcp", "us-central1", "a2-highgpu-1g", "3.673385"),
    ("gcp", "us-central1", "a2-ultragpu-1g", "5.0688"),
    ("gcp", "us-central1", "a3-highgpu-8g", "88.49"),
    ("gcp", "us-central1", "g2-standard-4", "0.7068"),
    ("gcp", "us-central1", "n1-standard-8+nvidia-tesla-v100x1", "2.86"),
    ("azure", "eastus", "Standard_ND96asr_v4", "27.197"),
    ("azure", "eastus", "Standard_ND96amsr_A100_v4", "32.77"),
    ("azure", "eastus", "Standard_ND96isr_H100_v5", "98.32"),
    ("azure", "eastus", "Standard_NC24ads_A100_v4", "3.673"),
    ("azure", "eastus", "Standard_NC6s_v3", "3.06"),
    ("azure", "eastus", "Standard_ND40rs_v2", "22.032"),
    ("azure", "eastus", "Standard_NC4as_T4_v3", "0.526"),
    ("alibaba", "cn-hangzhou", "ecs.gn7e-c16g1.4xlarge", "34.742"),
    ("alibaba", "cn-hangzhou", "ecs.gn7i-c8g1.2xlarge", "9.5326"),
]


def prices(catalog: Catalog, provider: str, region: str, name: str, option: str) -> list[tuple[Decimal, str]]:
    offers = catalog.offers
    mask = offers.equals("provider", provider) & offers.equals("region", region)
    mask &= offers.equals("instance_type", name) & offers.equals("purchase_option", option)
    return sorted({(Decimal(p), c) for p, c in offers.take(mask).keys_of("price_per_hour", "currency")})


@pytest.mark.parametrize(("provider", "region", "name", "price"), KNOWN)
def test_on_demand_equals_the_published_price(
    bundled: Catalog, provider: str, region: str, name: str, price: str
) -> None:
    found = prices(bundled, provider, region, name, "on_demand")
    assert len(found) == 1, found
    amount, currency = found[0]
    assert currency == ("CNY" if provider == "alibaba" else "USD")
    places = Decimal(price).as_tuple().exponent
    assert isinstance(places, int)
    assert round(amount, -places) == Decimal(price)


def test_alibaba_price_is_exact_without_the_disk(bundled: Catalog) -> None:
    found = prices(bundled, "alibaba", "cn-hangzhou", "ecs.gn7e-c16g1.4xlarge", "on_demand")
    assert found == [(Decimal("34.742"), "CNY")]


def test_alibaba_spot_is_without_the_disk_too(bundled: Catalog) -> None:
    # 26.46 CNY on demand at 31 %: the spot rule only comes out with the disk taken from both.
    found = prices(bundled, "alibaba", "cn-beijing", "ecs.gn6v-c8g1.2xlarge", "spot")
    assert (Decimal("8.2026"), "CNY") in found


def test_a2_highgpu_spot_is_the_market_price_not_the_queued_one(bundled: Catalog) -> None:
    assert prices(bundled, "gcp", "us-central1", "a2-highgpu-1g", "spot") == [(Decimal("1.92802"), "USD")]
    assert prices(bundled, "gcp", "us-central1", "a2-highgpu-1g", "cud_3y") == [(Decimal("1.28571"), "USD")]


def test_p4d_is_sold_in_every_way_a_source_prices(bundled: Catalog) -> None:
    assert prices(bundled, "aws", "us-east-1", "p4d.24xlarge", "reserved_1y") == [
        (Decimal("13.921094"), "USD")
    ]
    assert prices(bundled, "aws", "us-east-1", "p4d.24xlarge", "capacity_block") == [(Decimal("11.8"), "USD")]
    assert len(prices(bundled, "aws", "us-east-1", "p4d.24xlarge", "spot")) == 4


def test_azure_commitments_of_the_recorded_calculator(bundled: Catalog) -> None:
    for option, price in (
        ("reserved_3y", "1.77195586"),
        ("savings_plan_1y", "3.97471"),
        ("savings_plan_3y", "2.9457"),
    ):
        found = prices(bundled, "azure", "polandcentral", "Standard_NC24ads_A100_v4", option)
        assert found == [(Decimal(price), "USD")], option


def test_no_a100x8_on_gcp_at_a_queued_price(bundled: Catalog) -> None:
    offers = bundled.offers
    mask = offers.equals("instance_type", "a2-highgpu-8g") & offers.equals("purchase_option", "on_demand")
    assert min(offers.take(mask).number("price_per_hour")) > 25
