"""Choices of the training code that move the step time and that a user may leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.inputs.checks import start_moment

if TYPE_CHECKING:
    from datetime import date, datetime

    from planner.inputs.resolved import ResolvedModel
    from planner.inputs.training_schema import Training


def open_choices(training: Training, model: ResolvedModel) -> tuple[str, ...]:
    """What was left to a default: the interval is wider."""
    moving = ["stack"]
    if model.family == "transformer":
        moving.append("attention")
        eight_bit = training.precision in ("fp8", "fp4")
        # The date of the software moves nothing else (`planner.performance.kernels`).
        if model.experts and training.stack == "tuned" and eight_bit:
            moving.append("software_date")
    return tuple(key for key in moving if key not in training.model_fields_set)


def software_day(training: Training, start: date | datetime | None) -> date | None:
    """The day of the software's release: as stated, else that of the run, None for today's."""
    if training.software_date is not None or start is None:
        return training.software_date
    return start_moment(start).date()
