"""One phase of a run whose batch, length or resolution changes, as a launch that starts where the last one ended."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.errors import InputError

if TYPE_CHECKING:
    from planner.export.view import Launch, Training
    from planner.plan.model import Plan


def of_phase(launch: Launch, plan: Plan, number: int) -> Launch:
    """The launch of phase `number`, from 1 on, with its layout, batch, length and steps.

    Raises:
        InputError: the run has no such phase, or is saved without the layouts of its phases.
    """
    training = launch.training
    phases, layouts = training.phases, plan.phase_layouts
    if not 1 <= number <= len(phases):
        has = f"it has {len(phases)}" if phases else "it has none (training.phases)"
        raise InputError(f"--phase {number}: the plan has no such phase; {has}")
    if layouts is None and len({one[1] for one in phases}) > 1:
        raise InputError(
            f"--phase {number}: an older version saved the plan, without the layouts of its phases; save it again: "
            "planner optimize WORKLOAD -o json --out PLAN.json"
        )
    steps, batch, *length = phases[number - 1]
    units = float(steps * batch * (math.prod(length) if training.unit == "tokens" else 1))
    return replace(
        launch,
        parts=tuple(of_phase(part, plan, number) for part in launch.parts),
        layout=launch.layout if layouts is None else layouts[number - 1],
        training=replace(
            training, phase=number, steps=steps, global_batch=batch, units=units * launch.run.runs,
            sequence_length=length[0] if length else training.sequence_length,
            step_time_s=None if plan.phase_step_times_s is None else plan.phase_step_times_s[number - 1],
        ),
    )  # fmt: skip


def phase_words(training: Training) -> list[str]:
    """What a file says of the phases of its run: which one it is of, and how the others are had."""
    if not training.phases:
        return []
    each = ", then ".join(
        f"{one[0]:,} steps of {' x '.join(f'{part:,}' for part in one[1:])}" for one in training.phases
    )
    unit = "samples x tokens" if len(training.phases[0]) > 2 else "samples"
    if training.phase is None:
        own = "layout, batch and length here are of the longest: --phase N writes each one's"
    else:
        own = f"this is phase {training.phase}, whose layout, batch, length and steps are here"
        own += "; hours and cost are of all"
        own += f"; start it from the checkpoint of phase {training.phase - 1}" if training.phase > 1 else ""
    return [f"phases: {each} {unit}; {own}"]
