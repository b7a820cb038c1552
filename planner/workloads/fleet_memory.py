"""Which options of the training code make the runs of a fleet fit, where memory keeps all machines from them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.errors import PlannerError
from planner.job.less_memory import with_less_memory
from planner.job.memory_room import short_of_memory
from planner.plan.outcome import choice_words
from planner.render.precision import dollars_known

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.asked.model import Asked
    from planner.candidates.engine import CandidateSearch
    from planner.plan.model import Plan

_KNOWN = 0.5  # half-width, relative, of what a fleet costs


def with_memory_options(plan: Plan, search: CandidateSearch, ask: Callable[[Asked], Plan]) -> Plan:
    """The infeasible answer of a fleet, with options of the training code that have a plan named first.

    Args:
        plan: the answer.
        search: candidates of one run.
        ask: plans a fleet.
    """
    if not len(short_of_memory(search)):
        return plan

    def words(tried: CandidateSearch) -> str:
        try:
            other = ask(tried.candidates.context.asked)
        except PlannerError:  # no remedy is known then
            return ""
        usd = dollars_known(other.total_usd, float(other.total_usd) * _KNOWN)
        return f"{choice_words(other)} for {usd}" if other.lines else ""

    return replace(plan, relaxations=(*with_less_memory(search, words), *plan.relaxations))
