"""The least budget that is enough beside another limit that must give way with it.

Candidates that two limits remove say how far each would have to move for them. Where the other limit has given way,
spot may fall back on on-demand or run in several zones: such ways do not exist before they are asked for, and cost
less. So the engine is asked again with the other limit as it is said to be needed. Of that, only as much is named as
the plan found needs, and only the other limit where the workload's own budget is enough then.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct
from planner.candidates.choose import best_where
from planner.candidates.constraints.budget import Budget
from planner.candidates.constraints.deadline import Confidence, Deadline, confidence_kept
from planner.candidates.constraints.registry import BIT, constraint
from planner.candidates.engine import Engine, bits_of, deadline_after
from planner.candidates.limits import case_of
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.wanted import Scope, Wanted
from planner.candidates.ways.chances import stated_chance

if TYPE_CHECKING:
    from catalogs.tables.table import Ints
    from planner.candidates.constraints.base import Constraint
    from planner.candidates.context import Context
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints
    from planner.plan.model import Relaxation

_WITH_BUDGET = f" and {Budget.id}"


def with_least_budget(search: CandidateSearch, relaxations: tuple[Relaxation, ...]) -> tuple[Relaxation, ...]:
    """What is enough, by rising cost, with the least budget beside another limit.

    Args:
        search: candidates, none of which fits.
        relaxations: what was found to be enough.
    """
    if not any(item.constraint.endswith(_WITH_BUDGET) for item in relaxations):
        return relaxations
    least = [_least(search, item) if item.constraint.endswith(_WITH_BUDGET) else item for item in relaxations]
    alone = {item.constraint for item in least if " and " not in item.constraint}
    kept = [
        item for item in least if item.constraint in alone or not alone & set(item.constraint.split(" and "))
    ]
    return tuple(sorted(kept, key=lambda item: item.best.cost_usd if item.best else 0))


def _least(search: CandidateSearch, both: Relaxation) -> Relaxation:
    other = constraint(both.constraint.removesuffix(_WITH_BUDGET))
    needed, _, higher = both.needed.rpartition(" and ")
    most = _number(higher)
    moved = _moved(search, most, other, needed)
    if moved is None:
        return both
    context, offer_bits = moved
    engine = Engine(context, offer_bits=offer_bits, admitted_only=True)
    wanted = Wanted(Scope.BEST, below=most, counted=False)
    candidates = engine.at(context.dates.deadline, wanted).candidates
    at = best_where(candidates, candidates.bits == 0, "cost")
    if at is None:
        return both
    best = summarize(candidates, at, None)
    needed = _nearest(other, needed, candidates, at)
    own = case_of(search.candidates.context).limits.budget_usd
    if own is not None and float(candidates.cash_usd[at]) <= float(own):
        current = both.current.rpartition(" and ")[0]
        return replace(both, constraint=other.id, current=current, needed=needed, best=best, note=other.words)
    _, budget = constraint(Budget.id).change(case_of(candidates.context), candidates, at)
    return replace(both, needed=f"{needed} and {budget}", best=best)


def _by_cost_within(search: CandidateSearch, budget: float) -> Context:
    """The same run for the least cost, with another budget in US dollars."""
    context = search.candidates.context
    workload = context.asked.workload
    wishes = workload.preferences.model_copy(update={"objective": "cost"})
    limits = workload.constraints.model_copy(update={"budget_usd": Decimal(repr(budget))})
    workload = workload.model_copy(update={"preferences": wishes, "constraints": limits})
    return context.with_asked(replace(context.asked, workload=workload))


def _moved(
    search: CandidateSearch, budget: float, item: Constraint, needed: str
) -> tuple[Context, Ints] | None:
    """The run for the least cost within a budget, with a limit as it is needed, and filter bits per offer.

    None where only the user can say what the limit is.
    """
    context = _by_cost_within(search, budget)
    if item.id == Deadline.id:
        later = deadline_after(context.dates.start, _number(needed))
        return context.with_deadline(later), search.offer_bits
    workload = context.asked.workload
    given = _given(item, workload.constraints)
    if given is not None:
        limits = workload.constraints.model_copy(update={_key(item): type(given)(_number(needed))})
        asked = replace(context.asked, workload=workload.model_copy(update={"constraints": limits}))
        return context.with_asked(asked), bits_of(asked, context.market)
    offer_bits = _admitted(search, item, needed)
    return None if np.array_equal(offer_bits, search.offer_bits) else (context, offer_bits)


def _admitted(search: CandidateSearch, item: Constraint, needed: str) -> Ints:
    """Filter bits per offer where those are admitted that a limit keeps out and that need this change of it."""
    candidates, bits = search.candidates, search.offer_bits.copy()
    case = case_of(candidates.context)
    for at in distinct(candidates.offer)[1]:
        offer = int(candidates.offer[at])
        if bits[offer] == BIT[item.id] and item.change(case, candidates, int(at))[1] == needed:
            bits[offer] = 0
    return bits


def _nearest(item: Constraint, needed: str, candidates: Candidates, at: int) -> str:
    """What a limit must be for the candidate at `at`, found with it as `needed`: mostly it keeps a closer one."""
    if _given(item, candidates.context.asked.workload.constraints) is None:
        return needed
    if item.id == Confidence.id:
        return confidence_kept(stated_chance(candidates, at) or 0.0)
    return item.change(case_of(candidates.context), candidates, at)[1]


def _given(item: Constraint, limits: Constraints) -> float | None:
    """A limit as the workload gives it, where that is a number."""
    given = getattr(limits, _key(item), None)
    return given if isinstance(given, (int, float)) and not isinstance(given, bool) else None


def _key(item: Constraint) -> str:
    return item.paths[0].rpartition(".")[2]


def _number(text: str) -> float:
    return float(text.split()[0].removeprefix("$").replace(",", ""))
