"""Billing accounts that lack days, which the provider's other accounts hide."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from planner.finops.account_days import account_gaps
from planner.finops.forecast.source import read_costs
from planner.finops.read import open_bill
from tests.planner.finops.small_bill import charge, each_day, review_of, section, write_bill

SEPTEMBER, OCTOBER, LAST = date(2026, 9, 1), date(2026, 10, 1), date(2026, 10, 31)
GAP = "billing account P2 of AWS has use on 24 of 31 days (none on 25 to 31 October)"


def two_payers(path: Path, last: date = date(2026, 10, 24), cost: float = 300) -> Path:
    """P1 on every day, P2 up to `last`."""
    rows = each_day(SEPTEMBER, LAST, 500, BillingAccountId="P1", SkuId="a")
    return write_bill(path, rows + each_day(SEPTEMBER, last, cost, BillingAccountId="P2", SkuId="b"))


def test_a_payer_whose_file_lacks_days_is_told(tmp_path: Path) -> None:
    """Its last week was missing: "5.4 % less than September 2026", a forecast without it, and all checks passed."""
    path = two_payers(tmp_path / "bill.csv")
    review = review_of(path, only=("overview", "bridge", "quality"))
    assert section(review, "bridge").sentences[0].endswith(f"looks like new, ended or less use: {GAP}.")
    assert f"5.4 % less than September 2026 (with care: {GAP})" in review.verdict
    quality = section(review, "quality")
    assert f"But some of the cost may be missing: {GAP}." in quality.sentences[0]
    assert not quality.detail  # the page does not fold it
    costs = read_costs([str(path)], None, ["total"])
    assert f"warning: {GAP}" in costs.findings


@pytest.mark.parametrize(("last", "cost"), [(LAST, 300), (date(2026, 10, 24), 1)])
def test_a_payer_with_every_day_or_next_to_no_cost_is_not(last: date, cost: float, tmp_path: Path) -> None:
    review = review_of(two_payers(tmp_path / "bill.csv", last, cost), only=("overview", "quality"))
    assert "billing account" not in review.verdict + section(review, "quality").sentences[0]


def test_days_that_no_account_has_are_told_once(tmp_path: Path) -> None:
    """They are the bill's, or the provider's, and other checks tell them."""
    rows = [
        *each_day(SEPTEMBER, date(2026, 10, 24), 500, BillingAccountId="P1"),
        *each_day(SEPTEMBER, date(2026, 10, 24), 300, BillingAccountId="P2"),
    ]
    one = [*each_day(SEPTEMBER, LAST, 500, BillingAccountId="P1"), charge(OCTOBER, 5, BillingAccountId="P1")]
    for name, given in (("both", rows), ("one", one)):
        with open_bill([write_bill(tmp_path / f"{name}.csv", given)]) as bill:
            assert account_gaps(bill, [SEPTEMBER, OCTOBER]) == ""
    with open_bill([two_payers(tmp_path / "two.csv")]) as bill:
        assert account_gaps(bill) == account_gaps(bill, [OCTOBER]) == GAP
        assert account_gaps(bill, [SEPTEMBER]) == ""
