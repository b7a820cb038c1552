"""How often a launcher is taken to ask, and what is said of zones that the plan does not have."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from planner.advice.question import build_question, usual_tick_hours
from planner.advice.saved_plan import load_spot_plan
from planner.inputs.state_load import load_state
from tests.planner.advice.plans import plan_values, state_values, write


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


@pytest.mark.parametrize(("region", "said"), [("us-east-2", False), ("eastus", True)])
def test_a_zone_outside_the_plan_says_whose_figures_stand_in(region: str, said: bool, tmp_path: Path) -> None:
    zones = [{"name": f"{region}z", "region": region, "available": True, "since": 1.5}]
    plan, state = write(tmp_path, plan_values(), state_values(zones=zones))
    asked = build_question(
        load_spot_plan(Path(plan)),
        load_state(Path(state)),
        tick_hours=0.1,
        clock=datetime(2026, 3, 2, tzinfo=UTC),
    )
    assert any("none of the plan's regions (us-east-2)" in note for note in asked.notes) is said
