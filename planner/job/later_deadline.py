"""The least later deadline that is enough, where no plan is in time; what a little more time saves, where one is.

Candidates that only the deadline removes say how far it would have to move for them. Those of a later deadline that
fall back on on-demand, or run in several zones, do not exist before they are asked for, and need less time or money. So
the engine is asked at later deadlines: first at the least that a candidate needs, which mostly is the least of all, as
a look just before it says; else at multiples until one has a plan, then between the last two. A later deadline never
costs more, so what is found is the least within a twentieth of a per cent.

Where a budget is the other way out, deadlines are looked at up to a month later or ten times as long: nobody waits
longer for that. One that few would accept comes after all other changes and says how many times as long it is.

A plan that is in time is compared with the cheapest one by a deadline a quarter later where that may save a tenth: a
plan on spot hardly saves more by it than on-demand costs more than spot, so most are not asked about again.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.best_alone import BestAlone
from planner.candidates.choose import best_where
from planner.candidates.constraints.base import round_up
from planner.candidates.constraints.deadline import Deadline, later
from planner.candidates.constraints.registry import BIT, constraint
from planner.candidates.engine import Engine
from planner.candidates.limits import case_of
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.wanted import Scope, Wanted
from planner.inputs.bounds import MOST_HOURS
from planner.plan.relaxation import Relaxation, relaxation_of

if TYPE_CHECKING:
    from planner.candidates.engine import CandidateSearch
    from planner.plan.brief import Summary
    from planner.plan.model import Plan

_STEP = 2.0  # ratio of deadlines asked for
_MOST, _MOST_MORE = (
    10.0,
    720.0,
)  # times as long and hours more: the greater is the latest deadline beside a budget
_NEAR, _NEAR_MORE = 3.0, 168.0  # the same of a deadline that comes before other changes
_CLOSE = 1.0005  # ratio of two deadlines between which nobody looks
_LATER = "a quarter more time (constraints.deadline)"
_A_LITTLE, _WORTH_IT = (
    1.25,
    0.1,
)  # times as long as the deadline, and the least share of the cost that it saves
_SHOWN = 0.1  # hours that a deadline is printed to


def with_later_deadline(
    search: CandidateSearch, relaxations: tuple[Relaxation, ...]
) -> tuple[Relaxation, ...]:
    """What is enough, with the least deadline from which a plan keeps all other limits.

    Args:
        search: candidates, none of which fits.
        relaxations: what was found to be enough.
    """
    hours = search.candidates.context.dates.deadline_hours
    named = [item.constraint for item in relaxations]
    if hours is None or not {"budget", Deadline.id} & set(named):
        return relaxations
    enough = Deadline.id in named
    found = _later(
        search, hours, MOST_HOURS if enough else min(_within(hours, _MOST, _MOST_MORE), MOST_HOURS)
    )
    if found is None:
        return relaxations
    needed, relaxation = found
    if needed > _within(hours, _NEAR, _NEAR_MORE):
        return (*_without(relaxations), replace(relaxation, times=round(needed / hours, 1)))
    if enough:
        return tuple(relaxation if item.constraint == Deadline.id else item for item in relaxations)
    return (relaxation, *relaxations)


def cheaper_later(engine: Engine, plan: Plan, hours: float | None) -> tuple[Relaxation, ...]:
    """The cheapest plan by a deadline a quarter later, where it saves at least a tenth.

    Args:
        engine: of the plan's job, compared by cost.
        plan: its plan by its own deadline.
        hours: from the start to that deadline, None without one.
    """
    if hours is None or not may_save(plan):
        return ()
    needed = round_up(min(hours * _A_LITTLE, MOST_HOURS))
    most = float(plan.total_usd) * (1.0 - _WORTH_IT)
    candidates = engine.at_hours(needed, Wanted(Scope.BEST, below=most, counted=False)).candidates
    at = best_where(candidates, (candidates.bits == 0) & (candidates.cost_usd <= most), "cost")
    if at is None:
        return ()
    best = summarize(candidates, at, None)
    best = replace(best, delta_cost_usd=best.cost_usd - plan.total_usd, delta_hours=best.hours - plan.hours)
    return (relaxation_of((later(hours, needed),), best, _LATER),)


def may_save(plan: Plan) -> bool:
    """Whether a later deadline may save a tenth of a plan: all of one that is firm, else what on-demand costs more."""
    spot = [line for line in plan.lines if line.purchase_option == "spot"]
    if not spot:
        return any(line.purchase_option != "owned" for line in plan.lines)
    hourly = min(line.price_per_hour * line.usd_per_currency for line in spot)
    dearer = sum(
        line.billed_hours * line.nodes * (line.price_per_hour * line.usd_per_currency - hourly)
        for line in plan.lines
        if line.purchase_option == "on_demand"
    )
    return float(dearer) >= _WORTH_IT * float(plan.total_usd)


def _within(hours: float, times: float, more: float) -> float:
    return max(hours * times, hours + more)


def _without(relaxations: tuple[Relaxation, ...]) -> tuple[Relaxation, ...]:
    return tuple(item for item in relaxations if item.constraint != Deadline.id)


def _later(search: CandidateSearch, hours: float, last: float) -> tuple[float, Relaxation] | None:
    """The deadline from which a plan fits, hours; None where `last` is too early."""
    cheapest = _Cheapest(search)
    early = late = hours
    best = None
    soonest = _soonest(search)
    near = round_up(soonest, _SHOWN) if soonest <= last else math.inf
    if hours < near <= last and (best := cheapest.by(near)) is not None:
        before = min(near - _SHOWN, near / _CLOSE)
        sooner = cheapest.by(before) if before > hours else None
        if sooner is None:  # nothing that would be printed lies between
            return near, _relaxation(hours, near, best)
        late, best = before, sooner
    while best is None and late < last:
        early, late = late, min(late * _STEP, last)
        best = cheapest.by(late)
    if best is None:
        return None
    while late > early * _CLOSE:
        middle = math.sqrt(early * late)
        sooner = cheapest.by(middle)
        early, late, best = (middle, late, best) if sooner is None else (early, middle, sooner)
    # asked again at the hours that are printed
    needed = round_up(late, _SHOWN)
    best = cheapest.by(needed) or best
    return needed, _relaxation(hours, needed, best)


def _relaxation(hours: float, needed: float, best: Summary) -> Relaxation:
    return relaxation_of((later(hours, needed),), best, Deadline.words)


def _soonest(search: CandidateSearch) -> float:
    """Hours within which some candidate ends that only the deadline removes, infinite where there is none.

    With the confidence asked. Ways to run that are made for a later deadline may need less.
    """
    candidates = search.candidates
    alone = [BIT[name] for name in (Deadline.id, *Deadline.moves_too)]
    at = np.flatnonzero(np.isin(candidates.bits, alone))
    measured = constraint(Deadline.id).distance(case_of(candidates.context), candidates, at)
    return math.inf if measured is None else float(measured[1].min(initial=math.inf))


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
