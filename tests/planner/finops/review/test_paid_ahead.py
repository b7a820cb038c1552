"""Capacity blocks: a purchase bears the cost, the use of the machines costs nothing, and both are GPU work."""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path

import pytest

from planner.finops.review.inputs import Beside
from planner.finops.review.model import Review
from planner.finops.usage import load_usage
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill
from tests.planner.finops.usage.test_read import SACCT, write

OCTOBER, LAST = date(2026, 10, 1), date(2026, 10, 31)
EIGHT = '{"GpuCount":8,"CoreCount":96,"InstanceType":"p5.48xlarge"}'


def block(unit: str, quantity: float | str, used: float) -> list[dict[str, str]]:
    """Paid by the hour for 31 days, and 3 days of a block for 1,440 of which `used` hours a day are use."""
    gpus = {"SkuPriceDetails": EIGHT}
    own = {**gpus, "CapacityReservationId": "cr-1"}
    rows = each_day(OCTOBER, LAST, 96, PricingQuantity=24, **gpus)
    rows.append(
        charge(OCTOBER, 1440, days=3, ChargeCategory="Purchase", SkuId="block", ResourceId="cr-1",
               PricingUnit=unit, PricingQuantity=quantity, **own)
    )  # fmt: skip
    if used:
        rows += each_day(
            OCTOBER,
            date(2026, 10, 3),
            0,
            PricingQuantity=used,
            ResourceId="gpu01",
            PricingCategory="Other",
            CapacityReservationStatus="Used",
            **own,
        )
    return rows


def made(
    folder: Path, *bought: float | str, unit: str = "Hours", sections: tuple[str, ...] = ("gpu", "units")
) -> Review:
    quantity, used = bought
    beside = Beside(usage=load_usage([write(folder, "jobs", SACCT)])) if "usage" in sections else Beside()
    bill = write_bill(folder / "bill.csv", block(unit, quantity, float(used)))
    return review_of(bill, only=sections, beside=beside)


@pytest.mark.parametrize(
    ("unit", "quantity", "used", "hours"),
    [("Hours", 144, 0, 144), ("Hours", 144, 40, 144), ("Hours", 144, 60, 180), ("Units", 1, 40, 120)],
    ids=["bought", "partly used", "more used", "fee"],
)  # fmt: skip
def test_a_block_is_gpu_cost(unit: str, quantity: float, used: float, hours: float, tmp_path: Path) -> None:
    """Its 1,440 USD were in no GPU figure, and its hours were free ones: a GPU-hour cost less than any of them."""
    review = made(tmp_path, quantity, used, unit=unit)
    found, cost, paid = figures(review), 31 * 96 + 1440, 8 * (31 * 24 + hours)
    assert found["gpu_cost_money"].value == pytest.approx(cost)
    assert found["gpu_hours"].value == pytest.approx(paid) and found["gpu_hours"].status == "ok"
    assert found["gpu_hour_money"].value == pytest.approx(cost / paid)
    kinds = rows_of(review, "units", "units_gpus")
    assert sum(row["cost"] for row in kinds) == pytest.approx(cost)
    assert sum(row["hours"] for row in kinds) == pytest.approx(paid)
    assert len(section(review, "gpu").sentences) == 2  # nothing is left out


def test_blocks_of_two_types_are_counted_apart(tmp_path: Path) -> None:
    """One stood unused and one ran longer than was bought: hours of the one paid for hours of the other."""
    rows = block("Hours", 144, 0)
    other = {"SkuPriceDetails": EIGHT.replace("p5.", "p4d."), "CapacityReservationId": "cr-2"}
    rows.append(charge(OCTOBER, 300, ChargeCategory="Purchase", SkuId="other", PricingQuantity=24, **other))
    rows += each_day(OCTOBER, date(2026, 10, 3), 0, PricingQuantity=24, **other)
    review = review_of(write_bill(tmp_path / "bill.csv", rows), only=("gpu", "units"))
    paid = 8 * (31 * 24 + 144 + 72)
    assert figures(review)["gpu_hours"].value == pytest.approx(paid)
    assert sum(row["hours"] for row in rows_of(review, "units", "units_gpus")) == pytest.approx(paid)


def test_a_fee_without_hours_is_named(tmp_path: Path) -> None:
    review = made(tmp_path, 1, 0, unit="Units")
    assert figures(review)["gpu_hour_money"].value == pytest.approx(0.5)
    assert "1,440 USD are priced in units without known hours (Units)" in section(review, "gpu").sentences[-1]


@pytest.mark.parametrize(
    "changed", [{"CommitmentDiscountId": "ri-1"}, {"EffectiveCost": "0"}], ids=["discount", "accrued"]
)
def test_what_its_use_bears_counts_once(changed: dict[str, str], tmp_path: Path) -> None:
    """Reservations, and blocks whose use bears their cost: the purchase adds neither cost nor hours."""
    rows = block("Hours", 144, 0)
    rows[-1] |= changed
    found = figures(review_of(write_bill(tmp_path / "bill.csv", rows), only=("gpu",)))
    assert (found["gpu_cost_money"].value, found["gpu_hours"].value) == (31 * 96, 8 * 31 * 24)


def test_idle_machines_of_a_block_cost_what_was_paid(tmp_path: Path) -> None:
    """gpu01 stood free for nothing: of its 72 hours at 10 USD a job had 96 GPU-hours, which are 12."""
    review = made(tmp_path, 144, 24, sections=("usage",))
    found = figures(review)
    assert found["usage_free_money"].value == pytest.approx((72 - 12) * 10)
    assert found["usage_matched_ratio"].value == pytest.approx(720 / (31 * 96 + 1440))


@pytest.mark.parametrize(("unit", "quantity", "share"), [("Hours", 144, 0.5), ("Units", 1, None)])
def test_the_use_of_a_block(unit: str, quantity: float, share: float | None, tmp_path: Path) -> None:
    """72 of 144 hours: it stood with 0 used and 0 unused beside the reservations."""
    review = made(tmp_path, quantity, 24, unit=unit, sections=("contracts",))
    (row,) = rows_of(review, "contracts", "reservations")
    assert row["use"] == share
    if share:
        assert (row["used"], row["unused"]) == (pytest.approx(720), pytest.approx(720))
        assert "used to 50.0 %; 720 USD" in section(review, "contracts").sentences[-1]


def test_fees_of_blocks_in_the_cost_and_usage_report(tmp_path: Path) -> None:
    """The usage type names the machine, as in bills that show a CapacityBlockFee; product columns may be empty."""
    row = {
        "bill_payer_account_id": "1", "bill_billing_period_start_date": "2026-10-01T00:00:00Z",
        "bill_billing_period_end_date": "2026-11-01T00:00:00Z", "line_item_line_item_type": "Fee",
        "line_item_usage_start_date": "2026-10-05T00:00:00Z", "line_item_usage_end_date": "2026-10-06T00:00:00Z",
        "line_item_usage_type": "USE2-CapacityBlockFee:p5.48xlarge", "line_item_product_code": "AmazonEC2",
        "line_item_usage_amount": "1", "line_item_unblended_cost": "996.67", "line_item_currency_code": "USD",
        "product_region_code": "us-east-2", "pricing_unit": "Quantity",
    }  # fmt: skip
    path = tmp_path / "cur.csv"
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(row))
        out.writeheader()
        out.writerow(row)
    found = figures(review_of(path, only=("gpu",), month=OCTOBER))
    assert found["gpu_cost_money"].value == pytest.approx(996.67)
