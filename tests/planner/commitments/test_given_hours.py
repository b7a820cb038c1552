"""Scenarios of a file whose hours lie anywhere: purchases save in the hours of their own terms."""

from __future__ import annotations

from datetime import timedelta
from itertools import product
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


def asked(days_left: int, owned: int, **more: Any) -> CommitQuestion:
    """A year of one pool, of which some instances are under a reservation that ends after so many days."""
    last = question().start + timedelta(days=days_left - 1)
    pool = {"name": "a", "provider": "x", "region": "r"}
    own = {"purchase_option": "reserved_1y", "pool": "a", "instances": owned, "expires": f"{last}"}
    return question(**{
        "pools": [pool | {"prices": {"on_demand": ON_DEMAND, "reserved_1y": RESERVED}}],
        "demand": {}, "scenarios": {"file": "given.csv"}, "commitments": [own], "horizon_years": 1,
    } | more)  # fmt: skip


def answered(question: CommitQuestion, scenarios: list[Rows], folder: Path) -> Work:
    lines = [f"s{number},{hour},a,{units}" for number, rows in enumerate(scenarios) for hour, units in rows]
    (folder / "given.csv").write_text("\n".join(["scenario,hour,pool,instances", *lines]) + "\n")
    return advise(loaded(question, folder), None, gap=1e-9, with_regret=False)


def cheapest(scenarios: list[Rows], days_left: int, owned: int, renewals: bool) -> tuple[float, int, int]:
    """Every number bought now and for the day after the end, each paid hour by hour: cost, now, later.

    An hour that the file does not give is like those given before the end, or those after it, or else like all.
    """
    end, best = 24 * days_left, (np.inf, 0, 0)
    most = max(units for rows in scenarios for _, units in rows)
    for now, later in product(range(most + 1), range((most + 1) if renewals else 1)):
        usd = RESERVED * (now * YEAR + later * (YEAR - end))
        for rows in scenarios:
            for hours, covered in ((range(end), now + owned), (range(end, YEAR), now + later)):
                like = [units for hour, units in rows if hour in hours] or [units for _, units in rows]
                each = np.mean([max(units - covered, 0) for units in like])
                usd += ON_DEMAND * len(hours) * each / len(scenarios)
        best = min(best, (float(usd), now, later))
    return best


def test_hours_given_late_do_not_count_twice(tmp_path: Path) -> None:
    """Five instances in December, of which the file gives a day, are not used for a year by what begins in July."""
    rows = [(8000 + hour, 5) for hour in range(24)]
    plain = asked(181, 5)
    work = answered(plain, [rows], tmp_path)
    half = (YEAR - 24 * 181) / YEAR
    assert work.answer.nothing.expected_usd == pytest.approx(5 * ON_DEMAND * YEAR * half)
    assert work.answer.plan.expected_usd == pytest.approx(5 * RESERVED * YEAR * half)
    dear = asked(181, 5, pools=[{
        "name": "a", "provider": "x", "region": "r", "prices": {"on_demand": ON_DEMAND, "reserved_1y": 10.5},
    }])  # fmt: skip
    assert answered(dear, [rows], tmp_path).answer.lines == ()


def check_given(seed: int, folder: Path) -> None:
    draw = np.random.default_rng(seed)
    days_left, renewals = int(draw.integers(5, 360)), bool(draw.random() < 0.8)
    scenarios = []
    for _ in range(int(draw.integers(1, 4))):
        low, high = sorted(draw.integers(0, YEAR, 2).tolist())  # some lie before the end alone, some after it
        hours = draw.choice(np.arange(low, high + 9), int(draw.integers(1, 9)), replace=False) % YEAR
        scenarios.append([(int(hour), int(draw.integers(0, 6))) for hour in sorted(set(hours.tolist()))])
    owned = int(draw.integers(1, 5))
    one = asked(days_left, owned, options={"renewals": renewals})
    work = answered(one, scenarios, folder)
    usd, _, _ = cheapest(scenarios, days_left, owned, renewals)
    assert work.solved.objective_usd == pytest.approx(usd, rel=1e-9, abs=1e-6), seed
    assert judge_commit(as_json(work), CommitMemory(loaded(one, folder), None)).faults == (), seed


@pytest.mark.parametrize("seed", range(share_of(60)))
def test_every_choice_of_given_hours(seed: int, tmp_path: Path) -> None:
    check_given(seed, tmp_path)
