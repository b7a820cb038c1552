"""Reading says what it does with doubled files, missing columns, impossible prices and bills that it does not know."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.finops.forecast.daily import load_vintages
from planner.finops.read import open_bill
from planner.finops.review.answer import review_bill
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill

OCTOBER, LAST = date(2026, 10, 1), date(2026, 10, 31)
AMOUNTS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost", "PricingQuantity")


def many(resource: bool = True) -> list[dict[str, str]]:
    """Twelve machines a day, with or without their ids."""
    return [
        charge(OCTOBER + timedelta(day), 10 + n, ResourceId=f"i-{n}" if resource else "")
        for day in range(31)
        for n in range(12)
    ]


@pytest.mark.parametrize("resource", [True, False])
def test_a_doubled_file_fails_counted_twice(resource: bool, tmp_path: Path) -> None:
    """It passed with 0.0 %: all 13 checks."""
    once = review_of(write_bill(tmp_path / "once.csv", many(resource)), only=("quality",))
    assert figures(once)["repeated_ratio"].value == 0
    twice = review_of(write_bill(tmp_path / "twice.csv", many(resource) + many(resource)), only=("quality",))
    assert figures(twice)["repeated_ratio"].value == pytest.approx(0.5)
    assert "is unknown: 50.0 % of billed cost is counted twice" in twice.verdict


def test_a_part_appended_again_counts_for_its_month_only(tmp_path: Path) -> None:
    september = each_day(date(2026, 9, 1), date(2026, 9, 30))
    rows = [row for row in many() if int(row["ResourceId"][2:]) < 6]
    review = review_of(write_bill(tmp_path / "bill.csv", [*september, *many(), *rows]), only=("quality",))
    share = sum(range(10, 16)) / (sum(range(10, 22)) + sum(range(10, 16)))
    assert figures(review)["repeated_ratio"].value == pytest.approx(share)
    assert (
        figures(review_of(tmp_path / "bill.csv", month=date(2026, 9, 1), only=("quality",)))[
            "repeated_ratio"
        ].value
        == 0
    )


def test_machines_alike_without_ids_are_no_doubled_file(tmp_path: Path) -> None:
    rows = [row for row in many(resource=False) for _ in range(2 + int(float(row["BilledCost"])) % 2)]
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as bill:
        assert {one.severity for one in bill.findings} == {"warning"}


def test_a_copy_that_a_correction_takes_back_is_counted_once(tmp_path: Path) -> None:
    """The provider billed six machines twice and reversed it in the same file: a third was "counted twice"."""
    again = [row for row in many() if int(row["ResourceId"][2:]) < 6]
    back = [row | {"ChargeClass": "Correction"} | {c: f"-{row[c]}" for c in AMOUNTS} for row in again]
    review = review_of(write_bill(tmp_path / "bill.csv", [*many(), *again, *back]), only=("quality",))
    assert figures(review)["repeated_ratio"].value == 0
    doubled = review_of(write_bill(tmp_path / "twice.csv", 2 * [*many(), *again, *back]), only=("quality",))
    assert figures(doubled)["repeated_ratio"].value == pytest.approx(0.5)


def test_contracted_above_list_is_gated(tmp_path: Path) -> None:
    """Such prices gave a savings rate above the truth, status ok."""
    rows = each_day(OCTOBER, LAST, 100, ListCost=120, ContractedCost=110)
    rows += each_day(OCTOBER, LAST, 100, ListCost=90, ContractedCost=110, ResourceId="i-2")
    found = figures(review_of(write_bill(tmp_path / "bill.csv", rows)))
    assert found["contracted_above_list_ratio"].value == pytest.approx(0.5)
    rate = found["esr_list_ratio"]
    assert (
        rate.status == "withheld"
        and "50.0 % of use cost has a contracted price above its list" in rate.reason
    )


def test_without_effective_cost_billed_cost_stands_in(tmp_path: Path) -> None:
    """The month cost nothing that could be told."""
    path = write_bill(tmp_path / "bill.csv", each_day(OCTOBER, LAST), leave=("EffectiveCost",))
    review = review_of(path)
    assert review.verdict.startswith("October 2026 cost 3,100 USD without tax")
    assert figures(review)["effective_stated_ratio"].value == 0
    said = [row["message"] for row in rows_of(review, "quality", "findings")]
    assert any("has no EffectiveCost, so BilledCost is used instead" in text for text in said)
    assert "BilledCost is used" in section(review, "quality").sentences[0]


@pytest.mark.parametrize(("cost", "words"), [(3.0, "3.0 %"), (0.01, "less than 0.1 %")])
def test_a_file_without_effective_cost_is_no_whole_bill(tmp_path: Path, cost: float, words: str) -> None:
    """One file of 3 % of the month, and every figure said that the bill has no EffectiveCost."""
    bill = tmp_path / "bill"
    bill.mkdir()
    write_bill(bill / "a.csv", each_day(OCTOBER, LAST, 100 - cost))
    write_bill(bill / "b.csv", each_day(OCTOBER, LAST, cost, ProviderName="Nebius"), leave=("EffectiveCost",))
    with open_bill([bill]) as opened:
        review = review_bill(opened, forecast=False)
    found = figures(review)
    assert found["effective_stated_ratio"].value == pytest.approx(1 - cost / 100)
    assert (
        found["anomalies_count"].reason
        == f"{words} of billed cost has no EffectiveCost, BilledCost is used instead"
    )


def test_the_missing_column_is_named(tmp_path: Path) -> None:
    """The error listed three columns, two of them there."""
    rows = each_day(OCTOBER, LAST)
    path = write_bill(tmp_path / "a.csv", rows, leave=("ChargePeriodStart", "ChargePeriodEnd"))
    with pytest.raises(InputError, match="as FOCUS it lacks ChargePeriodStart; it has BilledCost"):
        open_bill([path])


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (
            "lineItem/intervalUsageStart,usage/billedQuantity",
            "an OCI usage report.*export cost reports or FOCUS",
        ),
        (
            "record_id,sku_name,usage_start_time,usage_quantity",
            "Databricks system.billing.usage.*list_prices",
        ),
        ("ChargePeriodStart,ServiceName,PricingQuantity,PricingUnit", "CoreWeave.*add BilledCost"),
    ],
)
def test_unknown_bills_name_the_likely_product(header: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text(f"{header}\n{','.join('1' for _ in header.split(','))}\n")
    with pytest.raises(InputError, match=said):
        open_bill([path])


def test_the_latest_report_of_a_day_counts(tmp_path: Path) -> None:
    """Two reports of one day were added up: 30 instead of 20."""
    path = tmp_path / "v.csv"
    path.write_text(
        "reported,date,scope,cost\n2026-10-02T12:00Z,2026-10-01,a,15\n2026-10-02T12:00Z,2026-10-01,a,5\n"
        "2026-10-02T06:00Z,2026-10-01,a,10\n2026-10-02T06:00Z,2026-10-01,b,1\n2026-10-03,2026-10-01,a,21\n"
    )
    found = [(str(made), float(cost[0])) for made, _, cost in load_vintages(path)]
    assert found == [("2026-10-02", 21.0), ("2026-10-03", 21.0)]


def test_tag_keys_differ_in_case_only(tmp_path: Path) -> None:
    """`--tags team` on a bill tagged `Team` was 0 % allocated."""
    rows = each_day(OCTOBER, LAST, Tags='{"Team":"ml","ENV":"prod"}')
    found = figures(review_of(write_bill(tmp_path / "bill.csv", rows)))
    assert (
        found["allocation_ratio"].value == 1.0 and found["allocation_ratio"].label == "Cost with Team and ENV"
    )
    review = review_of(tmp_path / "bill.csv", tags=("owner",))
    said = " ".join(section(review, "allocation").sentences)
    assert "No charge carries the tag owner; the keys present are ENV, Team." in said
