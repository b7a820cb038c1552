"""Until when the budget is enough, where no plan within it is in time and a later deadline is another way out.

Candidates that only the deadline removes say how far it would have to move. Those of a later deadline that fall back
on on-demand do not exist before they are asked for, and most within a small budget are such: they need less time than
what is cheap without them. So the engine is asked at later deadlines: at the last one of interest, at multiples until
one has a plan, then between the last two.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.candidates.best_alone import BestAlone
from planner.candidates.choose import best_where
from planner.candidates.constraints.base import round_up
from planner.candidates.constraints.deadline import Deadline
from planner.candidates.engine import Engine
from planner.candidates.plan_parts.summary import summarize
from planner.inputs.bounds import MOST_HOURS
from planner.plan.model import Relaxation

if TYPE_CHECKING:
    from planner.candidates.engine import CandidateSearch
    from planner.plan.brief import Summary

_STEP, _MOST = 2.0, 32.0  # ratio of deadlines asked for, and of the latest to the workload's own
_CLOSE = 1.005  # ratio of two deadlines between which nobody looks


def with_later_deadline(
    search: CandidateSearch, relaxations: tuple[Relaxation, ...]
) -> tuple[Relaxation, ...]:
    """What is enough, with the deadline from which a plan fits the budget, within half a per cent, if one is near.

    Args:
        search: candidates, none of which fits.
        relaxations: what was found to be enough.
    """
    context = search.candidates.context
    hours = context.dates.deadline_hours
    if hours is None or all(item.constraint != "budget" for item in relaxations):
        return relaxations
    later = _later(search, hours)
    if later is None:
        return relaxations
    return (later, *(item for item in relaxations if item.constraint != Deadline.id))


def _later(search: CandidateSearch, hours: float) -> Relaxation | None:
    """The deadline from which a plan fits; None where that is too far away."""
    cheapest, last = _Cheapest(search), min(hours * _MOST, MOST_HOURS)
    best = cheapest.by(last)
    if best is None:
        return None
    early, late = hours, last
    while early * _STEP < late:
        sooner = cheapest.by(early * _STEP)
        if sooner is not None:
            late, best = early * _STEP, sooner
            break
        early *= _STEP
    while late > early * _CLOSE:
        middle = math.sqrt(early * late)
        sooner = cheapest.by(middle)
        early, late, best = (middle, late, best) if sooner is None else (early, middle, sooner)
    # asked again at the hours that are printed
    needed = round_up(late)
    best = cheapest.by(needed) or best
    return Relaxation(Deadline.id, f"{hours:,.1f} h", f"{needed:,.1f} h", best, Deadline.words)


class _Cheapest:
    """The cheapest plan within all limits but the deadline, at any deadline."""

    def __init__(self, search: CandidateSearch) -> None:
        """Take what was searched, of a workload with a budget."""
        context = search.candidates.context
        workload = context.asked.workload
        if workload.preferences.objective != "cost":
            wishes = workload.preferences.model_copy(update={"objective": "cost"})
            workload = workload.model_copy(update={"preferences": wishes})
            context = context.with_asked(replace(context.asked, workload=workload))
        self._best = BestAlone(Engine(context, offer_bits=search.offer_bits, admitted_only=True))
        self._most = float(workload.constraints.budget_usd or math.inf)

    def by(self, hours: float) -> Summary | None:
        """The plan so many hours after the start, None where there is none."""
        candidates = self._best.at_hours(hours, self._most)
        at = best_where(candidates, candidates.bits == 0, "cost")
        return None if at is None else summarize(candidates, at, None)
