"""Months whose costs cannot be read, or of which refunds leave nothing: no sentence says more than the data."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from tests.planner.finops.small_bill import charge, each_day, review_of, rows_of, section, write_bill

OCTOBER, LAST = date(2026, 10, 1), date(2026, 10, 31)


def test_nothing_is_said_of_unusual_days_or_costs_that_cannot_be_read(tmp_path: Path) -> None:
    """It said "No service cost far more on a day ..." above "Withheld", and a provider's cost where all is unknown."""
    rows = [*each_day(OCTOBER, LAST, 400, EffectiveCost=0), *each_day(OCTOBER, LAST, 50, BilledCost="unread")]
    review = review_of(
        write_bill(tmp_path / "bill.csv", rows), month=OCTOBER, only=("anomalies", "commitments")
    )
    assert section(review, "anomalies").sentences == ("Unusual days are not looked for in such data.",)
    assert [row["cost"] for row in rows_of(review, "commitments", "savings")] == [None]


def test_what_is_refunded_has_no_largest_share(tmp_path: Path) -> None:
    rows = [*each_day(OCTOBER, LAST, 4), charge(OCTOBER, -900, ChargeClass="Correction")]
    review = review_of(write_bill(tmp_path / "bill.csv", rows), month=OCTOBER, only=("allocation",))
    assert section(review, "allocation").charts[0].alt == "More was refunded than charged."


def test_a_bill_that_is_met_to_the_cent_has_no_range_to_miss(tmp_path: Path) -> None:
    """ "Missed the total by 0.0 % in the median; 0 % of the totals lay in its 80 % range": they differed by a cent."""
    rows = [charge(date(2026, 9, 1) + timedelta(n), 1000 if n else 1000.01) for n in range(61)]
    review = review_of(
        write_bill(tmp_path / "bill.csv", rows), month=OCTOBER, only=("forecast",), forecast=True
    )
    said = " ".join(section(review, "forecast").sentences)
    assert "missed the total by 0.0 % in the median." in said
    hit = next(one for one in section(review, "forecast").figures if one.key == "forecast_hit_ratio")
    assert (hit.value, hit.status) == (None, "withheld")
