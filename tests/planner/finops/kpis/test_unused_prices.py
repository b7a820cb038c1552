"""Unused commitments weigh on the savings rates, also where the export gives them no price."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import each_day, review_of, section, write_bill

FIRST, LAST = date(2026, 10, 1), date(2026, 10, 31)
COMMITTED = {"CommitmentDiscountId": "ri-1", "PricingCategory": "Committed", "BilledCost": "0"}


@pytest.mark.parametrize("price", ["0", ""], ids=["AWS and Microsoft write 0", "FOCUS allows none"])
def test_unused_commitments_are_no_savings(price: str, tmp_path: Path) -> None:
    """100 a day of use for 70, and 60 unused: the review said 30.0 % below contracted prices, and 930 saved."""
    used = each_day(FIRST, LAST, 100, EffectiveCost=70, CommitmentDiscountStatus="Used", **COMMITTED)
    unused = each_day(FIRST, LAST, 0, EffectiveCost=60, ListCost=price, ContractedCost=price,
                      CommitmentDiscountStatus="Unused", PricingQuantity="", SkuId="", **COMMITTED)  # fmt: skip
    review = review_of(write_bill(tmp_path / "bill.csv", [*used, *unused]))
    found = figures(review)
    for key in ("esr_list_ratio", "esr_contract_ratio"):
        assert found[key].value == pytest.approx(1 - 130 / 100)
    for key in ("list_known_ratio", "quantity_priced_ratio", "quantity_known_ratio"):
        assert found[key].value == 1.0  # FOCUS lets all of them be empty there
    said = "What was used cost 30.0 % more than at list prices and 30.0 % above contracted prices."
    assert said in section(review, "commitments").sentences[0]


@pytest.mark.parametrize(
    ("listed", "contracted", "said"),
    [
        (100, 100, "as much as at list and contracted prices."),
        (125, 100, "20.0 % less than at list prices and as much as at contracted prices."),
        (100, 80, "as much as at list prices and 25.0 % above contracted prices."),
    ],
)
def test_no_saving_is_said_in_words(listed: int, contracted: int, said: str, tmp_path: Path) -> None:
    """It said 0.0 % less than at list prices and 0.0 % below contracted prices, above an empty table of commitments."""
    rows = each_day(FIRST, LAST, 100, ListCost=listed, ContractedCost=contracted)
    made = section(review_of(write_bill(tmp_path / "bill.csv", rows), only=("commitments",)), "commitments")
    assert made.sentences == (f"What was used cost {said}", "No charge of the month is under a commitment.")
    assert [table.key for table in made.tables] == ["savings"]
