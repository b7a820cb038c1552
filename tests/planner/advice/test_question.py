"""How often a launcher is taken to ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.advice.question import usual_tick_hours
from planner.advice.saved_plan import load_spot_plan
from tests.planner.advice.plans import plan_values, write


@pytest.mark.parametrize(
    ("deadline", "hours"),
    [
        ("2026-03-03T04:00+00:00", 0.1),
        ("2026-03-09T08:00+00:00", 0.1),  # a week
        ("2026-03-10T08:00+00:00", 0.2),
        ("2026-03-30T08:00+00:00", 0.4),
        (None, 0.1),
    ],
)
def test_long_jobs_are_asked_for_less_often(deadline: str | None, hours: float, tmp_path: Path) -> None:
    plan, _ = write(tmp_path, plan_values(deadline=deadline))
    assert usual_tick_hours(load_spot_plan(Path(plan))) == pytest.approx(hours)
