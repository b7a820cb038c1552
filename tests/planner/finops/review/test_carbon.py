"""The estimate of what GPU use emits: monotone, unknown stays unknown, what is not mapped is said with its share."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from planner.finops.review.sections.carbon import estimate
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import each_day, review_of, section, write_bill

OCTOBER, LAST = date(2026, 10, 1), date(2026, 10, 31)
KNOWN = '{"GpuCount":8,"InstanceType":"p4d.24xlarge"}'
OTHER = '{"GpuCount":8,"InstanceType":"own-machine"}'


def test_an_estimate_grows_with_hours_and_differs_by_grid() -> None:
    few, many = (estimate("aws", "us-east-1", "a100-40gb-sxm", hours) for hours in (10.0, 30.0))
    assert few.kwh and many.kwh and few.kg and many.kg
    assert many.kwh[1] == pytest.approx(3 * few.kwh[1]) and many.kg[1] == pytest.approx(3 * few.kg[1])
    assert few.kg[0] < few.kg[1] < few.kg[2]
    clean = estimate("aws", "eu-north-1", "a100-40gb-sxm", 10.0)
    assert clean.kwh == few.kwh and clean.kg and clean.kg[1] < few.kg[1]
    # 400 W at the draw of matrix work, with host and data centre: 0.6 to 0.8 kW
    assert 0.5 < few.kwh[1] / 10.0 < 0.9


def test_what_is_unknown_stays_unknown() -> None:
    assert estimate("aws", "us-east-1", "", 10.0).kwh is None
    assert estimate("aws", "us-east-1", "trn1-32gb", 10.0).kwh is None
    no_grid = estimate("oci", "eu-jovanovac-1", "h100-80gb-sxm", 10.0)  # nobody publishes one that we read
    assert no_grid.kwh is not None and no_grid.kg is None
    nowhere = estimate("aws", "ap-southeast-6", "a100-40gb-sxm", 10.0)
    assert nowhere.kwh is not None and nowhere.kg is None
    # a chip without its form: the highest power of its forms
    chip, form = (estimate("aws", "us-east-1", name, 1.0) for name in ("h100", "h100-80gb-sxm"))
    assert chip.kwh == form.kwh


def test_use_in_regions_of_oracle_cloud_has_emissions(tmp_path: Path) -> None:
    """Mapped to the grid of the same city: Ashburn is Google's Northern Virginia, with a wider interval."""
    rows = each_day(
        OCTOBER,
        LAST,
        96,
        PricingQuantity=24,
        SkuPriceDetails='{"GpuCount":8,"InstanceType":"BM.GPU.H100.8"}',
        RegionId="us-ashburn-1",
        ServiceProviderName="Oracle",
    )
    found = figures(review_of(write_bill(tmp_path / "bill.csv", rows), only=("carbon",)))
    there, published = (
        estimate(provider, region, "h100-80gb-sxm", 31 * 24 * 8)
        for provider, region in (("oci", "us-ashburn-1"), ("gcp", "us-east4"))
    )
    assert there.kg and published.kg and there.basis == "same_grid, 2024"
    assert there.kg[2] / there.kg[1] > published.kg[2] / published.kg[1]
    assert found["carbon_kgco2e"].value == pytest.approx(there.kg[1])
    assert found["carbon_mapped_ratio"].value == 1


def test_a_bill_states_the_estimate_and_what_is_left_out(tmp_path: Path) -> None:
    rows = each_day(
        OCTOBER,
        LAST,
        96,
        PricingQuantity=24,
        SkuPriceDetails=KNOWN,
        RegionId="us-east-1",
        ServiceProviderName="AWS",
    )
    rows += each_day(
        OCTOBER,
        LAST,
        96,
        PricingQuantity=8,
        SkuPriceDetails=OTHER,
        RegionId="us-east-1",
        ServiceProviderName="AWS",
    )
    review = review_of(write_bill(tmp_path / "bill.csv", rows), only=("carbon",))
    found, said = figures(review), section(review, "carbon").sentences
    whole = estimate("aws", "us-east-1", "a100-40gb-sxm", 31 * 24 * 8)
    assert whole.kg is not None
    assert found["carbon_kgco2e"].value == pytest.approx(whole.kg[1])
    assert found["carbon_kgco2e"].status == "flagged" and "estimated" in found["carbon_kgco2e"].reason
    assert found["carbon_mapped_ratio"].value == pytest.approx(0.75)
    assert said[0].startswith("Estimated") and "25.0 % of the GPU-hours name no accelerator" in said[1]
