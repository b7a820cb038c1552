"""Fees, credits and charges by the month come on single days: they make no bill late, and come again in a month."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from planner.errors import InputError
from planner.finops.budget.answer import check_budgets
from planner.finops.forecast.answer import Question, forecast_scopes
from planner.finops.forecast.bill import daily_of_bill
from planner.finops.forecast.clean import charged_once, regular_series
from planner.finops.forecast.daily import DailyCost, load_daily, total_of
from planner.finops.forecast.model import forecast_daily
from planner.finops.read import open_bill
from planner.inputs.budget_load import load_budgets
from tests.planner.finops.small_bill import charge, each_day, review_of, write_bill

LAST = date(2026, 10, 31)


@pytest.fixture
def credited(tmp_path: Path) -> Path:
    """Three months at 100 a day; the last day brings 90 of credits."""
    rows = each_day(date(2026, 8, 1), LAST, 100)
    return write_bill(tmp_path / "bill.csv", [*rows, charge(LAST, -90, ChargeCategory="Credit", SkuId="c")])


def test_a_credit_on_the_last_day_does_not_make_the_bill_late(credited: Path) -> None:
    """The day was left out, and the month was said to land at 9,390 though 9,210 were known."""
    with open_bill([credited]) as bill:
        scopes = daily_of_bill(bill)
    answer = forecast_scopes(scopes, Question())
    assert (answer.dropped_days, answer.last_day) == (0, LAST)
    assert answer.scopes[0].periods[0].period.label == "2026-11"


def test_nor_in_a_budget_and_in_the_review_of_a_running_month(credited: Path, tmp_path: Path) -> None:
    budget = tmp_path / "budget.yaml"
    budget.write_text(
        "version: 1\nkind: budget\nname: b\ncurrency: USD\nbudgets: [{name: all, amount: 9300}]\n"
    )
    with open_bill([credited]) as bill:
        answer = check_budgets(load_budgets(budget), {"total": daily_of_bill(bill)}, currency="USD")
    assert answer.dropped_days == 0
    assert answer.lines[0].actual == pytest.approx(31 * 100 - 90)
    assert not answer.exceeded
    rows = [
        *each_day(date(2026, 8, 1), date(2026, 10, 20), 100),
        charge(date(2026, 10, 20), -90, ChargeCategory="Credit"),
    ]
    made = review_of(write_bill(tmp_path / "part.csv", rows), only=("forecast",), forecast=True)
    days = next(figure for figure in made.sections[0].figures if figure.key == "forecast_days_count")
    assert days.value == 11


def test_a_day_with_little_use_is_still_late(tmp_path: Path) -> None:
    rows = [
        *each_day(date(2026, 8, 1), date(2026, 10, 30), 100),
        charge(LAST, 10),
        charge(LAST, 90, ChargeCategory="Purchase"),
    ]
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as bill:
        assert forecast_scopes(daily_of_bill(bill), Question()).dropped_days == 1


def test_a_bill_by_the_month_comes_again_each_month() -> None:
    """Of ten such months December was expected at twice a month."""
    months = np.arange(np.datetime64("2026-01"), np.datetime64("2026-11"))
    cost = 74_200.0 + 530.0 * np.arange(1, 11)
    known = {"total": DailyCost(months.astype("datetime64[D]"), np.asarray(cost, dtype=float))}
    answer = forecast_scopes(known, Question(horizon_days=0, count=4))
    october, *ahead = answer.scopes[0].periods
    assert october.expected == pytest.approx(cost[-1], rel=0.001)
    for one in ahead:
        assert one.expected == pytest.approx(cost[-1], rel=0.01)
        assert one.low <= cost[-1] + 1_590.0 <= one.high


def test_a_correction_after_the_last_use_does_not_bring_it_back(tmp_path: Path) -> None:
    """An account that was closed on 30 September was expected to cost 29,760 in October."""
    rows = each_day(date(2025, 10, 1), date(2026, 9, 30), 960)
    rows.append(charge(date(2026, 10, 9), -700, ChargeClass="Correction"))
    path = write_bill(tmp_path / "bill.csv", rows)
    with open_bill([path]) as bill:
        answer = forecast_scopes(daily_of_bill(bill), Question())
    assert answer.dropped_days == 0
    assert answer.scopes[0].periods[0].expected < 0.1 * 31 * 960
    made = review_of(path, month=date(2026, 10, 1), only=("forecast",), forecast=True)
    landing = next(figure for figure in made.sections[0].figures if figure.key == "forecast_landing_money")
    assert isinstance(landing.value, float) and landing.value < 0.1 * 31 * 960


@pytest.mark.parametrize("credited", [(9,), (8, 9), (3, 7, 9, 12), range(3, 10)])
def test_credits_after_the_end_count_once_and_are_not_expected_again(credited: range, tmp_path: Path) -> None:
    """An account that was closed on 30 September, with one credit of 700 since, was to land at -4,177 in October."""
    rows = each_day(date(2026, 7, 1), date(2026, 9, 30), 960)
    rows += [
        charge(date(2026, 10, day), -700 / len(credited), ChargeCategory="Credit", SkuId="c")
        for day in credited
    ]
    with open_bill([write_bill(tmp_path / "bill.csv", rows)]) as bill:
        answer = forecast_scopes(daily_of_bill(bill), Question())
    october, november, *_ = answer.scopes[0].periods
    assert october.actual == pytest.approx(-700)
    assert october.expected == pytest.approx(-700, abs=10)
    assert november.expected == pytest.approx(0, abs=10)


def test_a_steady_credit_is_expected_again() -> None:
    """Of four weeks of it; and one credit in a month of use takes off what it takes off."""
    days = np.arange(np.datetime64("2026-07-01"), np.datetime64("2026-11-01"))
    since = (days - np.datetime64("2026-09-30")).astype(int)
    steady = regular_series(days, np.where(since > 0, -20.0, 960.0))
    assert (steady.cost[since > 0] == -20.0).all()
    once = regular_series(days, np.where(since == since[-1], -500.0, 960.0))
    assert once.cost[-1] == -500.0


def test_days_that_an_export_lacks_are_still_unknown() -> None:
    days = np.arange(np.datetime64("2026-01-01"), np.datetime64("2026-10-11"))
    there = (days < np.datetime64("2026-10-02")) | (days > np.datetime64("2026-10-08"))
    series = regular_series(days[there], np.full(int(there.sum()), 960.0))
    assert series.filled == 7 and series.cost.min() == 960.0


@pytest.mark.parametrize("cost", [-1250.0, 2500.0])
def test_a_credit_or_fee_of_the_last_days_is_not_expected_on_every_day(cost: float, tmp_path: Path) -> None:
    """A credit of 1,250 on 31 October, in a bill that rose to 4,000 a day, took 27 % off what November was to cost."""
    rows = each_day(date(2026, 9, 5), date(2026, 10, 9), 2700) + each_day(date(2026, 10, 10), LAST, 4000)
    category = "Credit" if cost < 0 else "Purchase"
    once = [*rows, charge(LAST, cost, ChargeCategory=category, SkuId="c")]
    expected = {}
    for name, given in (("without", rows), ("once", once)):
        with open_bill([write_bill(tmp_path / f"{name}.csv", given)]) as bill:
            answer = forecast_scopes(daily_of_bill(bill), Question())
        expected[name] = answer.scopes[0].periods[0].expected
    assert expected["once"] == pytest.approx(expected["without"], rel=0.01)


def test_what_comes_again_is_no_charge_of_one_day() -> None:
    """Credits of every day, a fee a month earlier, and credits since more than two days are part of the level."""
    days = np.arange(np.datetime64("2026-08-01"), np.datetime64("2026-11-01"))
    cost = np.full(len(days), 1000.0)
    last = len(days) - 1

    def others(at: dict[int, float], daily: float = 0.0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        out = np.full(len(days), daily)
        for back, amount in at.items():
            out[last - back] += amount
        return out

    assert charged_once(days, others({0: -500}), cost)[last] == -500
    assert charged_once(days, others({1: 500}), cost).nonzero()[0].tolist() == [last - 1]
    assert not charged_once(days, others({0: -50}), cost).any()  # a twentieth of a day
    assert not charged_once(days, others({}, -500), cost).any()
    assert not charged_once(days, others({0: 500, 30: 500}), cost).any()
    assert charged_once(days, others({0: 500, 30: 100}), cost).any()
    assert not charged_once(days, others({2: -500, 3: -500}), cost).any()
    series = regular_series(days, cost - np.where(days == days[-1], 500.0, 0.0), cost)
    assert (series.cost[-1], series.reported[-1]) == (1000.0, 500.0)  # models, and sums


def test_costs_of_use_are_as_many_as_days() -> None:
    days = np.arange("2026-10-01", "2026-10-15", dtype="datetime64[D]")
    with pytest.raises(InputError, match="14 days but 13 costs of use"):
        regular_series(days, np.ones(14), np.ones(13))
    with pytest.raises(InputError, match="14 costs but 1 of what was bought once"):
        forecast_daily(days, np.ones(14), once=np.ones(1), horizon_days=3)


def test_a_credit_in_a_file_of_daily_costs_is_no_use(tmp_path: Path) -> None:
    """The last day was left out as late, and the month was said to land at 4,000 more than it had cost."""
    days = [date.fromordinal(date(2026, 8, 1).toordinal() + n) for n in range(92)]
    plain = [f"{day},prod,{2700 + day.day % 5 * 10}" for day in days]
    files = {
        "alone": [*plain[:-1], f"{LAST},prod,{2710 - 4000}"],
        "beside": [*plain, f"{LAST},prod,-4000"],
        "apart": [*plain, f"{LAST},credits,-4000"],
    }
    for name, rows in files.items():
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(["date,scope,cost", *rows]), encoding="utf-8")
        answer = forecast_scopes({"all": total_of(load_daily(path, until_last_day=True))}, Question())
        assert (answer.dropped_days, answer.last_day) == (0, LAST), name
        november = answer.scopes[0].periods[0]
        assert november.period.label == "2026-11", name
        assert november.expected == pytest.approx(30 * 2720, rel=0.002), name
    late = tmp_path / "late.csv"
    late.write_text("\n".join(["date,scope,cost", *plain[:-1], f"{LAST},prod,300"]), encoding="utf-8")
    assert forecast_scopes(load_daily(late, until_last_day=True), Question()).dropped_days == 1
