"""What the verdict says of the hours beside the steps."""

from __future__ import annotations

from dataclasses import replace

from planner.plan.front_notes import before_you_buy, verdict_lines
from planner.plan.ids import AT_WORK, TimePartId
from planner.plan.model import Assumption, Origin, Plan, TimePart
from tests.planner.render.render_plans import SPOT, TRAINING

SAID = "published runs"


def resting_on(value: str, origin: Origin) -> Plan:
    beside = Assumption("beside_steps_ratio", value, "ratio", origin)
    return replace(TRAINING, assumptions=(*TRAINING.assumptions, beside))


def test_a_plan_says_what_its_hours_have_beside_the_steps() -> None:
    text = verdict_lines(resting_on("0.36", "default"))[0]
    assert "Hours include 0.36 x the steps for what" in text and "(assumptions.beside_steps_ratio)" in text


def test_who_states_it_is_not_told() -> None:
    for value, origin in (("0.1", "workload"), ("0", "default")):
        assert SAID not in verdict_lines(resting_on(value, origin))[0]
    assert SAID not in verdict_lines(TRAINING)[0], "a plan of before counted nothing beside the steps"


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

    assert "and a checkpoint every" in said(every * 1.01)
    assert "it ends before a checkpoint is due" in said(every * 0.99)
