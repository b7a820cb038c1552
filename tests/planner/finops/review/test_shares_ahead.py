"""Runs and months bear their share of what was bought ahead; all figures are worked out by hand beside the bill."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from planner.finops.read import open_bill
from planner.finops.review.answer import review_bill
from planner.finops.review.inputs import Beside
from planner.finops.usage import load_usage
from planner.tracking.bill import read_spent
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.review.test_plan_vs_actual import plan_of
from tests.planner.finops.small_bill import (
    charge,
    each_day,
    review_of,
    rows_of,
    section,
    sections_only,
    write_bill,
)
from tests.planner.finops.usage.test_read import SACCT, write

OCTOBER, NOVEMBER = date(2026, 10, 1), date(2026, 11, 1)
EIGHT = '{"GpuCount":8,"CoreCount":96,"InstanceType":"p5.48xlarge"}'
BLOCK = {"SkuPriceDetails": EIGHT, "CapacityReservationId": "cr-1"}


def tags(run: str) -> str:
    return f'{{"team":"ml","env":"prod","run_id":"{run}"}}'


def over_two_months(**purchase: Any) -> list[dict[str, str]]:
    """A block of 192 hours for 1,920, bought on 30 October: 80 hours of use in October, 60 in November, 52 never.

    Beside it one machine at 48 a day, 2 an hour, in both months.
    """
    rows = each_day(
        OCTOBER, date(2026, 11, 30), 48, PricingQuantity=24, SkuPriceDetails=EIGHT, Tags=tags("other")
    )
    bought = {
        "ChargeCategory": "Purchase",
        "SkuId": "block",
        "ResourceId": "cr-1",
        "PricingQuantity": 192,
        **BLOCK,
    }
    rows.append(charge(date(2026, 10, 30), 1920, days=4, **bought | purchase))
    used = BLOCK | {"PricingCategory": "Other", "CapacityReservationStatus": "Used"}
    for first, last, hours, run in (
        (date(2026, 10, 30), date(2026, 10, 31), 40, "a"),
        (NOVEMBER, date(2026, 11, 2), 20, "a"),
        (NOVEMBER, date(2026, 11, 2), 10, "b"),
    ):
        rows += each_day(first, last, 0, PricingQuantity=hours, ResourceId=f"i-{run}", Tags=tags(run), **used)
    return rows


def runs_of(review: Any) -> dict[str, float]:
    return {row["run_id"]: row["cost"] for row in rows_of(review, "gpu", "gpu_runs")}


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bill(tmp_path_factory.mktemp("ahead") / "bill.csv", over_two_months())


def test_a_run_bears_its_hours_of_a_block(bill: Path) -> None:
    """120 of 192 hours at 10 an hour, and 20; what nobody used is named. Both cost 0."""
    review = review_of(bill, only=("gpu",), month=NOVEMBER)
    assert runs_of(review) == pytest.approx({"a": 1200, "b": 200, "other": 61 * 48})
    (run,) = (row for row in rows_of(review, "gpu", "gpu_runs") if row["run_id"] == "a")
    assert run["per_hour"] == pytest.approx(10 / 8) and run["option"] == "Other"
    october = section(review_of(bill, only=("gpu",), month=OCTOBER), "gpu").sentences
    assert any(
        text
        == "520 USD of capacity blocks of October 2026 was not used by 2026-11-30: no run is charged for it."
        for text in october
    )


def test_a_plan_is_compared_with_its_share_of_a_block(bill: Path) -> None:
    """120 hours planned at 9 and billed at 10: 120 more, all of it price. It was billed for nothing."""
    plan = replace(plan_of(1, 120, 9), run_id="a")
    review = review_of(bill, only=("plan_vs_actual",), month=NOVEMBER, plans=(plan,))
    (row,) = rows_of(review, "plan_vs_actual", "plan_vs_actual")
    assert (row["billed"], row["price"], row["duration"]) == (
        pytest.approx(1200),
        pytest.approx(10),
        pytest.approx(0),
    )
    assert "1,200 USD of what was billed is the runs' share" in " ".join(
        section(review, "plan_vs_actual").sentences
    )


def test_a_run_is_tracked_with_its_share_of_a_block(bill: Path) -> None:
    spent = read_spent([bill], "a")
    assert (spent.usd, spent.node_hours) == (pytest.approx(1200), pytest.approx(120))


def test_months_bear_their_hours_of_a_block(bill: Path) -> None:
    """Both months add up to its price and its hours; November's hours cost nothing, October's all of it."""
    october, november = (
        review_of(bill, only=("gpu", "units", "contracts", "overview"), month=month)
        for month in (OCTOBER, NOVEMBER)
    )
    one, other = figures(october), figures(november)
    assert (one["gpu_cost_money"].value, other["gpu_cost_money"].value) == pytest.approx(
        (31 * 48 + 1320, 30 * 48 + 600)
    )
    assert one["gpu_hours"].value == pytest.approx(8 * (31 * 24 + 80 + 52))
    assert (one["gpu_unused_hours"].value, other["gpu_unused_hours"].value) == (pytest.approx(8 * 52), 0)
    assert other["gpu_hours"].value == pytest.approx(8 * (30 * 24 + 60))
    assert other["gpu_hour_money"].value == pytest.approx((30 * 48 + 600) / (8 * (30 * 24 + 60)))
    for review, cost, hours in (
        (october, 31 * 48 + 1320, 31 * 24 + 132),
        (november, 30 * 48 + 600, 30 * 24 + 60),
    ):
        kinds = rows_of(review, "units", "units_gpus")
        assert sum(row["cost"] for row in kinds) == pytest.approx(cost)
        assert sum(row["hours"] for row in kinds) == pytest.approx(8 * hours)
    blocks = [rows_of(review, "contracts", "reservations")[0] for review in (october, november)]
    assert [(row["used"], row["unused"]) for row in blocks] == [
        pytest.approx((800, 520)),
        pytest.approx((600, 0)),
    ]
    ways = "GPU cost follows the use of capacity blocks; spend, showback and forecasts follow their charges"
    for review, words in (
        (october, "of those charged in the month, 600 USD is for use in other months."),
        (november, "GPU cost has 600 USD of capacity blocks that were charged in other months."),
    ):
        assert f"{ways}: {words}" in section(review, "gpu").sentences


def test_usage_files_see_what_a_month_bears(bill: Path, tmp_path: Path) -> None:
    """Idle GPUs of November cost what October's purchase did."""
    beside = Beside(usage=load_usage([write(tmp_path, "jobs", SACCT)]))
    costs = [
        sum(row["cost"] for row in rows_of(review_of(bill, only=("usage",), month=month, beside=beside), "usage",
                                           "usage_matched"))
        for month in (OCTOBER, NOVEMBER)
    ]  # fmt: skip
    assert costs == pytest.approx([31 * 48 + 1320, 30 * 48 + 600])


@pytest.mark.parametrize(
    ("purchase", "october"),
    [
        ({"CapacityReservationId": ""}, 1320),  # as a fee that does not name the block
        ({"PricingUnit": "Units", "PricingQuantity": 1}, 1920 * 80 / 140),  # its use bears all of it
    ],
    ids=["no id", "fee"],
)
def test_purchases_that_say_less(purchase: dict[str, Any], october: float, tmp_path: Path) -> None:
    path = write_bill(tmp_path / "bill.csv", over_two_months(**purchase))
    costs = [
        figures(review_of(path, only=("gpu",), month=month))["gpu_cost_money"].value
        for month in (OCTOBER, NOVEMBER)
    ]
    assert costs == pytest.approx([31 * 48 + october, 30 * 48 + 1920 - october])


def reserved(**purchase: Any) -> list[dict[str, str]]:
    """A reservation of a year for 87,600, used on ten days by a run and on the others by nobody that is known."""
    own = {"CommitmentDiscountId": "ri-1", "CommitmentDiscountType": "Reserved", "SkuPriceDetails": EIGHT}
    bought = {
        "ChargeCategory": "Purchase",
        "ChargeFrequency": "One-Time",
        "PricingUnit": "Units",
        "PricingQuantity": 1,
    }
    use = {"PricingQuantity": 24, "CommitmentDiscountQuantity": 24, "CommitmentDiscountStatus": "Used"}
    use |= {"PricingCategory": "Committed", **own}
    return [
        charge(OCTOBER, 87600, days=365, **bought, **own, **{"CommitmentDiscountQuantity": 8760} | purchase),
        *each_day(OCTOBER, date(2026, 10, 10), 0, Tags=tags("a"), **use),
        *each_day(date(2026, 10, 11), date(2026, 10, 31), 0, **use),
    ]


def test_a_run_bears_its_hours_of_a_reservation_without_effective_cost(tmp_path: Path) -> None:
    """240 of 8,760 hours."""
    path = write_bill(tmp_path / "bill.csv", reserved(), leave=("EffectiveCost",))
    assert runs_of(review_of(path, only=("gpu",))) == pytest.approx({"a": 2400})


def test_a_reservation_of_unknown_size_is_named(tmp_path: Path) -> None:
    path = write_bill(
        tmp_path / "bill.csv", reserved(CommitmentDiscountQuantity=""), leave=("EffectiveCost",)
    )
    review = review_of(path, only=("gpu",))
    assert runs_of(review) == {"a": 0}
    assert "The share of runs in ri-1 is not known" in section(review, "gpu").sentences[-1]


def test_a_purchase_that_names_a_run_is_no_use_by_it(tmp_path: Path) -> None:
    """Two reservations of unknown size, both bought under the run's tag, of which it used one."""
    rows = reserved(CommitmentDiscountQuantity="", Tags=tags("a"))
    rows.append(rows[0] | {"CommitmentDiscountId": "ri-2"})
    path = write_bill(tmp_path / "bill.csv", rows, leave=("EffectiveCost",))
    assert (
        "The share of runs in ri-1 is not known"
        in section(review_of(path, only=("gpu",)), "gpu").sentences[-1]
    )


def test_effective_cost_of_the_use_counts_where_the_bill_has_it(tmp_path: Path) -> None:
    """The purchase has none then, and nothing is added."""
    rows = reserved()
    rows[0]["EffectiveCost"] = "0"
    for row in rows[1:]:
        row["EffectiveCost"] = "200"
    assert runs_of(review_of(write_bill(tmp_path / "bill.csv", rows), only=("gpu",))) == {"a": 2000}


def test_a_block_that_may_still_run_is_not_said_to_have_stood_idle(tmp_path: Path) -> None:
    """A bill that ends within the block: half of it was not used yet, and "stood unused in October"."""
    rows = [row for row in over_two_months() if row["ChargePeriodStart"] < "2026-11"]
    said = section(review_of(write_bill(tmp_path / "bill.csv", rows), only=("gpu",)), "gpu").sentences
    assert (
        "1,120 USD of capacity blocks of October 2026 was not used by 2026-10-31: no run is charged for it."
        in said
    )


def test_a_block_is_no_use_that_ended(bill: Path) -> None:
    """The month after a purchase fell by "things that ended", which was the block alone."""
    (text,) = section(review_of(bill, only=("bridge",), month=NOVEMBER), "bridge").sentences
    assert text.endswith(
        "counts in the month of its charge: 1,920 USD in October 2026, 0 USD in November 2026."
    )


def test_no_sentence_of_what_counts_twice(tmp_path: Path) -> None:
    """Figures and tables were withheld, and 2,800 USD of 1,400 said to be the runs' share."""
    paths = [write_bill(tmp_path / name, over_two_months()) for name in ("a.csv", "b.csv")]
    paths[1].write_text(f"{paths[1].read_text()}\n")  # not the same bytes
    with sections_only("gpu"), open_bill(paths) as opened:
        said = section(review_bill(opened, month=NOVEMBER, forecast=False), "gpu").sentences
    assert not [text for text in said if "capacity blocks" in text]
