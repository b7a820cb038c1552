"""The month after a commitment ended: what it covered is neither more use nor of unknown saving."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill

AUGUST, SEPTEMBER, OCTOBER = date(2026, 8, 1), date(2026, 9, 1), date(2026, 10, 1)
ENDS = {AUGUST: date(2026, 8, 31), SEPTEMBER: date(2026, 9, 30), OCTOBER: date(2026, 10, 31)}


def month_of(first: date, *, covered: bool, plan: str = "sp-1") -> list[dict[str, str]]:
    """100 a day at contracted prices; 60 under a plan, which pays for them once more in BilledCost."""
    if not covered:
        return each_day(first, ENDS[first])
    used = {
        "CommitmentDiscountId": f"arn:{plan}", "CommitmentDiscountName": plan, "CommitmentDiscountType": "Savings Plan",
        "CommitmentDiscountStatus": "Used", "PricingCategory": "Committed",
    }  # fmt: skip
    return [
        row | {"BilledCost": "0", "EffectiveCost": "60"} for row in each_day(first, ENDS[first], 100, **used)
    ]


def until_the_14th(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    return [row for row in rows if row["ChargePeriodStart"] < "2026-10-15"]


def bought_until_the_14th() -> dict[str, str]:
    return charge(
        date(2025, 10, 15), 21900, days=365, ChargeCategory="Purchase", ChargeFrequency="One-Time", EffectiveCost="0",
        CommitmentDiscountId="arn:sp-1", CommitmentDiscountName="sp-1", CommitmentDiscountType="Savings Plan",
        PricingCategory="Committed",
    )  # fmt: skip


def test_a_plan_that_ended_is_named_and_its_discount_is_known(tmp_path: Path) -> None:
    """ "more use (+3,100), things that ended (-1,800)" without a word of it; "the bill does not say what it saves"."""
    rows = [*month_of(SEPTEMBER, covered=True), *month_of(OCTOBER, covered=False)]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("bridge", "actions"))
    assert (
        "Of commitments, sp-1 of AWS (1,800 USD in September 2026) ended by October 2026: use that only one of "
        "the months covers has another price in it, which counts as mix or, where the SKU is another, as things that "
        "ended and new things."
    ) in section(made, "bridge").sentences[0]
    found = figures(made)  # 10 hours more at the mean of 6 and 10, the others from 6 to 10
    assert found["bridge_volume_money"].value == pytest.approx(80)
    assert found["bridge_mix_money"].value == pytest.approx(1220)
    assert found["bridge_new_money"].value == found["bridge_retired_money"].value == 0
    (action,) = rows_of(made, "actions", "actions")
    assert action["saves"] == pytest.approx(0.4 * 3100)
    assert "your AWS commitments saved 40 % in September 2026" in action["why"]


def test_a_plan_that_began_is_named(tmp_path: Path) -> None:
    rows = [*month_of(SEPTEMBER, covered=False), *month_of(OCTOBER, covered=True)]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("bridge",))
    said = section(made, "bridge").sentences[0]
    assert (
        "sp-1 of AWS (1,860 USD in October 2026) began after September 2026" in said
        and "ended by" not in said
    )


def test_of_a_plan_that_was_renewed_nothing_is_said_to_have_ended(tmp_path: Path) -> None:
    """Its use is covered in both months, and the bridge has no thing that ended or is new."""
    rows = [*month_of(SEPTEMBER, covered=True), *month_of(OCTOBER, covered=True, plan="sp-2")]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("bridge",))
    found = figures(made)
    assert found["bridge_new_money"].value == found["bridge_retired_money"].value == 0
    assert (
        "sp-1 of AWS (1,800 USD in September 2026) ended by October 2026 and sp-2 of AWS (1,860 USD in October 2026) "
        "began after September 2026: use that only one of the months covers has another price in it"
    ) in section(made, "bridge").sentences[0]


SMALL = charge(
    SEPTEMBER, 0.1, CommitmentDiscountId="small", CommitmentDiscountStatus="Used", PricingCategory="Committed"
)


@pytest.mark.parametrize("more", [[], [SMALL]], ids=["goes on", "small"])
def test_what_goes_on_or_is_small_is_not_spoken_of(more: list[dict[str, str]], tmp_path: Path) -> None:
    rows = [*month_of(SEPTEMBER, covered=True), *month_of(OCTOBER, covered=True), *more]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("bridge",))
    assert "Of commitments" not in section(made, "bridge").sentences[0]


@pytest.mark.parametrize("known", [True, False], ids=["paid at once", "by its charges"])
def test_a_plan_that_ends_within_the_month_is_named_in_it(known: bool, tmp_path: Path) -> None:
    """October's review had no word of a plan that ended on the 14th; November's was the first."""
    covered = until_the_14th(month_of(OCTOBER, covered=True))
    later = [row for row in month_of(OCTOBER, covered=False) if row["ChargePeriodStart"] >= "2026-10-15"]
    rows = [*month_of(SEPTEMBER, covered=True), *covered, *later]
    if known:
        rows.append(bought_until_the_14th())
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("commitments", "actions"))
    said = section(made, "commitments").sentences[-1]
    how = "ended on 14 October" if known else "has no charge after 14 October"
    assert (
        said == f"sp-1 of AWS {how}: what goes on of its use costs the price without a commitment since then."
    )
    assert figures(made)["commitments_ending_count"].value == 0
    idle = charge(OCTOBER, 30, CommitmentDiscountId="arn:sp-1", CommitmentDiscountStatus="Unused")
    made = review_of(write_bill(tmp_path / "idle.csv", [*rows, idle]), only=("actions",))
    decided = [row for row in rows_of(made, "actions", "actions") if "sp-1" in row["what"]]
    # and nothing of it is to be filled
    assert [row["what"] for row in decided] == [f"Decide on sp-1 (arn:sp-1), which {how}"]


def test_of_a_plan_whose_last_days_may_come_late_nothing_is_said(tmp_path: Path) -> None:
    rows = [row for row in month_of(OCTOBER, covered=True) if row["ChargePeriodStart"] < "2026-10-29"]
    rows += [*month_of(SEPTEMBER, covered=True), *each_day(OCTOBER, ENDS[OCTOBER])]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("commitments",))
    assert "no charge after" not in " ".join(section(made, "commitments").sentences)


def test_of_a_plan_whose_place_another_took_within_the_month_no_discount_is_said_to_be_lost(
    tmp_path: Path,
) -> None:
    """ "What it covered costs its price without a commitment since then", with sp-2 from the next day on."""
    first = until_the_14th(month_of(OCTOBER, covered=True))
    second = month_of(OCTOBER, covered=True, plan="sp-2")[len(first) :]
    rows = [*month_of(SEPTEMBER, covered=True), *first, *second]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("commitments", "actions"))
    assert section(made, "commitments").sentences[-1] == (
        "sp-1 of AWS has no charge after 14 October: what goes on of its use costs the price without a commitment "
        "since then, where sp-2 of AWS (1,020 USD in October 2026) does not cover it."
    )
    assert not [row for row in rows_of(made, "actions", "actions") if "Decide" in row["what"]]


def test_a_plan_that_is_charged_after_its_term_did_not_end(tmp_path: Path) -> None:
    rows = [*month_of(SEPTEMBER, covered=True), *month_of(OCTOBER, covered=True), bought_until_the_14th()]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("commitments", "actions"))
    assert "14 October" not in " ".join(section(made, "commitments").sentences)
    assert not [row for row in rows_of(made, "actions", "actions") if "Decide" in row["what"]]


def test_a_plan_that_ends_after_the_last_day_of_a_month_under_way_ends_soon(tmp_path: Path) -> None:
    """On the 10th: neither ended nor among those that end soon."""
    rows = [row for row in month_of(OCTOBER, covered=True) if row["ChargePeriodStart"] < "2026-10-11"]
    rows += [*month_of(SEPTEMBER, covered=True), bought_until_the_14th()]
    made = review_of(write_bill(tmp_path / "bill.csv", rows), only=("commitments",), month=OCTOBER)
    assert figures(made)["commitments_ending_count"].value == 1
