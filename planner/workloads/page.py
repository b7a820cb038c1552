"""The page of a plan: beside the answer what other deadlines and budgets would bring, planned for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.job.other_limits import other_limits
from planner.job.other_limits_report import other_limits_sections

if TYPE_CHECKING:
    from planner.render.model import Answer as Shown
    from planner.workloads.answer import Answer


def with_other_limits(shown: Shown, answer: Answer) -> Shown:
    """Add the sections of other deadlines and budgets, with sliders, in front of what supports the answer.

    Args:
        shown: the answer of the plan.
        answer: the plan with its run; a fleet has no single finishing time, so nothing is added to it.
    """
    found = None if answer.found is None else other_limits(answer.found)
    if found is None:
        return shown
    return replace(shown, sections=(*other_limits_sections(found, answer.plan), *shown.sections))
