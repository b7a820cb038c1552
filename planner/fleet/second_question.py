"""A second question beside a fleet that is planned: another set of limits, whose answer is a note of the plan.

It takes no more time than `--time-limit` leaves, and is searched to a wider gap. The plan is proven without it, so a
second question that fails is a note too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.errors import PlannerError, TimeLimitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.asked.model import Asked
    from planner.asked.options import Options
    from planner.plan.model import Plan


def with_note_of(
    plan: Plan,
    question: tuple[Asked, str],
    options: Options,
    gap: float,
    ask: Callable[[Asked, Options], Plan],
    note_of: Callable[[Plan], str],
) -> Plan:
    """The plan with a note of the answer to another question; without where the time is over.

    Args:
        plan: the fleet.
        question: what else is asked, and its name in the note of a fault.
        options: with which the fleet was planned.
        gap: relative, at which the search may stop.
        ask: plans a fleet.
        note_of: what the answer says beside the plan, empty for nothing.
    """
    left_s = max(options.time_limit_s - (0.0 if plan.proof is None else plan.proof.seconds), 0.0)
    rest = replace(options, gap=max(options.gap, gap), time_limit_s=left_s)
    changed, name = question
    try:
        note = note_of(ask(changed, rest))
    except TimeLimitError:
        return plan
    except PlannerError as error:
        note = f"{name}: not known: {error}"
    return replace(plan, warnings=(*plan.warnings, note)) if note else plan
