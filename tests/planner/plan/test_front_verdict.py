"""What a screen says of the hours beside the steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from planner.plan.front import front
from planner.plan.front_notes import before_you_buy
from planner.plan.ids import AT_WORK, TimePartId
from planner.plan.model import Assumption, Origin, Plan, TimePart
from tests.planner.render.render_plans import SPOT, TRAINING

SAID = " x the steps"


def resting_on(value: str, origin: Origin) -> Plan:
    beside = Assumption("beside_steps_ratio", value, "ratio", origin)
    return replace(TRAINING, assumptions=(*TRAINING.assumptions, beside))


def speed_of(plan: Plan) -> str:
    """The row on the speed of a plan's screen."""
    return next(row.words for row in front(plan)[0].figures if row.label == "speed")


@pytest.mark.parametrize("confidence", ["normal", "low"])
def test_a_plan_says_beside_its_speed_what_its_hours_have_on_top(
    confidence: Literal["normal", "low"],
) -> None:
    text = speed_of(replace(resting_on("0.36", "default"), confidence=confidence))
    assert text.endswith("; run time is 1.36 x the steps' time")


def test_the_speed_of_a_fleet_is_over_all_of_its_hours() -> None:
    text = speed_of(replace(resting_on("0.36", "default"), kind="fleet"))
    assert text.endswith("; over all hours, waits included") and SAID not in text


def test_who_states_it_is_not_told() -> None:
    for value, origin in (("0.1", "workload"), ("0", "default")):
        assert SAID not in speed_of(resting_on(value, origin))
    assert SAID not in speed_of(TRAINING), "a plan of before counted nothing beside the steps"


def test_a_run_shorter_than_its_interval_needs_no_checkpoint() -> None:
    assert SPOT.launch is not None
    every = SPOT.launch.checkpoints.interval_hours

    def said(hours: float) -> str:
        parts = [part for part in SPOT.timeline if part.id not in AT_WORK]
        parts += [
            TimePart(part, str(part), hours * share, "model")
            for part, share in ((TimePartId.TRAINING_STEPS, 0.8), (TimePartId.BESIDE_STEPS, 0.2))
        ]
        return str(before_you_buy(replace(SPOT, timeline=tuple(parts))))

    assert "automatically, save every" in said(every * 1.01)
    assert "automatically, save on warning" in said(every * 0.99)
