"""The generator of bills: the same for the same seed, each kind with what it is named after."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.forecast_regimes import LATE_SHARE, REGIMES, Bill, bills, main, reported
from planner.finops.forecast.daily import load_daily


def of(regime: str, made: list[Bill]) -> list[Bill]:
    return [bill for bill in made if bill.regime == regime]


def test_a_seed_gives_the_same_bills_and_another_one_others() -> None:
    one, again, other = bills(3, 1), bills(3, 1), bills(4, 1)
    assert [bill.regime for bill in one] == list(REGIMES)
    assert all(np.array_equal(a.cost, b.cost) for a, b in zip(one, again, strict=True))
    assert not any(np.array_equal(a.cost, b.cost) for a, b in zip(one, other, strict=True))


def test_each_kind_does_what_it_is_named_after() -> None:
    made = bills(5, 4)
    for bill in of("shifts_up", made):
        assert bill.cost[-28:].mean() > bill.cost[:28].mean()
    for bill in of("credits_end", made):
        assert bill.cost[-28:].mean() > 1.1 * bill.cost[:28].mean()
    for bill in of("absent_days", made):
        assert len(bill.days) < (bill.days[-1] - bill.days[0]).astype(int) + 1
    assert any((bill.cost < 0).any() for bill in of("restated", made))
    for bill in of("month_fees", made):
        dear = bill.days[bill.cost > 1.8 * np.median(bill.cost)]
        month = dear.astype("datetime64[M]")
        last = (month + 1).astype("datetime64[D]") - 1
        assert len(dear) > 4 and ((dear == month.astype("datetime64[D]")) | (dear == last)).all()


def test_young_days_are_reported_in_part() -> None:
    cost = np.full(30, 100.0)
    seen = reported(cost, np.random.default_rng(1))
    assert seen[-1] < 20 and (seen[: -len(LATE_SHARE)] == 100).all() and seen.sum() < cost.sum()


def test_files_are_read_by_the_forecast(tmp_path: Path) -> None:
    assert main(["--out", str(tmp_path / "bills"), "--seed", "2", "--per-regime", "1"]) == 0
    files = sorted((tmp_path / "bills").iterdir())
    assert len(files) == len(REGIMES)
    found = load_daily(files[0])
    assert len(next(iter(found.values())).days) >= 200
