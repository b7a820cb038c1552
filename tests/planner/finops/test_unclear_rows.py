"""Rows without a cost or a kind: named with their provider, and alike in review, forecast and budget."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from planner.finops.forecast.source import read_costs
from planner.finops.quality import assess_quality
from planner.finops.read import open_bill
from planner.finops.review.model import Review
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill

SEPTEMBER, OCTOBER = date(2026, 9, 1), date(2026, 10, 1)
FIVE = [charge(date(2026, 10, day), 200, SkuId="b", Tags='{"team":"web"}') for day in range(1, 6)]


def bill(path: Path, five: list[dict[str, str]]) -> Path:
    """100 a day in two months, and five rows of October."""
    rows = [*each_day(SEPTEMBER, date(2026, 10, 31)), *five]
    return write_bill(path / "bill.csv", rows)


@pytest.fixture
def kindless(tmp_path: Path) -> Path:
    return bill(
        tmp_path, [charge(date(2026, 10, 3), 150, ChargeCategory="", SkuId="b", Tags='{"team":"web"}')]
    )


def test_all_figures_count_a_charge_that_does_not_say_its_kind(kindless: Path) -> None:
    """3,250 at a glance; 3,100 in the reasons for the change, in the budget and in the forecast."""
    review: Review = review_of(kindless, month=OCTOBER, only=("overview", "bridge", "movers", "allocation"))
    found = figures(review)
    assert found["overview_spend_money"].value == pytest.approx(3250)
    assert found["bridge_after_money"].value == pytest.approx(3250)
    assert sum(row["cost"] for row in rows_of(review, "bridge", "bridge_services")) == pytest.approx(3250)
    assert ("web", 150) in {
        (row["owner"], row["cost"]) for row in rows_of(review, "allocation", "allocation")
    }
    reasons = {row["reason"] for row in rows_of(review, "movers", "movers")}
    assert "charges without a category" in reasons
    costs = read_costs([str(kindless)], None, ["total"])
    assert costs.scopes["total"]["total"].cost.sum() == pytest.approx(3000 + 3250)
    (said,) = costs.findings
    assert said == (
        "warning: 1 row of AWS (October 2026) without a known ChargeCategory: what they cost (150 USD) is counted, "
        "though it may be tax"
    )


def test_what_charges_without_a_kind_cost_is_of_the_cost_that_is_counted(tmp_path: Path) -> None:
    """`--cost billed` counted 150 and said 0."""
    one = charge(date(2026, 10, 3), 150, ChargeCategory="") | {"EffectiveCost": "0"}
    (said,) = read_costs([str(bill(tmp_path, [one]))], None, ["total"], cost="billed").findings
    assert "what they cost (150 USD) is counted" in said


def test_charges_without_a_kind_weigh_by_their_cost(tmp_path: Path) -> None:
    """One row of 62 for a quarter of the month was 1.6 % of rows: flagged, as if it were little."""
    path = bill(tmp_path, [charge(OCTOBER, 1000, ChargeCategory="")])
    with open_bill([path]) as made:
        gate = assess_quality(made, OCTOBER)
    (check,) = (one for one in gate.checks if one.key == "no_category")
    assert check.value == pytest.approx(1000 / 4100) and check.status == "withheld"
    assert check.reason.endswith(": 1 row of AWS")


def test_rows_without_a_cost_are_named_with_their_provider(tmp_path: Path) -> None:
    """`budget` counted them as 0 without a word; the review had a share of rows and no place to look."""
    path = bill(tmp_path, [row | {"BilledCost": "", "EffectiveCost": ""} for row in FIVE])
    for cost, column in (("effective", "EffectiveCost"), ("billed", "BilledCost")):
        (said,) = read_costs([str(path)], None, ["total"], cost=cost).findings
        assert said == (
            f"warning: 5 rows of AWS (October 2026) without {column}: what they cost is not known and not counted"
        )
    review = review_of(path, month=OCTOBER, only=("quality",))
    assert "13.9 % of rows have no readable cost: 5 rows of AWS" in section(review, "quality").sentences[0]


def test_tax_without_a_cost_is_no_part_of_a_forecast(tmp_path: Path) -> None:
    path = bill(tmp_path, [row | {"ChargeCategory": "Tax", "EffectiveCost": ""} for row in FIVE])
    assert read_costs([str(path)], None, ["total"]).findings == ()
