"""Corrections of a time before the bill begins are no month of it, and no history."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill

SEPTEMBER, OCTOBER, END = date(2026, 9, 1), date(2026, 10, 1), date(2026, 10, 31)


def corrections(*days: date) -> list[dict[str, str]]:
    return [charge(day, -5, ChargeClass="Correction", PricingQuantity="-1") for day in days]


@pytest.mark.parametrize("days", [(4, 12, 21), (28, 29, 30)], ids=["scattered", "just before"])
def test_corrections_are_no_month_to_compare_with(tmp_path: Path, days: tuple[int, ...]) -> None:
    """The first export of a bill: October, with corrections of September. It said "against -15 USD in September"."""
    rows = corrections(*(date(2026, 9, day) for day in days)) + each_day(OCTOBER, END)
    made = review_of(write_bill(tmp_path / "bill.csv", rows), forecast=True)
    assert made.verdict.startswith(
        "October 2026 cost 3,100 USD without tax. November 2026 is expected at 3,000"
    )
    assert "The bill has no month before October 2026" in section(made, "bridge").sentences[0]
    said = " ".join(section(made, "overview").sentences)
    assert (
        "The bill begins on 1 October 2026." in said and "3 days before that" in said and "-15.00 USD" in said
    )
    asked = review_of(tmp_path / "bill.csv", compare_month=SEPTEMBER, only=("bridge",))
    assert section(asked, "bridge").status == "withheld"  # who asks for it is told why not


def test_a_correction_of_long_before_changes_no_forecast(tmp_path: Path) -> None:
    """Four months of nothing were history: the range became too wide, the median error 100 %."""
    rows = each_day(date(2026, 7, 1), END)
    plain = review_of(write_bill(tmp_path / "plain.csv", rows), forecast=True, only=("forecast", "overview"))
    early = corrections(date(2026, 3, 10))
    made = review_of(
        write_bill(tmp_path / "bill.csv", early + rows), forecast=True, only=("forecast", "overview")
    )
    assert made.verdict == plain.verdict
    assert {k: f.value for k, f in figures(made).items()} == {k: f.value for k, f in figures(plain).items()}
    assert section(made, "overview").sentences == section(plain, "overview").sentences


def test_a_bill_that_begins_mid_month_says_so_beside_corrections(tmp_path: Path) -> None:
    rows = corrections(date(2026, 6, 3)) + each_day(date(2026, 9, 14), END)
    made = review_of(write_bill(tmp_path / "bill.csv", rows))
    assert "per day than September 2026 (the bill begins on 14 September)" in made.verdict


def test_a_month_of_which_only_the_first_day_has_use_is_not_the_newest(tmp_path: Path) -> None:
    """Google's invoices end at midnight in California: their last hours are of the next month in UTC."""
    path = write_bill(tmp_path / "bill.csv", [*each_day(SEPTEMBER, END), charge(date(2026, 11, 1), 30)])
    made = review_of(path, only=("overview",))
    assert made.month == "2026-10" and "October 2026 cost 3,100 USD without tax, 3.3 % more" in made.verdict
    monthly = [charge(date(2026, month, 1), 3000, days=30) for month in (9, 10, 11)]
    assert review_of(write_bill(tmp_path / "monthly.csv", monthly), only=("overview",)).month == "2026-11"


def test_corrections_of_closed_months_are_named(tmp_path: Path) -> None:
    """September was reviewed at 3,000 USD; October's invoice takes 240 back, and nothing said so."""
    billed = {"BillingPeriodStart": "2026-10-01T00:00:00Z", "BillingPeriodEnd": "2026-11-01T00:00:00Z"}
    rows = each_day(date(2026, 8, 1), END)
    for day, cost in ((date(2026, 9, 15), -240), (date(2026, 8, 3), -10), (date(2026, 10, 2), -7)):
        rows.append(charge(day, cost, ChargeClass="Correction", PricingQuantity="-2", **billed))
    rows.append(charge(SEPTEMBER, -90, ChargeClass="Correction", ChargeCategory="Tax", **billed))
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("overview",))
    said = section(made, "overview").sentences
    assert (
        "Corrections billed in October 2026 change earlier months, where they count: September 2026 by -240 USD and "
        "August 2026 by -10.00 USD."
    ) in said


@pytest.mark.parametrize("billed", [SEPTEMBER, OCTOBER])
def test_a_correction_dated_after_what_it_corrects_neither_names_nor_reprices_use(
    billed: date, tmp_path: Path
) -> None:
    """All of a service was "Correction of September and others, 3,000 to 2,600: lower price (-9.7 %)"."""
    use = each_day(SEPTEMBER, END, ChargeDescription="H100 machine")
    back = charge(
        date(2026, 10, 9), -500, ChargeClass="Correction", PricingQuantity="-25", ChargeDescription="Correction",
        BillingPeriodStart=f"{billed}T00:00:00Z",
    )  # fmt: skip
    made = review_of(write_bill(tmp_path / "bill.csv", [*use, back]), only=("overview", "bridge", "movers"))
    moved = {row["product"]: row for row in rows_of(made, "movers", "movers")}
    assert {name: row["reason"] for name, row in moved.items()} == {
        "H100 machine": "more volume (+3.3 %)", "Correction": "corrections of closed months",
    }  # fmt: skip
    found = figures(made)
    assert found["bridge_price_money"].value == pytest.approx(0)
    assert found["bridge_volume_money"].value == pytest.approx(100)
    assert found["bridge_other_money"].value == pytest.approx(-500)
    assert "credits, refunds, fees and corrections (-500)" in section(made, "bridge").sentences[0]
    assert (
        "October 2026 bears -500 USD of corrections of closed months, which are dated in it."
        in section(made, "overview").sentences
    )


@pytest.mark.parametrize(
    "taken_back", [{}, {"ChargeClass": "Correction", "BillingPeriodStart": "2026-11-01T00:00:00Z"}]
)
def test_what_is_taken_back_where_it_was_charged_is_no_use(
    taken_back: dict[str, str], tmp_path: Path
) -> None:
    """Within the billing period (no class, says FOCUS), or by the next invoice with the date of the charge."""
    rows = each_day(SEPTEMBER, END)
    day = date(2026, 10, 9)
    rows += [charge(day, 500, PricingQuantity="50"), charge(day, -500, PricingQuantity="-50", **taken_back)]
    found = figures(review_of(write_bill(tmp_path / "bill.csv", rows), only=("bridge",)))
    assert found["bridge_volume_money"].value == pytest.approx(100)
    assert found["bridge_other_money"].value == found["bridge_price_money"].value == pytest.approx(0)


def test_corrections_that_name_no_billing_period_are_named(tmp_path: Path) -> None:
    """A bill without BillingPeriodStart: -500 of a closed month counted as October's use without a word."""
    rows = each_day(date(2026, 9, 1), date(2026, 10, 31))
    rows.append(charge(date(2026, 10, 9), -500, PricingQuantity=-5, ChargeClass="Correction"))
    path = write_bill(tmp_path / "bill.csv", rows, leave=("BillingPeriodStart", "BillingPeriodEnd"))
    said = " ".join(section(review_of(path, only=("quality",)), "quality").sentences)
    assert "-500 USD of corrections name no billing period (BillingPeriodStart) and count as use" in said
    cent = [*rows[:-1], rows[-1] | {"EffectiveCost": -0.01}]
    path = write_bill(tmp_path / "bill.csv", cent, leave=("BillingPeriodStart", "BillingPeriodEnd"))
    assert "billing period" not in " ".join(section(review_of(path, only=("quality",)), "quality").sentences)
    with_period = [row | {"BillingPeriodStart": "2026-10-01T00:00:00Z"} for row in rows]
    path = write_bill(tmp_path / "bill.csv", with_period)
    said = " ".join(section(review_of(path, only=("quality",)), "quality").sentences)
    assert "billing period" not in said


def test_a_refund_without_a_quantity_is_no_lower_price(tmp_path: Path) -> None:
    """What an outage gave back made the machines' price 10 % lower."""
    rows = each_day(date(2026, 9, 1), date(2026, 10, 31))
    rows.append(charge(date(2026, 10, 9), -310, PricingQuantity=0))
    review = review_of(write_bill(tmp_path / "bill.csv", rows), only=("bridge", "movers"))
    found = {one.key: one.value for one in section(review, "bridge").figures}
    assert found["bridge_price_money"] == pytest.approx(0)
    assert found["bridge_volume_money"] == pytest.approx(100)
    assert found["bridge_other_money"] == pytest.approx(-310)
    reasons = {row["reason"]: row["change"] for row in rows_of(review, "movers", "movers")}
    assert reasons["refunds"] == pytest.approx(-310)
