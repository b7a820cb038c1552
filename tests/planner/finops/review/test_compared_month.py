"""The month compared with must carry the comparison, and a month is complete by its days with use."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from planner.finops.review.brief import brief_sections
from planner.finops.review.model import Review
from planner.finops.review.report import review_answer
from planner.inputs.budget_load import load_budgets
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill

SHOWN = ("overview", "bridge", "movers", "allocation", "quality")
AUGUST, SEPTEMBER, OCTOBER = date(2026, 8, 1), date(2026, 9, 1), date(2026, 10, 1)


def made(tmp_path: Path, september: list[dict[str, str]], cost: float = 110) -> Review:
    rows = [*september, *each_day(OCTOBER, date(2026, 10, 31), cost)]
    return review_of(write_bill(tmp_path / "bill.csv", rows), month=OCTOBER, only=SHOWN)


def test_a_month_without_its_last_20_days_is_compared_per_day(tmp_path: Path) -> None:
    """It said 241 % more than September, nothing flagged, and a bridge of volume."""
    august = each_day(AUGUST, date(2026, 8, 31))
    review = made(tmp_path, august + each_day(SEPTEMBER, date(2026, 9, 10)))
    assert "10.0 % more per day than September 2026 (10 of 30 days of September have use)" in review.verdict
    bridge = section(review, "bridge")
    assert bridge.status == "withheld" and bridge.reason.startswith(
        "September 2026: 10 of 30 days of the month have use"
    )
    assert section(review, "movers").status == "withheld"
    assert figures(review)["before_complete_ratio"].value == pytest.approx(1 / 3)
    assert (
        "In September 2026, the month compared with: 10 of 30 days" in section(review, "quality").sentences[0]
    )
    assert not section(review, "quality").detail  # what fails is not folded, and stands below the verdict
    assert "10 of 30 days" in review_answer(review).summary[-1]


def test_a_first_export_that_starts_mid_month_says_so(tmp_path: Path) -> None:
    review = made(tmp_path, each_day(date(2026, 9, 14), date(2026, 9, 30)))
    assert "10.0 % more per day than September 2026 (the bill begins on 14 September)" in review.verdict
    first = review_of(tmp_path / "bill.csv", month=SEPTEMBER, only=SHOWN)
    assert "September 2026 cost 1,700 USD from 14 September, where the bill begins," in first.verdict


def test_a_fee_of_the_month_counts_by_its_own_days(tmp_path: Path) -> None:
    """Divided by the 10 days with use it made September dearer: 25.0 % less per day."""
    fees = [
        charge(SEPTEMBER, 600, days=30, ServiceName="Support"),
        charge(OCTOBER, 620, days=31, ServiceName="Support"),
    ]
    review = made(
        tmp_path, [*each_day(AUGUST, date(2026, 8, 31)), *each_day(SEPTEMBER, date(2026, 9, 10)), *fees], 100
    )
    assert "0.0 % more per day than September 2026 (10 of 30 days of September have use)" in review.verdict


def test_unreadable_costs_of_the_month_before_withhold_the_comparison(tmp_path: Path) -> None:
    """20 of its 30 costs were unreadable and it said 241 % more."""
    rows = each_day(SEPTEMBER, date(2026, 9, 10))
    rows += [charge(date(2026, 9, day), "much") for day in range(11, 31)]
    review = made(tmp_path, rows)
    assert (
        "not comparable with September 2026" in review.verdict
        and "66.7 % of rows have no readable" in review.verdict
    )
    assert section(review, "bridge").status == "withheld"
    assert {row["before"] for row in rows_of(review, "allocation", "allocation")} == {None}


def test_ten_times_and_more_are_no_percentage(tmp_path: Path) -> None:
    """A credit that leaves 100 of September's 3,000: it said 34,000.0 % more."""
    credit = charge(
        date(2026, 9, 20), -2900, ChargeCategory="Credit", PricingQuantity="", PricingUnit="", SkuId=""
    )
    review = made(tmp_path, [*each_day(SEPTEMBER, date(2026, 9, 30)), credit])
    assert (
        "October 2026 cost 3,410 USD without tax, 34 times the 100 USD of September 2026." in review.verdict
    )


def test_whole_months_are_compared_as_before(tmp_path: Path) -> None:
    review = made(tmp_path, each_day(SEPTEMBER, date(2026, 9, 30)))
    assert "13.7 % more than September 2026" in review.verdict
    assert section(review, "bridge").status == "ok"


@pytest.mark.parametrize(("last", "share"), [(10, 10 / 31), (28, 28 / 31), (31, 1.0)])
def test_one_monthly_fee_makes_no_month_complete(last: int, share: float, tmp_path: Path) -> None:
    """10 of 31 days passed as 100.0 %."""
    rows = each_day(OCTOBER, date(2026, 10, last))
    fee = charge(OCTOBER, 500, days=31, ServiceName="Support")
    review = review_of(write_bill(tmp_path / "bill.csv", [*rows, fee]), only=SHOWN)
    assert figures(review)["complete_ratio"].value == pytest.approx(share)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_monthly_fee_for_use_makes_no_month_of_its_first_day(rows: int, tmp_path: Path) -> None:
    """With `--month` a bill of 1 October and a fee of the month counted as complete."""
    use = [charge(OCTOBER, ResourceId=f"i-{n}") for n in range(rows + 1)]
    fees = [charge(OCTOBER, 500, days=31, ServiceName=f"Support {n}") for n in range(rows)]
    path = write_bill(tmp_path / "bill.csv", [*each_day(SEPTEMBER, date(2026, 9, 30)), *use, *fees])
    review = review_of(path, month=OCTOBER, only=("overview", "quality"))
    assert "USD up to 1 October without tax." in review.verdict
    assert figures(review)["complete_ratio"].value == pytest.approx(1 / 31)


def on_weekdays(first: date, last: date, *, without: tuple[int, ...] = (5, 6)) -> list[dict[str, str]]:
    days = (date.fromordinal(n) for n in range(first.toordinal(), last.toordinal() + 1))
    return [charge(day) for day in days if day.weekday() not in without]


def test_use_on_weekdays_only_lacks_no_weekend(tmp_path: Path) -> None:
    """The 31st is a Saturday: October cost 2,200 USD "up to 30 October", and was compared with nothing."""
    review = review_of(
        write_bill(tmp_path / "bill.csv", on_weekdays(AUGUST, date(2026, 10, 31))),
        only=("overview", "bridge", "quality"),
    )
    assert review.verdict == "October 2026 cost 2,200 USD without tax, 0.0 % more than September 2026."
    assert figures(review)["complete_ratio"].value == 1
    assert figures(review)["complete_through"].value == "2026-10-31"
    assert section(review, "bridge").status == "ok"


@pytest.mark.parametrize(
    ("rows", "until", "share"),
    [
        # Friday is no weekend
        (on_weekdays(AUGUST, date(2026, 10, 29)), " up to 29 October", 29 / 31),
        # weekends that are over
        (on_weekdays(AUGUST, date(2026, 10, 16)), " up to 16 October", 16 / 31),
        # three weekends show no pattern
        (on_weekdays(date(2026, 10, 5), date(2026, 10, 30)), " up to 30 October", 20 / 31),
        # Saturdays alone: Sunday 25 October was missing, and the 31st is one of them
        (
            [
                *on_weekdays(AUGUST, date(2026, 10, 24), without=(5,)),
                *on_weekdays(date(2026, 10, 26), date(2026, 10, 31), without=(5,)),
            ],
            "",
            30 / 31,
        ),
    ],
)
def test_days_that_lack_use_are_missing_all_the_same(
    rows: list[dict[str, str]], until: str, share: float, tmp_path: Path
) -> None:
    review = review_of(write_bill(tmp_path / "bill.csv", rows), only=("overview", "quality"))
    assert f"USD{until} without tax" in review.verdict or f"begins,{until} without tax" in review.verdict
    assert figures(review)["complete_ratio"].value == pytest.approx(share)


def test_a_bill_by_the_month_is_complete(tmp_path: Path) -> None:
    review = review_of(write_bill(tmp_path / "bill.csv", [charge(OCTOBER, 500, days=31)]), only=SHOWN)
    assert figures(review)["complete_ratio"].value == 1.0


@pytest.mark.parametrize("kind", ["Usage", "Purchase"])
def test_a_bill_by_the_month_is_not_of_its_first_day(tmp_path: Path, kind: str) -> None:
    """It "cost 3,300 USD up to 1 October", was compared with nothing, and October was forecast."""
    rows = [
        charge(date(2026, month, 1), 3000 * (1.1 if month == 10 else 1), days=days, ChargeCategory=kind)
        for month, days in ((7, 31), (8, 31), (9, 30), (10, 31))
    ]
    rows.append(charge(date(2026, 10, 31), 50, ChargeCategory="Tax"))
    path = tmp_path / "budgets.yaml"
    path.write_text("version: 1\nkind: budget\nname: b\nbudgets:\n  - {name: all, amount: 3000}\n")
    review = review_of(
        write_bill(tmp_path / "bill.csv", rows), forecast=True, budgets=load_budgets(path),
        only=("overview", "bridge", "forecast", "quality"),
    )  # fmt: skip
    assert review.verdict.startswith(
        "October 2026 cost 3,300 USD without tax, 10.0 % more than September 2026 and 10.0 % over its budget"
    )
    assert "November 2026 is expected at" in review.verdict and section(review, "bridge").status == "ok"
    assert figures(review)["budget_p_over_ratio"].value == 1
    assert figures(review)["complete_through"].value == "2026-10-31"


def test_a_month_that_runs_is_compared_with_none_and_its_actions_are_of_a_month(tmp_path: Path) -> None:
    """After 20 days it "fell by 1,530 USD: less use", and a disk of 3 a day saved 60 "per month"."""
    idle = {"ServiceName": "EBS", "SkuId": "disk", "ResourceId": "vol-1", "ConsumedQuantity": "0"}
    first, last = SEPTEMBER, date(2026, 10, 20)
    rows = [*each_day(first, last), *each_day(first, last, 3, **idle)]
    rows += each_day(first, last, 50, SkuId="spot", PricingQuantity=1)
    review = review_of(write_bill(tmp_path / "bill.csv", rows))
    for part in ("bridge", "movers"):
        made = section(review, part)
        assert made.status == "withheld" and made.reason == "20 of 31 days of the month have use"
    assert {row["before"] for row in rows_of(review, "allocation", "allocation")} == {None}
    found = {row["what"]: row for row in rows_of(review, "actions", "actions")}
    assert found["Delete vol-1"]["saves"] == pytest.approx(3 * 31)
    assert found["Commit more: EC2 of AWS"]["why"].startswith("4,650 USD a month of it runs nine days of ten")
    (made,) = section(review, "actions").tables
    assert str(made.note).startswith("Amounts are those of a month at the pace of its 20 days so far.")


def test_a_month_without_use_is_none_of_two_days(tmp_path: Path) -> None:
    """Of credits and a tax on two days it "cost -2,000 USD up to 2 September", and was to land at 9,000."""
    august = each_day(date(2026, 8, 1), date(2026, 8, 31), 300)
    rest = [
        charge(date(2026, 9, 5), -2000, ChargeCategory="Credit", SkuId="credit", Tags=""),
        charge(date(2026, 9, 30), 90, ChargeCategory="Tax", SkuId="tax", Tags=""),
    ]
    made = review_of(
        write_bill(tmp_path / "bill.csv", [*august, *rest]), month=date(2026, 9, 1), forecast=True
    )
    assert made.verdict.startswith(
        "September 2026 cost -2,000 USD without tax, after 2,000 USD of credits, against 9,300 USD in August 2026. "
        "October 2026 is expected at 0 USD"
    )
    assert "0 of 30 days of the month have use" in section(made, "quality").sentences[0]
    taxed = review_of(write_bill(tmp_path / "taxed.csv", [*august, rest[1]]), month=date(2026, 9, 1))
    assert taxed.verdict == "September 2026 cost 0 USD without tax, against 9,300 USD in August 2026."


def test_one_fault_of_both_months_is_said_once(tmp_path: Path) -> None:
    """A bill without EffectiveCost: the verdict gave the same reason twice, and a chat cut the forecast off."""
    rows = [
        *each_day(date(2026, 9, 1), date(2026, 9, 30)),
        *each_day(date(2026, 10, 1), date(2026, 10, 31), 110),
    ]
    verdict = review_of(write_bill(tmp_path / "bill.csv", rows, leave=("EffectiveCost",))).verdict
    reason = "the bill has no EffectiveCost, BilledCost is used instead"
    assert f"than September 2026 (with care: {reason} (in September 2026 too))." in verdict
    assert verdict.count(reason) == 1


def test_a_brief_says_what_its_comparison_lacks(tmp_path: Path) -> None:
    """29 days of October beside a whole September: the chat said that cost fell, and not that days are missing."""
    rows = [*each_day(date(2026, 9, 1), date(2026, 9, 30)), *each_day(date(2026, 10, 1), date(2026, 10, 29))]
    against = next(
        one
        for one in brief_sections(review_of(write_bill(tmp_path / "bill.csv", rows)))
        if one.key == "spend"
    )
    assert against.sentences[0].endswith(" With care: 29 of 31 days of the month have use.")
