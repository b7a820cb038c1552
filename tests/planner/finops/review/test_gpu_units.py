"""GPU-hours in any unit of time; a unit that is not known is reported and never dropped."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from planner.finops.read import open_bill
from planner.finops.review.answer import review_bill
from planner.finops.review.model import Figure, Review
from planner.finops.review.parts import product_name
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import (
    charge,
    each_day,
    review_of,
    rows_of,
    section,
    sections_only,
    write_bill,
)

OCTOBER, LAST = date(2026, 10, 1), date(2026, 10, 31)
EIGHT = '{"GpuCount":8,"CoreCount":96}'


def made(tmp_path: Path, unit: str, quantity: float, details: str = EIGHT) -> Review:
    """31 days of one machine of eight GPUs in `Hours`, and of one in another unit."""
    rows = each_day(OCTOBER, LAST, 96, PricingQuantity=24, SkuPriceDetails=EIGHT)
    rows += each_day(OCTOBER, LAST, 96, PricingQuantity=quantity, PricingUnit=unit, SkuPriceDetails=details)
    return review_of(write_bill(tmp_path / "bill.csv", rows), only=("gpu",))


def gpu(review: Review) -> dict[str, Figure]:
    return {key: one for key, one in figures(review).items() if key.startswith("gpu_")}


@pytest.mark.parametrize(
    ("unit", "quantity", "details"),
    [("GPU-Hours", 192, EIGHT), ("GPU-h", 192, ""), ("GPU-Hours", 192, ""), ("GPU Per Hour", 192, ""),
     ("accelerator-hours", 192, EIGHT), ("Hrs", 24, EIGHT),
     ("vCPU-hours", 96 * 24, EIGHT), ("100 Hours", 0.24, EIGHT), ("Seconds", 86400, EIGHT), ("Days", 1, EIGHT)],
)  # fmt: skip
def test_units_of_time_are_recognised(unit: str, quantity: float, details: str, tmp_path: Path) -> None:
    """`GPU-Hours` and the like were left out: half of the cost and of the hours, status ok."""
    found = gpu(made(tmp_path, unit, quantity, details))
    assert found["gpu_hours"].value == pytest.approx(2 * 31 * 192) and found["gpu_hours"].status == "ok"
    assert found["gpu_hour_money"].value == pytest.approx(0.5)
    assert found["gpu_cost_money"].value == pytest.approx(2 * 31 * 96)


@pytest.mark.parametrize(
    ("unit", "details"), [("Leases", EIGHT), ("vCPU-hours", '{"GpuCount":8}')], ids=["unit", "cores"]
)
def test_unknown_units_are_reported(unit: str, details: str, tmp_path: Path) -> None:
    review = made(tmp_path, unit, 1, details)
    found = gpu(review)
    assert found["gpu_hours"].value == pytest.approx(31 * 192)
    assert (found["gpu_hours"].status, found["gpu_hour_money"].status) == ("flagged", "flagged")
    assert "units of 50.0 % of the cost of GPU SKUs" in found["gpu_hours"].reason
    assert (found["gpu_cost_money"].value, found["gpu_cost_money"].status) == (
        pytest.approx(2 * 31 * 96),
        "ok",
    )
    assert (
        "GPU machines for 2,976 USD are priced in units without known hours"
        in section(review, "gpu").sentences[-1]
    )


def test_a_place_is_one_row_whatever_its_services(tmp_path: Path) -> None:
    """Of 40 services a region had 40 rows that looked alike, and the dearest places were not shown."""
    rows = [
        row
        for service in ("EC2", "SageMaker", "EKS")
        for row in each_day(
            OCTOBER, LAST, 96, PricingQuantity=24, SkuPriceDetails=EIGHT, ServiceName=service, SkuId=service
        )
    ]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("gpu",))
    (place,) = rows_of(made, "gpu", "gpu_places")
    assert (place["region"], place["cost"]) == ("east", pytest.approx(3 * 31 * 96))
    assert place["hours"] == pytest.approx(3 * 31 * 24 * 8)


def test_cost_without_a_quantity_is_said_not_to_be_in_the_price_of_an_hour(tmp_path: Path) -> None:
    """Hours times price were 10 a day less than the cost above them."""
    rows = each_day(OCTOBER, LAST, 96, PricingQuantity=24, SkuPriceDetails=EIGHT)
    plan = {
        "CommitmentDiscountId": "c1",
        "CommitmentDiscountStatus": "Unused",
        "PricingCategory": "Committed",
    }
    rows += each_day(OCTOBER, LAST, 10, PricingQuantity="", SkuPriceDetails=EIGHT, **plan)
    review = review_of(write_bill(tmp_path / "bill.csv", rows), only=("gpu",))
    found = gpu(review)
    assert found["gpu_hour_money"].value == pytest.approx(0.5)
    assert found["gpu_cost_money"].value == pytest.approx(31 * 106)
    assert section(review, "gpu").sentences[-1] == (
        "310 USD of the cost of GPU machines is of charges that state no hours of the month: it is not in the price of "
        "an hour."
    )


def test_a_meter_that_names_the_machine_is_all_of_the_name(tmp_path: Path) -> None:
    rows = each_day(OCTOBER, LAST, 96, PricingQuantity=24, SkuMeter="ND96isrH100v5", ProviderName="Microsoft")
    review = review_of(write_bill(tmp_path / "bill.csv", rows), only=("gpu", "units", "movers"))
    assert gpu(review)["gpu_hours"].value == pytest.approx(31 * 192)
    (row,) = rows_of(review, "units", "units_gpus")
    assert row["machine"] == "standard_nd96isr_h100_v5"
    assert product_name("ND96isrH100v5", row["machine"], "") == "ND96isrH100v5"
    assert product_name("GPU", row["machine"], "") == "GPU, standard_nd96isr_h100_v5"
    assert product_name("8x NVIDIA H100 SXM", "8x H100", "") == "8x NVIDIA H100 SXM"


def test_a_run_names_all_ways_in_which_it_was_bought(tmp_path: Path) -> None:
    """A run on spot with its last hours on demand was said to be `Standard`."""
    tags = '{"run_id":"r1"}'
    rows = each_day(
        OCTOBER, date(2026, 10, 9), 96, PricingCategory="Dynamic", Tags=tags, SkuPriceDetails=EIGHT
    )
    rows += each_day(date(2026, 10, 10), date(2026, 10, 10), 200, Tags=tags, SkuPriceDetails=EIGHT)
    rows += each_day(OCTOBER, LAST, 5, Tags='{"run_id":"r2"}', PricingUnit="GB", PricingCategory="Other")
    disk = each_day(OCTOBER, LAST, 900, Tags=tags, ServiceCategory="Storage", PricingCategory="Committed")
    found = rows_of(
        review_of(write_bill(tmp_path / "bill.csv", [*rows, *disk]), only=("gpu",)), "gpu", "gpu_runs"
    )
    assert {row["run_id"]: row["option"] for row in found} == {"r1": "Dynamic, Standard", "r2": "Other"}


def test_every_unit_without_hours_is_named(tmp_path: Path) -> None:
    """Of two units of one place the last in the alphabet was named alone, and the units' SKUs cost 0 in a table."""
    rows = each_day(OCTOBER, LAST, 96, PricingQuantity=24, SkuPriceDetails=EIGHT, SkuMeter="H100 by the hour")
    for unit in ("Leases", "Slots"):
        own = {"PricingUnit": unit, "PricingQuantity": 1, "SkuMeter": f"H100 {unit}", "SkuId": unit}
        rows += each_day(OCTOBER, LAST, 10, SkuPriceDetails=EIGHT, **own)
    review = review_of(write_bill(tmp_path / "bill.csv", rows), only=("gpu", "units"))
    assert (
        "for 620 USD are priced in units without known hours (Leases, Slots)"
        in section(review, "gpu").sentences[-1]
    )
    assert [row["cost"] for row in rows_of(review, "units", "units_gpus")] == [31 * 96]


def test_units_that_name_gpus_are_named_without_a_number_of_them(tmp_path: Path) -> None:
    """`8xH100 Hours` without a GpuCount was in no GPU figure, without a word."""
    rows = each_day(OCTOBER, LAST, 96, PricingQuantity=24, SkuPriceDetails=EIGHT)
    rows += each_day(OCTOBER, LAST, 10, PricingUnit="8xH100 Hours", SkuId="x8")
    rows += each_day(OCTOBER, LAST, 5, PricingUnit="GB", SkuId="disk")
    review = review_of(write_bill(tmp_path / "bill.csv", rows), only=("gpu",))
    said = section(review, "gpu").sentences[-1]
    assert "for 310 USD are priced in units without known hours (8xH100 Hours)" in said


def test_tables_of_what_counts_twice_are_not_shown(tmp_path: Path) -> None:
    """Figures were withheld, and tables and emissions below them had the doubled hours and cost."""
    own = {"SkuPriceDetails": '{"GpuCount":8,"InstanceType":"p5.48xlarge"}', "RegionId": "us-east-1"}
    rows = each_day(OCTOBER, LAST, 96, PricingQuantity=24, Tags='{"run_id":"r"}', **own)
    paths = [write_bill(tmp_path / name, rows) for name in ("a.csv", "b.csv")]
    paths[1].write_text(f"{paths[1].read_text()}\n")  # not the same bytes
    with sections_only("gpu", "carbon"), open_bill(paths) as bill:
        review = review_bill(bill, forecast=False)
    assert section(review, "gpu").tables == ()
    carbon = section(review, "carbon")
    assert (carbon.status, carbon.sentences, carbon.tables) == ("withheld", (), ())


def test_credits_do_not_make_spot_more_than_all_compute(tmp_path: Path) -> None:
    """A credit of more than half of compute made the spot share 141 %."""
    rows = each_day(OCTOBER, LAST, 100) + each_day(
        OCTOBER, LAST, 100, PricingCategory="Dynamic", SkuId="spot"
    )
    empty = dict.fromkeys(("PricingCategory", "PricingQuantity", "SkuId"), "")
    rows.append(charge(LAST, -4000, ChargeCategory="Credit", **empty))
    found = figures(review_of(write_bill(tmp_path / "bill.csv", rows), only=("gpu",)))
    assert found["spot_share_ratio"].value == pytest.approx(0.5)


def test_hours_without_a_cost_make_no_hour_cheaper(tmp_path: Path) -> None:
    """One row of 2,400 hours without a cost among 310: 0.38 a GPU-hour, and "more volume, lower price (-24 %)"."""
    rows = [row for month in (9, 10) for day in range(1, 31) for row in 5 * [
        charge(date(2026, month, day), 96, PricingQuantity=24, SkuPriceDetails=EIGHT)]]  # fmt: skip
    rows.append(charge(OCTOBER, "", PricingQuantity=2400, SkuPriceDetails=EIGHT, ChargeDescription="odd"))
    review = review_of(write_bill(tmp_path / "bill.csv", rows), only=("bridge", "movers", "gpu"))
    found = figures(review)
    assert found["gpu_hour_money"].value == pytest.approx(0.5)
    assert found["bridge_volume_money"].value == found["bridge_price_money"].value == pytest.approx(0)
    assert (
        "Quantities without a cost are in no price and no volume (October 2026: 0.7 % of rows have no readable cost: "
        "1 row of AWS)."
    ) in section(review, "bridge").sentences[0]


@pytest.mark.parametrize("quantity", ["", 0])
def test_corrections_and_refunds_make_no_hour_cheaper(quantity: object, tmp_path: Path) -> None:
    """A correction of September dated 9 October took 40 hours and 500 USD from October's: less than 0.5 a GPU-hour."""
    rows = each_day(OCTOBER, LAST, 96, PricingQuantity=24, SkuPriceDetails=EIGHT)
    rows.append(charge(date(2026, 10, 9), -500, PricingQuantity=-5, SkuPriceDetails=EIGHT, ChargeClass="Correction",
                       BillingPeriodStart="2026-10-01T00:00:00Z"))  # fmt: skip
    rows.append(charge(date(2026, 10, 9), -300, PricingQuantity=quantity, SkuPriceDetails=EIGHT))
    review = review_of(write_bill(tmp_path / "bill.csv", rows), only=("gpu", "units"))
    found = gpu(review)
    assert found["gpu_hours"].value == pytest.approx(31 * 192)
    assert found["gpu_hour_money"].value == pytest.approx(0.5)
    assert found["gpu_cost_money"].value == pytest.approx(31 * 96 - 800)
    assert (
        "-800 USD of the cost of GPU machines is of charges that state no hours of the month: "
        "it is not in the price of an hour."
    ) in section(review, "gpu").sentences
