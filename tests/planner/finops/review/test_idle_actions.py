"""What is idle belongs to the team of the largest part; an action is one thing, by the same id in every month."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from planner.finops.ledger import open_book
from planner.finops.review.inputs import Beside
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, write_bill

SEPTEMBER, OCTOBER, LAST = date(2026, 9, 1), date(2026, 10, 1), date(2026, 10, 31)
DISK: dict[str, Any] = {
    "ServiceName": "EBS",
    "ServiceCategory": "Storage",
    "SkuId": "disk",
    "ConsumedQuantity": "0",
}


def actions(path: Path, month: date = OCTOBER) -> list[dict[str, Any]]:
    return rows_of(review_of(path, only=("actions",), month=month), "actions", "actions")


@pytest.mark.parametrize(("first", "second"), [("data", "web"), ("web", "data")])
def test_the_team_of_the_largest_part_owns_what_is_idle(first: str, second: str, tmp_path: Path) -> None:
    """It was the last team in the alphabet."""
    rows = each_day(OCTOBER, date(2026, 10, 24), 60, ResourceId="vol", Tags=f'{{"team":"{first}"}}', **DISK)
    rows += each_day(date(2026, 10, 25), LAST, 60, ResourceId="vol", Tags=f'{{"team":"{second}"}}', **DISK)
    (row,) = (one for one in actions(write_bill(tmp_path / "bill.csv", rows)) if one["what"] == "Delete vol")
    assert (row["owner"], row["saves"]) == (first, pytest.approx(31 * 60))


def test_a_reservation_in_two_regions_is_one_action(tmp_path: Path) -> None:
    """Two lines had one id, which a ledger accepted once and measured by both."""
    unused = {"CapacityReservationId": "cr-1", "CapacityReservationStatus": "Unused", "SkuId": "g6"}
    rows = each_day(SEPTEMBER, date(2026, 9, 30), 60, RegionId="us-east-1", **unused)
    rows += each_day(SEPTEMBER, date(2026, 9, 30), 35, RegionId="us-west-2", **unused)
    rows += each_day(OCTOBER, LAST, 35, RegionId="us-west-2", **unused)
    path = write_bill(tmp_path / "bill.csv", rows)
    (row,) = (one for one in actions(path, SEPTEMBER) if one["what"].startswith("Shrink"))
    assert row["saves"] == pytest.approx(30 * 95)
    assert row["why"] == "EC2 in us-east-1 and us-west-2 was paid for and not used"
    book = open_book(tmp_path / "ledger.json", [row["id"]])
    review_of(path, only=("ledger",), month=SEPTEMBER, beside=Beside(ledger=book))
    book.save()
    kept = Beside(ledger=open_book(tmp_path / "ledger.json"))
    found = figures(review_of(path, only=("ledger",), month=OCTOBER, beside=kept))
    assert found["ledger_realised_money"].value == pytest.approx(31 * 60)


def test_smaller_things_have_one_id_in_every_month(tmp_path: Path) -> None:
    """The number of things was part of it, so that it changed by the month."""
    rows = [*each_day(SEPTEMBER, LAST, 1000), *each_day(SEPTEMBER, LAST, 0.4, ResourceId="a", **DISK)]
    rows += each_day(SEPTEMBER, LAST, 0.4, ResourceId="b", **DISK) + each_day(
        OCTOBER, LAST, 0.4, ResourceId="c", **DISK
    )
    path = write_bill(tmp_path / "bill.csv", rows)
    found = [
        {one["what"]: one["id"] for one in actions(path, month) if "smaller idle" in one["what"]}
        for month in (SEPTEMBER, OCTOBER)
    ]
    assert [list(one) for one in found] == [
        ["2 smaller idle things (EBS of AWS)"], ["3 smaller idle things (EBS of AWS)"]
    ]  # fmt: skip
    assert set(found[0].values()) == set(found[1].values())


def test_two_unusual_days_of_one_sku_are_two_actions(tmp_path: Path) -> None:
    rows = each_day(date(2026, 8, 1), LAST, 100)
    rows += [charge(date(2026, 10, day), 3000) for day in (7, 20)]
    listed = [
        one for one in actions(write_bill(tmp_path / "bill.csv", rows)) if one["what"].startswith("Look")
    ]
    assert len(listed) == len({one["id"] for one in listed}) == 2
