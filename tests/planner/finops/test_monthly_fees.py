"""Monthly fees that a running month does not have yet, and that no forecast can see in its days."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from planner.finops.forecast.source import read_costs
from tests.planner.finops.small_bill import charge, each_day, review_of, section, write_bill

AUGUST, SEPTEMBER, OCTOBER = date(2026, 8, 1), date(2026, 9, 1), date(2026, 10, 1)
FEE = "Support of AWS (200 USD in September)"
LATE = f"{FEE} is charged by the month and not in October 2026 yet: forecasts leave it out"


def bill(path: Path, last: date, fees: tuple[tuple[date, int], ...]) -> Path:
    """Use of 100 a day, and fees of 200 for whole months."""
    rows = each_day(AUGUST, last)
    rows += [charge(month, 200, days=days, ServiceName="Support", SkuId="support") for month, days in fees]
    return write_bill(path / "bill.csv", rows)


@pytest.mark.parametrize(
    ("last", "fees", "said"),
    [
        (date(2026, 10, 20), ((AUGUST, 31), (SEPTEMBER, 30)), True),
        (date(2026, 10, 31), ((AUGUST, 31), (SEPTEMBER, 30)), False),  # the month is over
        (date(2026, 10, 20), ((AUGUST, 31), (SEPTEMBER, 30), (OCTOBER, 31)), False),  # it is there
        (date(2026, 10, 20), ((SEPTEMBER, 30),), False),  # once is no habit
    ],
)
def test_a_fee_that_is_not_there_yet_is_said(
    last: date, fees: tuple[tuple[date, int], ...], said: bool, tmp_path: Path
) -> None:
    """The month was to land at its use alone: "passed" for a budget that the fee then exceeded."""
    path = bill(tmp_path, last, fees)
    assert (f"warning: {LATE}" in read_costs([str(path)], None, ["total"]).findings) == said
    made = review_of(path, month=OCTOBER, only=("forecast",), forecast=True)
    assert (f"{LATE}." in section(made, "forecast").sentences) == said
