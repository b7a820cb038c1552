"""KPIs asked over the bill summed by day have the answers that they have over its charges."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.finops.kpis import day_sums, query_kpi
from planner.finops.kpis.day_sums import DAY_SUMS, TABLE, keep_day_sums
from planner.finops.kpis.registry import load_kpi
from planner.finops.provider_days import provider_days, use_by_provider
from planner.finops.read import Bill, open_bill
from tests.planner.finops.small_bill import charge, review_of, write_bill

SEPTEMBER, OCTOBER, NOVEMBER = date(2026, 9, 1), date(2026, 10, 1), date(2026, 11, 1)
MONTHS: dict[str, Any] = {"start": OCTOBER, "end": NOVEMBER, "before_start": SEPTEMBER, "before_end": OCTOBER}
KPIS = [name for name in DAY_SUMS if name != "provider_days"]


def rows() -> list[dict[str, str]]:
    """Charges of every kind on the same days and services: dear, free, negative, of no known cost or price, monthly."""
    rng = np.random.default_rng(3)
    costs, kinds = ("7.25", "-3.5", "0", ""), ("Usage", "Usage", "Usage", "Purchase", "Credit", "Tax")
    made = []
    for number in range(1500):
        day = SEPTEMBER + timedelta(int(rng.integers(61)))
        committed = number % 4 == 0
        made.append(
            charge(
                day, days=(1, 1, 1, 30)[number % 4 if number % 5 else 3],
                **{name: rng.choice(costs, p=(0.7, 0.1, 0.1, 0.1))
                   for name in ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")},
                ChargeCategory=rng.choice(kinds), ProviderName=("AWS", "Azure", "")[number % 7 % 3],
                ServiceName=f"service {number % 3}", ServiceCategory=("Compute", "Storage", "")[number % 3],
                PricingCategory=rng.choice(("Standard", "Dynamic", "Committed", "")),
                CommitmentDiscountId="plan" if committed else "",
                CommitmentDiscountStatus=rng.choice(("Used", "Unused", "")) if committed else "",
                CommitmentProgramEligibilityDetails='{"Programs":[]}' if number % 6 == 0 else "",
            )
        )  # fmt: skip
    return made


@pytest.fixture
def bill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bill]:
    monkeypatch.setattr(day_sums, "MANY_ROWS", 1)
    with open_bill([write_bill(tmp_path / "bill.csv", rows())]) as opened:
        yield opened


def test_the_kpis_have_the_same_answers(bill: Bill) -> None:
    asked = {kpi: {name: MONTHS[name] for name in load_kpi(kpi).parameters} for kpi in KPIS}
    before = {kpi: query_kpi(bill.engine, kpi, asked[kpi]) for kpi in KPIS}
    days = provider_days(use_by_provider(bill, (SEPTEMBER, OCTOBER)), (SEPTEMBER, OCTOBER))
    keep_day_sums(bill)
    (kept,) = bill.engine.query(f"SELECT COUNT(*) AS n FROM {TABLE}")["n"]
    assert kept < 1500
    for kpi in KPIS:
        after = query_kpi(bill.engine, kpi, asked[kpi])
        keys = [name for name in after.columns if not pd.api.types.is_numeric_dtype(after[name])]
        first, second = (frame.sort_values(keys, ignore_index=True) for frame in (before[kpi], after))
        assert len(first) >= 2, kpi
        pd.testing.assert_frame_equal(first, second, rtol=1e-12, atol=1e-9, obj=kpi)
    assert days == provider_days(use_by_provider(bill, (SEPTEMBER, OCTOBER)), (SEPTEMBER, OCTOBER))


def test_the_table_is_asked_where_it_is_kept(bill: Bill) -> None:
    keep_day_sums(bill)
    bill.engine.register_view(TABLE, "SELECT * FROM focus WHERE ServiceName = 'service 1'")  # type: ignore[attr-defined]
    assert set(query_kpi(bill.engine, "daily_cost", {})["service"]) == {"service 1"}


def test_small_bills_are_asked_where_they_are(tmp_path: Path) -> None:
    with open_bill([write_bill(tmp_path / "bill.csv", rows()[:20])]) as opened:
        keep_day_sums(opened)
        assert TABLE not in opened.engine.kept  # type: ignore[attr-defined]


def test_a_review_over_the_sums_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_bill(tmp_path / "bill.csv", rows())
    shown = []
    for many in (10**9, 1):
        monkeypatch.setattr(day_sums, "MANY_ROWS", many)
        made = review_of(path, only=("overview", "commitments", "quality", "bridge"))
        shown.append([(section.key, section.sentences) for section in made.sections])
    assert shown[0] == shown[1]
