"""Scopes whose use has ended, for instance because their tag has another name: what came before widens no range."""

from __future__ import annotations

import math
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.finops.forecast.answer import PeriodForecast, Question, forecast_scopes
from planner.finops.forecast.bill import daily_of_bill
from planner.finops.forecast.daily import load_daily
from planner.finops.forecast.model import forecast_daily
from planner.finops.read import open_bill
from tests.planner.finops.small_bill import charge, write_bill

FIRST, LAST, RENAMED = date(2026, 2, 1), date(2026, 10, 31), date(2026, 8, 20)
DAYS = [FIRST + timedelta(number) for number in range((LAST - FIRST).days + 1)]
OLD: dict[str, Any] = {"Tags": '{"team":"ml"}'}
NEW: dict[str, Any] = {"Tags": '{"team":"research"}'}


def cost(day: date) -> float:
    """About 1,000 a day."""
    return 1000 + 40 * math.sin(3 * day.toordinal())


def periods(
    tmp_path: Path, rows: list[dict[str, Any]], kind: str = "effective"
) -> tuple[PeriodForecast, ...]:
    """The team ml's November, December and January."""
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as bill:
        scopes = daily_of_bill(bill, "tag:team", kind)
    answer = forecast_scopes(scopes, Question(horizon_days=0), by="tag:team")
    return next(one for one in answer.scopes if one.scope == "ml").periods


def renamed() -> list[dict[str, Any]]:
    return [charge(day, cost(day), **(OLD if day < RENAMED else NEW)) for day in DAYS]


def test_a_renamed_tag_is_at_an_end(tmp_path: Path) -> None:
    """December was "0 to 31,000" of a team that had cost 27,000 a month until its tag was renamed."""
    assert all(one.expected < 100 and one.high < 600 for one in periods(tmp_path, renamed()))


def test_credits_after_the_end_make_it_no_use(tmp_path: Path) -> None:
    """A refund of a few per week: the cost of a week is not 0, its use is."""
    late = [charge(day, -3, ChargeCategory="Credit", **OLD) for day in DAYS if day >= RENAMED][::6]
    assert all(abs(one.expected) < 100 and one.high < 600 for one in periods(tmp_path, renamed() + late))


def test_fees_after_the_end_keep_their_range(tmp_path: Path) -> None:
    """A contract in place of use: the errors of the days before its first fee made 32,000 "0 to 43,621,721"."""
    until = date(2026, 10, 10)
    rows = [row for row, day in zip(renamed(), DAYS, strict=True) if day <= until]
    fees = [charge(date(2026, m, 1), 30_000, ChargeCategory="Purchase", **OLD) for m in (9, 10)]
    assert all(one.high < 150_000 for one in periods(tmp_path, rows + fees))


def test_a_little_fee_after_the_end_widens_nothing(tmp_path: Path) -> None:
    """A licence of 20 a month keeps the old tag."""
    fees = [charge(date(2026, m, 1), 20, ChargeCategory="Purchase", **OLD) for m in range(2, 11)]
    assert all(one.expected < 100 and one.high < 600 for one in periods(tmp_path, renamed() + fees))


@pytest.mark.parametrize("kind", ["effective", "billed"])
def test_use_that_costs_nothing_goes_on(tmp_path: Path, kind: str) -> None:
    """Credits cover it whole, or a purchase of a year ahead: when that ends, the team costs as before."""
    rows = [charge(day, cost(day), **OLD) for day in DAYS]
    free = [row for row, day in zip(rows, DAYS, strict=True) if day >= RENAMED]
    if kind == "billed":
        for row in free:
            row["BilledCost"] = "0"
    else:
        rows += [charge(day, -cost(day), ChargeCategory="Credit", **OLD) for day in DAYS if day >= RENAMED]
    assert all(one.high > 10_000 for one in periods(tmp_path, rows, kind)[1:])


def test_rows_of_a_file_are_use(tmp_path: Path) -> None:
    """A scope that has no row any more has ended; one of which every day is listed, at 0, may not have."""
    made = {}
    for name, last in (("ended", ""), ("listed", "ml,0\n")):
        lines = [
            f"{day},ml,{cost(day):.2f}\n{day},b,50\n"
            if day < RENAMED
            else f"{day},b,50\n" + (last and f"{day},{last}")
            for day in DAYS
        ]
        path = tmp_path / f"{name}.csv"
        path.write_text("date,scope,cost\n" + "".join(lines), encoding="utf-8")
        answer = forecast_scopes(load_daily(path), Question(horizon_days=0))
        made[name] = next(one for one in answer.scopes if one.scope == "ml").periods[1].high
    assert made["ended"] < 600 and made["listed"] > 10_000


def test_a_scope_that_often_pauses_may_come_back() -> None:
    """Five weeks of use, five without, again and again: after three silent weeks a whole month of use is possible."""
    amount = 100 * np.exp(np.random.default_rng(1).normal(0, 0.04, 268)) * (np.arange(268) // 35 % 2 == 0)
    assert amount[-21:].max() == 0
    days, used = np.datetime64("2026-01-01") + np.arange(268), np.where(amount > 0, amount, np.nan)
    assert forecast_daily(days, amount, used=used, horizon_days=30).total_high > 1000
