"""What the verdict says of hours that no plan counts."""

from __future__ import annotations

from dataclasses import replace

from planner.plan.front_notes import before_you_buy, verdict_lines
from planner.plan.ids import TimePartId
from planner.plan.model import Assumption, Plan
from tests.planner.render.render_plans import FLEET, SPOT, TRAINING

SAID = "published runs took"


def with_steps(hours: float) -> Plan:
    parts = (
        replace(part, hours=hours) if part.id == TimePartId.TRAINING_STEPS else part
        for part in TRAINING.timeline
    )
    return replace(TRAINING, timeline=tuple(parts))


def test_runs_of_days_say_how_much_longer_published_ones_took() -> None:
    assert SAID in verdict_lines(with_steps(24.0))[0]
    assert SAID not in verdict_lines(with_steps(23.9))[0], "nothing is published of shorter runs"
    assert SAID not in verdict_lines(FLEET)[0]


def test_who_has_measured_is_not_told_of_others() -> None:
    own = Assumption("calibration.hopper", "1.1", "", "derived")
    measured = replace(TRAINING, assumptions=(*TRAINING.assumptions, own))
    assert SAID in verdict_lines(TRAINING)[0] and SAID not in verdict_lines(measured)[0]


def test_a_run_shorter_than_its_interval_needs_no_checkpoint() -> None:
    assert SPOT.launch is not None
    every = SPOT.launch.checkpoints.interval_hours

    def said(hours: float) -> str:
        parts = (
            replace(part, hours=hours) if part.id == TimePartId.TRAINING_STEPS else part
            for part in SPOT.timeline
        )
        return str(before_you_buy(replace(SPOT, timeline=tuple(parts))))

    assert "and a checkpoint every" in said(every * 1.01)
    assert "it ends before a checkpoint is due" in said(every * 0.99)
