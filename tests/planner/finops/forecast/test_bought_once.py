"""What was bought once is in the cost to date and in no forecast; what is bought again is in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from planner.finops.forecast.source import read_costs
from planner.inputs.budget_load import load_budgets
from tests.planner.finops.review.conftest import figures
from tests.planner.finops.small_bill import charge, each_day, review_of, section, write_bill

FIRST, LAST = date(2026, 8, 1), date(2026, 10, 31)
BLOCK = {
    "ChargeFrequency": "One-Time",
    "SkuId": "block",
    "CapacityReservationId": "cr-1",
    "SkuPriceDetails": '{"GpuCount":8,"InstanceType":"p5.48xlarge"}',
}


def bill_of(
    path: Path,
    *bought: date,
    amortised: bool = False,
    beside: Sequence[dict[str, str]] = (),
    sizes: Sequence[str] = (),
) -> Path:
    """About 2,200 a day, and blocks of a week for 33,000, which the purchase bears or their use does."""
    rows = [*each_day(FIRST, LAST, 2200), *beside]
    rows += [
        charge(FIRST + timedelta(n), 50 if n % 3 else -50, SkuId="noise")
        for n in range((LAST - FIRST).days + 1)
    ]
    for day, sku in zip(bought, sizes or [BLOCK["SkuId"]] * len(bought), strict=True):
        block = charge(day, 33000, days=7, ChargeCategory="Purchase", **(BLOCK | {"SkuId": sku}))
        use = {"CapacityReservationId": "cr-1", "CapacityReservationStatus": "Used", "SkuId": "block-use"}
        rows += each_day(day, day + timedelta(6), 33000 / 7 if amortised else 0, BilledCost=0, **use)
        rows.append(block | {"EffectiveCost": "0"} if amortised else block)
    return write_bill(path, rows)


def landing(path: Path, **options: Any) -> tuple[float, float, float]:
    found = figures(review_of(path, only=("forecast",), forecast=True, **options))
    low, middle, high = (found[f"forecast_{name}_money"].value for name in ("low", "landing", "high"))
    assert isinstance(low, float) and isinstance(middle, float) and isinstance(high, float)
    return low, middle, high


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[float, float, float]:
    return landing(bill_of(tmp_path_factory.mktemp("once") / "plain.csv"))


@pytest.mark.parametrize("amortised", [False, True])
def test_a_block_bought_once_leaves_the_forecast_as_it_is(
    plain: tuple[float, float, float], tmp_path: Path, amortised: bool
) -> None:
    """It made a range of 65,000 to 67,000 one of 32,000 to 129,000."""
    path = bill_of(tmp_path / "bill.csv", date(2026, 9, 9), amortised=amortised)
    assert landing(path) == pytest.approx(plain)
    said = section(review_of(path, only=("forecast",), forecast=True), "forecast").sentences
    assert (
        "What was bought once is in the cost to date, and forecasts do not expect it again: EC2 of AWS (33,000 USD in "
        "September 2026)."
    ) in said


@pytest.mark.parametrize("refunded", [{"ChargeClass": "Correction"}, {}])
def test_a_refund_in_a_later_month_is_no_second_purchase(
    plain: tuple[float, float, float], tmp_path: Path, refunded: dict[str, str]
) -> None:
    """A part of the block came back in October: "65,000" was a range of -19,000 to 153,000 again."""
    bought = {"ChargeCategory": "Purchase"} | BLOCK | refunded
    back = charge(date(2026, 10, 5), -1000) | bought
    again = [charge(date(2026, 10, 6), 300) | bought] if refunded else []
    path = bill_of(tmp_path / "bill.csv", date(2026, 9, 9), beside=[back, *again])
    assert landing(path) == pytest.approx(plain)
    costs = read_costs([str(path)], None, ("total",))
    once = costs.scopes["total"]["total"].once
    assert once is not None and once.sum() == pytest.approx(33000 - 1000 + 300 * len(again))


def test_a_running_month_keeps_what_it_bought(plain: tuple[float, float, float], tmp_path: Path) -> None:
    """October with a block bought on its second day costs 33,000 more than without, and November no more."""
    budgets = tmp_path / "budgets.yaml"
    budgets.write_text(
        "version: 1\nkind: budget\nname: all\ncurrency: USD\nbudgets: [{name: all, amount: 80000, period: month}]\n",
        encoding="utf-8",
    )
    path = bill_of(tmp_path / "bill.csv", date(2026, 10, 2))
    made = review_of(path, only=("forecast",), forecast=True, budgets=load_budgets(budgets))
    (table,) = (one for one in section(made, "forecast").tables if one.key == "budgets")
    row = dict(zip((one.key for one in table.columns), table.rows[0], strict=True))
    assert row["actual"] == pytest.approx(31 * 2200 + 33000 + 50 * 11) and row["status"] == "over"
    assert landing(path) == pytest.approx(plain)


@pytest.mark.parametrize(
    "sizes", [("block",) * 3, ("8x p5", "16x p5", "32x p5")], ids=["one size", "another"]
)
def test_what_is_bought_in_several_months_is_no_exception(tmp_path: Path, sizes: tuple[str, ...]) -> None:
    """Blocks of another size each month each counted as bought once, and no forecast had any."""
    days = (date(2026, 8, 20), date(2026, 9, 9), date(2026, 10, 2))
    path = bill_of(tmp_path / "bill.csv", *days, sizes=sizes)
    costs = read_costs([str(path)], None, ("total",))
    assert costs.scopes["total"]["total"].once is None
    assert not any("bought once" in line for line in costs.findings)


def test_commands_say_what_they_leave_out(tmp_path: Path) -> None:
    path = bill_of(tmp_path / "bill.csv", date(2026, 9, 9))
    costs = read_costs([str(path)], None, ("total", "tag:team"))
    (words,) = (line for line in costs.findings if "bought once" in line)
    assert "EC2 of AWS (33,000 USD in September 2026)" in words
    team = costs.scopes["tag:team"]["ml"]
    assert team.once is not None and team.once.sum() == 33000 and team.cost.sum() > 92 * 2200 + 33000 - 5000
