"""Scenarios of a file whose hours lie anywhere: purchases save in the hours of their own terms."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.commitments.advise import Work, advise
from planner.inputs.commit_schema import CommitQuestion
from planner.judge.commits.figures import CommitMemory
from planner.judge.judge import judge_commit
from tests.draws import share_of
from tests.planner.commitments.test_begins import as_json
from tests.planner.commitments.test_commit_input import loaded, question

YEAR, ON_DEMAND, RESERVED = 8760, 10.0, 6.0
Rows = list[tuple[int, int]]  # hour, instances
Ends = list[tuple[int, int]]  # days until the end, ascending, and instances


def asked(ends: Ends, **more: Any) -> CommitQuestion:
    """A year of one pool, of which some instances are under reservations that end after so many days."""
    pool = {"name": "a", "provider": "x", "region": "r"}
    owned = [
        {
            "purchase_option": "reserved_1y", "pool": "a", "instances": instances,
            "expires": f"{question().start + timedelta(days=days - 1)}",
        }
        for days, instances in ends
    ]  # fmt: skip
    return question(**{
        "pools": [pool | {"prices": {"on_demand": ON_DEMAND, "reserved_1y": RESERVED}}],
        "demand": {}, "scenarios": {"file": "given.csv"}, "commitments": owned, "horizon_years": 1,
    } | more)  # fmt: skip


def answered(question: CommitQuestion, scenarios: list[Rows], folder: Path) -> Work:
    lines = [f"s{number},{hour},a,{units}" for number, rows in enumerate(scenarios) for hour, units in rows]
    (folder / "given.csv").write_text("\n".join(["scenario,hour,pool,instances", *lines]) + "\n")
    return advise(loaded(question, folder), None, gap=1e-9, with_regret=False)


def cheapest(scenarios: list[Rows], ends: Ends, renewals: bool) -> float:
    """The least cost of every number bought now and for the day after each end, each paid hour by hour.

    An hour that the file does not give is like those given between the same two ends. Where none is, it is like those
    given between the two ends around the nearest given hour, the first of two.
    """
    cuts = [0, *(24 * days for days, _ in ends), YEAR]
    periods = [range(*pair) for pair in pairwise(cuts)]
    like = [[_like(rows, hours, periods) for hours in periods] for rows in scenarios]
    most = max(units for rows in scenarios for _, units in rows)
    best = float("inf")
    for bought in product(range(most + 1), *[range(most + 1 if renewals else 1)] * len(ends)):
        usd = sum(RESERVED * units * (YEAR - first) for units, first in zip(bought, cuts, strict=False))
        for number, hours in enumerate(periods):
            covered = sum(bought[: number + 1]) + sum(units for _, units in ends[number:])
            for rows in like:
                each = float(np.mean([max(units - covered, 0) for units in rows[number]]))
                usd += ON_DEMAND * len(hours) * each / len(scenarios)
        best = min(best, float(usd))
    return best


def _like(rows: Rows, hours: range, periods: list[range]) -> list[int]:
    nearest = min(max(hours[0] - hour, hour - hours[-1], 0) for hour, _ in rows)
    close = next(hour for hour, _ in rows if max(hours[0] - hour, hour - hours[-1], 0) == nearest)
    told = next(period for period in periods if close in period)
    return [units for hour, units in rows if hour in told]


def test_hours_given_late_do_not_count_twice(tmp_path: Path) -> None:
    """Five instances in December, of which the file gives a day, are not used for a year by what begins in July."""
    rows = [(8000 + hour, 5) for hour in range(24)]
    plain = asked([(181, 5)])
    work = answered(plain, [rows], tmp_path)
    half = (YEAR - 24 * 181) / YEAR
    assert work.answer.nothing.expected_usd == pytest.approx(5 * ON_DEMAND * YEAR * half)
    assert work.answer.plan.expected_usd == pytest.approx(5 * RESERVED * YEAR * half)
    dear = asked([(181, 5)], pools=[{
        "name": "a", "provider": "x", "region": "r", "prices": {"on_demand": ON_DEMAND, "reserved_1y": 10.5},
    }])  # fmt: skip
    assert answered(dear, [rows], tmp_path).answer.lines == ()


DAY = [24 * 121 + hour for hour in range(24)]


@pytest.mark.parametrize(
    ("ends", "given", "unit_days"),
    [
        # Of three periods the second has no hours: it is like the third, as that begins a day after it ends.
        ([(61, 1), (120, 1)], {24: 1, 24 * 59: 1} | dict.fromkeys(DAY, 4), 59 * 3 + 245 * 4),
        # given three hours before it and three after it: like the period before
        ([(61, 1), (120, 1)], {24 * 61 - 3: 2, 24 * 120 + 2: 4}, 59 * 1 + 245 * 4),
        ([(61, 1), (120, 1)], {24 * 61 - 3: 2, 24 * 120 + 1: 4}, 59 * 3 + 245 * 4),
        ([(1, 1), (2, 1)], {24: 3, YEAR - 1: 5}, 1 + 2 + 363 * 5),  # the first day is like the second
        ([(61, 1), (61, 2)], {0: 3}, 304 * 3),  # two ends on one day
        ([(200, 2)], {YEAR - 1: 5}, 200 * 3 + 165 * 5),  # ends before the first given hour
        ([(0, 2), (365, 1), (999, 1)], {24: 3}, 365 * 1),  # one ended before the start, two last all year
    ],
)
def test_hours_that_nobody_gave_are_like_the_nearest_given(
    ends: Ends, given: dict[int, int], unit_days: int, tmp_path: Path
) -> None:
    """Unit-days beyond what is owned, counted by hand."""
    one = asked(ends)
    work = answered(one, [list(given.items())], tmp_path)
    assert work.answer.nothing.expected_usd == pytest.approx(ON_DEMAND * 24 * unit_days)
    assert judge_commit(as_json(work), CommitMemory(loaded(one, tmp_path), None)).faults == ()


def test_many_ends_leave_as_many_rows_as_there_are_hours_and_ends(tmp_path: Path) -> None:
    """A week without given hours takes a neighbour's, not those of the whole year: the answer is soon there."""
    hours = sorted(np.random.default_rng(1).choice(YEAR, 40, replace=False).tolist())
    work = answered(
        asked([(7 * week, 1) for week in range(1, 51)]), [[(hour, 60) for hour in hours]], tmp_path
    )
    assert work.answer.rows <= 2 * (40 + 50)


def check_given(seed: int, folder: Path) -> None:
    draw = np.random.default_rng(seed)
    days = sorted(draw.choice(np.arange(5, 360), int(draw.integers(1, 3)), replace=False).tolist())
    renewals = bool(draw.random() < 0.8)
    scenarios = []
    for _ in range(int(draw.integers(1, 4))):
        low, high = sorted(draw.integers(0, YEAR, 2).tolist())  # some lie before the end alone, some after it
        hours = draw.choice(np.arange(low, high + 9), int(draw.integers(1, 9)), replace=False) % YEAR
        scenarios.append([(int(hour), int(draw.integers(0, 6))) for hour in sorted(set(hours.tolist()))])
    ends = [(day, int(draw.integers(1, 4))) for day in days]
    one = asked(ends, options={"renewals": renewals})
    work = answered(one, scenarios, folder)
    usd = cheapest(scenarios, ends, renewals)
    assert work.solved.objective_usd == pytest.approx(usd, rel=1e-9, abs=1e-6), seed
    assert judge_commit(as_json(work), CommitMemory(loaded(one, folder), None)).faults == (), seed


@pytest.mark.parametrize("seed", range(share_of(60)))
def test_every_choice_of_given_hours(seed: int, tmp_path: Path) -> None:
    check_given(seed, tmp_path)
