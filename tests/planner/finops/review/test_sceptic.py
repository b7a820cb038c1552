"""What a sceptical reader must not be told: figures of costs that nobody can read, ranges without a record."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.errors import InputError
from planner.finops.read import open_bill
from planner.finops.review.answer import review_bill
from planner.finops.review.model import Review, Section
from planner.finops.review.report import render_review
from tests.planner.finops.small_bill import sections_only

_PLAIN = {
    "BilledCost": "2", "EffectiveCost": "2", "ListCost": "4", "ContractedCost": "3", "ChargeCategory": "Usage",
    "BillingCurrency": "USD", "ServiceName": "EC2", "ProviderName": "AWS", "ServiceCategory": "Compute",
    "SkuId": "s", "RegionId": "r", "PricingCategory": "Standard", "PricingQuantity": "1", "PricingUnit": "Hours",
    "Tags": '{"team":"a","env":"b"}', "CommitmentDiscountId": "", "CommitmentDiscountStatus": "",
}  # fmt: skip


@pytest.fixture
def review(tmp_path: Path) -> Callable[..., Review]:
    """A review of a bill of one row a day, some of its columns changed."""

    def made(days: int, leave: tuple[str, ...] = (), only: tuple[str, ...] = (), **changed: Any) -> Review:
        path = tmp_path / "bill.csv"
        start = date(2026, 10, 31) - timedelta(days=days - 1)
        names = [name for name in _PLAIN if name not in leave]
        with path.open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file)
            out.writerow(["ChargePeriodStart", *names])
            for number in range(days):
                row = {n: str(v(number) if callable(v) else v) for n, v in (_PLAIN | changed).items()}
                out.writerow([f"{start + timedelta(days=number)}T00:00:00Z", *(row[n] for n in names)])
        with sections_only(*only), open_bill([path]) as bill:
            return review_bill(bill)

    return made


def section(made: Review, key: str) -> Section:
    return next(one for one in made.sections if one.key == key)


def test_costs_that_nobody_can_read_are_no_nought(review: Callable[..., Review]) -> None:
    made = review(61, BilledCost="NaN", EffectiveCost="NaN")
    assert (
        made.verdict
        == "What October 2026 cost is unknown: 100.0 % of rows have no readable cost: 31 rows of AWS."
    )
    assert "No forecast" in section(made, "forecast").sentences[0]
    assert section(made, "actions").status == "withheld"
    assert "nan USD" not in str(render_review(made, "table"))


def test_a_bill_without_effective_cost_tells_what_was_billed(review: Callable[..., Review]) -> None:
    made = review(61, EffectiveCost="0")
    assert (
        made.verdict == "October 2026 was billed 62.00 USD without tax; its effective cost cannot be trusted."
    )
    shown = {one.key: one for one in section(made, "quality").figures}["effective_zero_ratio"]
    assert (shown.value, shown.status) == (1.0, "flagged")  # the reason for the rest is itself never withheld


def test_a_month_of_history_has_no_range(review: Callable[..., Review]) -> None:
    made = review(31)
    assert made.verdict.endswith("(too little history for a range).")
    shown = {one.key: one for one in section(made, "forecast").figures}
    assert shown["forecast_low_money"].value is shown["forecast_high_money"].value is None
    assert "certainty" not in str(render_review(made, "table"))


def test_overlapping_windows_are_no_proof(review: Callable[..., Review]) -> None:
    short = review(92, only=("forecast",), EffectiveCost=lambda n: 2 + n % 5)
    assert "(roughly " in short.verdict
    assert "count as only 2 independent ones: too few to judge by" in section(short, "forecast").sentences[1]
    long = review(240, only=("forecast",), EffectiveCost=lambda n: 2 + n % 5)
    assert "(80 % likely between " in long.verdict
    assert "overlap" not in section(long, "forecast").sentences[1]


def test_commitments_of_which_no_use_is_told_show_no_figures(review: Callable[..., Review]) -> None:
    made = section(review(31, only=("commitments",), CommitmentDiscountId="sp-1"), "commitments")
    assert made.charts == ()
    assert made.tables[0].rows[0][-4:] == (None,) * 4
    assert "is unknown" in made.sentences[1]
    found = {one.key: one for one in made.figures}
    assert found["commitment_waste_money"].value is None


def test_nothing_is_compared_with_a_month_that_is_not_there(review: Callable[..., Review]) -> None:
    row = section(review(31, only=("allocation",)), "allocation").tables[0].rows[0]
    assert row[2:4] == (None, None)


def test_a_bill_of_few_columns_and_a_charge_of_the_year_9999(
    review: Callable[..., Review], tmp_path: Path
) -> None:
    lean = (
        "SkuId",
        "RegionId",
        "PricingCategory",
        "PricingQuantity",
        "PricingUnit",
        "Tags",
        "ServiceCategory",
    )
    assert review(31, leave=lean).month == "2026-10"
    path = tmp_path / "far.csv"
    path.write_text("ChargePeriodStart,BilledCost,EffectiveCost,ListCost,ContractedCost,ChargeCategory,BillingCurrency\n"
                    "9999-12-31T00:00:00Z,1,1,1,1,Usage,USD\n2026-10-05T00:00:00Z,1,1,1,1,Usage,USD\n")  # fmt: skip
    with open_bill([path]) as bill:
        assert any("1 row (1.00 billed) of 9999-12-31" in one.message for one in bill.findings)
        with pytest.raises(InputError, match="--month 9999-12"):
            review_bill(bill, month=date(9999, 12, 1))
        assert review_bill(bill).month == "2026-10"


@pytest.mark.parametrize(
    ("listed", "contracted", "share"), [("4", "3", 0.5), ("0", "4", 0.5), ("0", "0", None), ("", "", None)]
)
def test_coverage_of_use_without_a_list_price(
    listed: str, contracted: str, share: float | None, review: Callable[..., Review]
) -> None:
    """Microsoft writes 0 as the price of use under reservations: 0 % covered would be fiction."""
    made = review(
        30,
        only=("commitments",),
        CommitmentDiscountId=lambda n: "r" if n % 2 else "",
        CommitmentDiscountStatus=lambda n: "Used" if n % 2 else "",
        ListCost=lambda n: listed if n % 2 else "4",
        ContractedCost=lambda n: contracted if n % 2 else "3",
    )
    shown = {one.key: one for one in section(made, "commitments").figures}["commitment_coverage_ratio"]
    assert shown.value == share
    assert share is not None or "neither a list nor a contracted price" in shown.reason
