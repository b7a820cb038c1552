"""One job under other limits: the cheapest plan at each of many deadlines, the soonest within each of many budgets.

Every answer is the one that `optimize` gives with that limit in place of the file's; nothing is interpolated. Other
deadlines are asked for without the file's budget, as `frontier` does; other budgets with its deadline and confidence.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.choose import best_where
from planner.candidates.engine import Engine
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.prepare import unlimited
from planner.candidates.wanted import Scope, Wanted
from planner.candidates.ways.chances import stated_chance
from planner.job.frontier import find_frontier
from planner.plan.brief import Summary
from planner.records import record

if TYPE_CHECKING:
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Workload
    from planner.job.frontier import Frontier

STEPS = 25  # deadlines and budgets asked for, beside the file's own
_SPAN = 1.5  # least ratio of the largest to the least budget asked for
_DIGITS = 3  # of a budget asked for
_NO_BUDGET = Decimal(10) ** 15  # allows all, but candidates are built as under a budget
_HAIR = 1.0 + 1e-9  # of sums of hours


@record(frozen=True)
class Within:
    """The soonest plan within a budget; `is_own`: the budget of the workload itself."""

    budget_usd: Decimal
    best: Summary
    p_meet_deadline: float | None
    is_own: bool = False


@record(frozen=True)
class OtherLimits:
    """The frontier with at least `STEPS` deadlines listed, and what budgets buy by the workload's deadline.

    `budgets` rises; it is empty where no plan keeps the workload's deadline.
    """

    frontier: Frontier
    budgets: tuple[Within, ...]


def other_limits(run: CandidateSearch) -> OtherLimits | None:
    """Plan a job under other deadlines and budgets.

    Args:
        run: of its plan.

    Returns:
        None where no candidate passes the other limits.

    Raises:
        InputError: the workload is a fleet.
    """
    own = run.context.asked.workload
    engine = _engine(run, unlimited(own))
    found = find_frontier(engine, own, steps=STEPS)
    return OtherLimits(found, _budgets(run, engine)) if found.points else None


def _engine(run: CandidateSearch, workload: Workload, known: Engine | None = None) -> Engine:
    """The engine of the run with something else asked; `known`: of another question, whose shapes are the same."""
    context = run.context.with_asked(replace(run.context.asked, workload=workload))
    if known is None:
        return Engine(context, admitted_only=True)
    return Engine(context, shapes=known.shapes, finer=known.finer, admitted_only=True)


def _budgets(run: CandidateSearch, by_cost: Engine) -> tuple[Within, ...]:
    """The soonest plan of each budget, from that of the cheapest plan to that of the soonest at any price."""
    deadline, own = run.context.dates.deadline, run.context.asked.workload
    found = by_cost.at(deadline, Wanted(Scope.BEST)).candidates
    cheapest = best_where(found, found.bits == 0, "cost")
    if cheapest is None:
        return ()
    limits = own.constraints.model_copy(update={"budget_usd": _NO_BUDGET})
    wishes = own.preferences.model_copy(update={"objective": "time"})
    asked = own.model_copy(update={"constraints": limits, "preferences": wishes})
    by_time = _engine(run, asked, by_cost)
    # what is slower than the cheapest plan is the soonest of no budget that pays for that plan
    longest = float(found.hours[cheapest]) * _HAIR
    candidates = by_time.at(deadline, Wanted(Scope.BEST, up_to=longest)).candidates
    least, soonest = (
        best_where(candidates, candidates.bits == 0, "cost"),
        best_where(candidates, candidates.bits == 0, "time"),
    )
    assert least is not None and soonest is not None
    ends = float(candidates.cash_usd[least]), float(candidates.cash_usd[soonest])
    given = None if own.constraints.budget_usd is None else Decimal(str(own.constraints.budget_usd))
    asked_for = {
        *budget_steps(*ends),
        *([given] if given is not None and given >= Decimal(repr(ends[0])) else []),
    }
    return tuple(_within(candidates, budget, budget == given) for budget in sorted(asked_for))


def budget_steps(least: float, most: float) -> list[Decimal]:
    """Budgets in equal steps of the logarithm, rounded up to three digits; from nothing on in equal steps."""
    if least > 0:
        steps = np.geomspace(least, max(most, least * _SPAN), STEPS)
    else:
        steps = np.linspace(0.0, max(most, 1.0), STEPS)
    return [_rounded_up(value) for value in steps.tolist()]


def _rounded_up(value: float) -> Decimal:
    if value <= 0:
        return Decimal(0)
    unit = Decimal(10) ** (math.floor(math.log10(value)) + 1 - _DIGITS)
    return Decimal(math.ceil(Decimal(repr(value)) / unit)) * unit


def _within(candidates: Candidates, budget: Decimal, is_own: bool) -> Within:
    at = best_where(candidates, (candidates.bits == 0) & (candidates.cash_usd <= float(budget)), "time")
    assert at is not None
    return Within(budget, summarize(candidates, at, None), stated_chance(candidates, at), is_own)
