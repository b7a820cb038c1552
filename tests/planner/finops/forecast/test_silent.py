"""Scopes whose use stops for the first time are named: nothing in a bill says whether they have ended or pause."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from time import process_time

import numpy as np
import pytest

from planner.finops.forecast.daily import DailyCost
from planner.finops.forecast.silent import silent_words
from planner.finops.forecast.source import read_costs
from tests.planner.finops.small_bill import charge, write_bill

FIRST, LAST = date(2026, 6, 1), date(2026, 10, 31)
DAYS = [FIRST + timedelta(number) for number in range((LAST - FIRST).days + 1)]
SAID = (
    "ml has had no use since 8 October: forecasts expect less of it or nothing; it cost 30,000 USD in the 30 days "
    "before"
)


def costs_of(path: Path, is_used: Callable[[date], bool], amount: float = 1000) -> Path:
    lines = [f"{day},web,500" for day in DAYS]
    lines += [f"{day},ml,{amount}" for day in DAYS if is_used(day)]
    path.write_text("date,scope,cost\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("is_used", "amount", "said"),
    [
        (lambda day: day <= date(2026, 10, 8), 1000, True),
        (lambda day: day <= date(2026, 10, 26), 1000, False),  # five days are no pause yet
        (lambda day: day <= date(2026, 8, 8), 1000, False),  # no news
        (lambda day: day <= date(2026, 10, 8), 1, False),  # nothing that would be missed
        (
            lambda day: day.weekday() >= 5 and day <= date(2026, 10, 25),
            1000,
            False,
        ),  # the next is on the last day
        (
            lambda day: day.toordinal() // 30 % 2 == 0 and day <= date(2026, 10, 8),
            1000,
            False,
        ),  # it often pauses
    ],
    ids=["stopped", "five days", "long ago", "small", "weekends", "pauses"],
)
def test_what_stopped_is_named(
    is_used: Callable[[date], bool], amount: float, said: bool, tmp_path: Path
) -> None:
    found = read_costs(
        (), costs_of(tmp_path / "days.csv", is_used, amount), ("scope",), currency="USD"
    ).findings
    assert [one for one in found if "no use since" in one] == ([f"warning: {SAID}"] if said else [])


def test_a_team_of_a_bill_is_named_once(tmp_path: Path) -> None:
    """A team that was expected at 0, and a budget within its gate, without a word."""
    rows = [charge(day, 500, Tags='{"team":"web"}') for day in DAYS]
    rows += [charge(day, 1000, Tags='{"team":"ml"}') for day in DAYS if day <= date(2026, 10, 8)]
    bill = str(write_bill(tmp_path / "bill.csv", rows))
    assert read_costs((bill,), None, ("tag:team", "service")).findings == (f"warning: {SAID}",)
    assert read_costs((bill,), None, ("total",)).findings == ()


def test_of_many_the_dearest_are_named() -> None:
    days = np.arange("2026-10-01", "2026-11-01", dtype="datetime64[D]")
    scopes = {f"team {n}": DailyCost(days[:15], np.full(15, 10.0 + n)) for n in range(7)}
    scopes["web"] = DailyCost(days, np.full(31, 50.0))
    *named, more = silent_words(scopes, "EUR")
    assert [words.partition(" has")[0] for words in named] == [f"team {n}" for n in (6, 5, 4, 3, 2)]
    assert more == "2 more scopes have had no use for over a week"


def test_many_short_scopes_are_summed_up_once() -> None:
    """3,000 runs of ten days each, as values of a tag: 40 s."""
    days = np.arange("2026-01-01", "2026-11-01", dtype="datetime64[D]")
    scopes = {}
    for number in range(3000):
        cost = np.zeros(len(days))
        cost[(start := 230 + number % 50) : start + 10] = 10.0
        scopes[f"run {number}"] = DailyCost(days, cost)
    began = process_time()
    assert silent_words(scopes, "USD") == ()  # none is a hundredth
    assert process_time() - began < 2
