"""A run is compared with what its plan counts beside the steps, as far as its log has it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from planner.plan.ids import TimePartId
from planner.plan.model import Assumption, Plan, TimePart
from planner.tracking.answer import Tracked, is_slow, track
from planner.tracking.model import Progress
from planner.tracking.planned import planned_of
from planner.tracking.report import _speed
from tests.planner.tracking.runs import CHECKPOINT_HOURS, STEP_S, spot_plan

BESIDE, RUN_SD = 0.32, 0.25


def plan(beside: float = BESIDE) -> Plan:
    made = spot_plan(400.0)
    part = TimePart(TimePartId.BESIDE_STEPS, "beside the steps", 100.0 * beside, "default")
    spread = Assumption("whole_run_log_sd", f"{RUN_SD}", "log ratio", "default")
    return replace(made, timeline=(*made.timeline, part), assumptions=(*made.assumptions, spread))


def tracked(of: Plan, hours: float, pace: float) -> Tracked:
    """A run that has trained for some hours, each step taking `pace` times the predicted time."""
    planned = planned_of(of, "plan.json")
    at = np.arange(0.0, 3600.0 * hours, 120.0)
    begin = planned.start.timestamp() + 3600.0 * planned.lead_hours
    none = np.full(len(at), np.nan)
    return track(planned, Progress("x", "csv", begin + at, True, at / (STEP_S * pace), none, none, {}, {}))


def hours_left(found: Tracked) -> float:
    return found.hours_left.value


@pytest.mark.parametrize("hours", [0.9 * CHECKPOINT_HOURS, 8.0 * CHECKPOINT_HOURS])
def test_steps_as_predicted_are_as_planned_however_much_the_log_covers(hours: float) -> None:
    found = tracked(plan(), hours, 1.0 if hours < 1.0 else 1.02)  # a long log has the checkpoints too
    assert "as planned" in str(_speed(found)[-1]) and not is_slow(found)


def test_a_short_log_has_steps_alone_and_the_plan_tells_the_rest() -> None:
    short = 0.9 * CHECKPOINT_HOURS
    without, with_it = (tracked(plan(beside), short, 1.0) for beside in (0.0, BESIDE))
    assert without.speed.measured_s == pytest.approx(1.02 * STEP_S)
    assert with_it.speed.measured_s == pytest.approx(
        (1.0 + 0.02 / 1.32) * STEP_S
    )  # fewer checkpoints per step
    assert with_it.speed.step_s == pytest.approx(without.speed.step_s * (1.02 + BESIDE) / 1.02, rel=1e-6)
    assert with_it.speed.log_sd > RUN_SD
    assert hours_left(with_it) > 1.2 * hours_left(without)


def test_a_long_log_has_all_that_comes_between_and_is_believed() -> None:
    none_beside, as_counted, slower = (tracked(plan(), 20.0, pace) for pace in (1.02, 1.34, 1.6))
    assert none_beside.speed.log_sd < 0.1
    assert hours_left(none_beside) < 0.8 * hours_left(as_counted)
    assert [is_slow(one) for one in (none_beside, as_counted, slower)] == [False, False, True]
    assert re.search(r"as planned \(6[01]\.\d s to 80\.4 s\)", str(_speed(as_counted)[-1]))
    assert "slower than planned" in str(_speed(slower)[-1])
