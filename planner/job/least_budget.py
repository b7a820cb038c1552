"""The plan that limits which must give way then have, and the least budget that is enough beside others.

Candidates that limits remove say how far each would have to move for them. Where limits have given way, spot may fall
back on on-demand or run in several zones: such ways do not exist before they are asked for, and cost less. So the
engine is asked again with the limits as they are said to be needed. Beside a budget it is asked once more with the
others as the plan found then needs them, which may be less. Where the workload's own budget is enough, only the others
are named.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct
from planner.candidates.best_alone import BestAlone
from planner.candidates.choose import best_where
from planner.candidates.constraints.base import round_up
from planner.candidates.constraints.budget import Budget
from planner.candidates.constraints.deadline import Deadline, later
from planner.candidates.constraints.registry import BIT, constraint
from planner.candidates.engine import Engine, bits_of, deadline_after
from planner.candidates.limits import case_of
from planner.candidates.plan_parts.infeasible import order
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.wanted import Scope, Wanted
from planner.plan.relaxation import relaxation_of
from planner.records import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from catalogs.tables.table import Ints
    from planner.candidates.constraints.base import Case, Constraint
    from planner.candidates.context import Context
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates
    from planner.candidates.plan_parts.infeasible import Remedy
    from planner.plan.relaxation import Change, Relaxation

_SHOWN, _CLOSE = 0.1, 0.0005  # hours, and share of them, between two deadlines that are one


def with_least_budget(search: CandidateSearch, remedies: Sequence[Remedy]) -> tuple[Relaxation, ...]:
    """What is enough, by rising cost, with the least budget beside other limits.

    Args:
        search: candidates, none of which fits.
        remedies: what was found to be enough.
    """
    least = [
        _least(search, remedy) if _has_budget(remedy) else _within(search, remedy) for remedy in remedies
    ]
    named = [frozenset(change.constraint for change in item.changes) for item in least]
    # what is enough without one of its limits is named without it, once
    kept: dict[frozenset[str], Relaxation] = {}
    for item, mine in zip(least, named, strict=True):
        if not any(other < mine for other in named):
            kept.setdefault(mine, item)
    return tuple(sorted(kept.values(), key=order))


def _has_budget(remedy: Remedy) -> bool:
    return len(remedy.group) > 1 and any(item.id == Budget.id for item in remedy.group)


@record(frozen=True, eq=False)
class _Move:
    """Limit `item` gives way as the candidate at `at` needs it, which `change` says."""

    item: Constraint
    change: Change
    candidates: Candidates
    at: int


def _within(search: CandidateSearch, remedy: Remedy) -> Relaxation:
    """What is enough without more money, with the plan that `optimize` then finds."""
    ids = [item.id for item in remedy.group]
    if ids in ([Budget.id], [Deadline.id]):  # the one is exact, the other is asked for by `later_deadline`
        return remedy.relaxation
    own, case = search.candidates.context.asked.workload, case_of(search.candidates.context)
    objective, budget = own.preferences.objective, own.constraints.budget_usd
    first = _moves(search, remedy)
    for moves in (_cheapest_named(search, case, first), first):
        if moves and (found := _best(search, moves, budget, objective)) is not None:
            break
    else:
        return remedy.relaxation
    most = float(found[0].cash_usd[found[1]])
    sooner = [_sooner(search, case, move, moves, _dollars(most), most) for move in moves]
    if sooner != moves and (again := _best(search, sooner, budget, objective)) is not None:
        moves, found = sooner, again
    words = "; ".join(move.item.words for move in moves)
    return relaxation_of([move.change for move in moves], summarize(*found, None), words)


def _cheapest_named(search: CandidateSearch, case: Case, moves: list[_Move]) -> list[_Move]:
    """What is let in, such as an instance type, as the best of all plans needs it; empty where it is all numbers."""
    own, limits = search.candidates.context.asked.workload, case.limits
    named = [move for move in moves if move.item.loosened(limits, case, move.candidates, move.at) is None]
    named = [move for move in named if move.item.id != Deadline.id]
    if not named:
        return []
    best = _best(search, moves, own.constraints.budget_usd, own.preferences.objective, alike=False)
    if best is None:
        return []
    kept_out = search.offer_bits[best[0].offer[best[1]]]
    return [
        _Move(move.item, move.item.change(case, *best), *best) if move in named else move
        for move in moves
        if move not in named or kept_out & BIT[move.item.id]
    ]


def _best(
    search: CandidateSearch,
    moves: list[_Move],
    budget: Decimal | None,
    objective: str,
    *,
    alike: bool = True,
) -> tuple[Candidates, int] | None:
    """The plan within a budget with the limits moved; None where none is found."""
    moved = _moved(search, moves, budget, objective, alike=alike)
    if moved is None:
        return None
    context, offer_bits = moved
    engine = Engine(context, offer_bits=offer_bits, admitted_only=True)
    candidates = engine.at(context.dates.deadline, Wanted(Scope.BEST, counted=False)).candidates
    at = best_where(candidates, candidates.bits == 0, objective)
    return None if at is None else (candidates, at)


def _moves(search: CandidateSearch, remedy: Remedy) -> list[_Move]:
    """The limits that give way, but a budget."""
    return [
        _Move(item, change, search.candidates, remedy.at)
        for item, change in zip(remedy.group, remedy.relaxation.changes, strict=True)
        if item.id != Budget.id
    ]


def _least(search: CandidateSearch, remedy: Remedy) -> Relaxation:
    case, known, both = case_of(search.candidates.context), search.candidates, remedy.relaxation
    moves = _moves(search, remedy)
    found = _cheapest(search, moves, known, remedy.at)
    if found is None:
        return both
    closer = [move for one in moves if (move := _closer(case, one, *found)) is not None]
    if [move.change for move in closer] != [move.change for move in moves]:
        again = _cheapest(search, closer, *found)
        moves, found = (moves, found) if again is None else (closer, again)
    most = float(found[0].cash_usd[found[1]])
    sooner = [_sooner(search, case, move, moves, _dollars(most), most) for move in moves]
    if sooner != moves and (again := _cheapest(search, sooner, *found)) is not None:
        moves, found = sooner, again
    candidates, at = found
    changes, items = [move.change for move in moves], [move.item for move in moves]
    if float(candidates.cash_usd[at]) > float(case.limits.budget_usd or 0):
        items.append(constraint(Budget.id))
        changes.append(items[-1].change(case, candidates, at))
    return relaxation_of(changes, summarize(candidates, at, None), "; ".join(item.words for item in items))


def _closer(case: Case, move: _Move, candidates: Candidates, at: int) -> _Move | None:
    """A move as another candidate needs it, None where that one needs none.

    A deadline stays, as ways to run in turn are made for it (`_sooner`). So does what is no number.
    """
    change, before = move.item.change(case, candidates, at), move.change
    if move.item.id == Deadline.id or None in (change.enough, before.enough, change.limit, before.limit):
        return move
    assert change.enough is not None and change.limit is not None
    assert before.enough is not None and before.limit is not None
    is_kept = (change.enough - change.limit) * (before.enough - before.limit) <= 0
    return None if is_kept else _Move(move.item, change, candidates, at)


def _sooner(
    search: CandidateSearch, case: Case, move: _Move, moves: list[_Move], budget: Decimal | None, below: float
) -> _Move:
    """A deadline moved no further than a plan within a budget needs; another move as it is.

    Args:
        search: candidates, none of which fits.
        case: their limits.
        move: one of `moves`.
        moves: all limits that give way, but a budget.
        budget: of the plan, None for any.
        below: a cost of which there is a plan with `moves`.
    """
    moved = _moved(search, moves, budget) if move.item.id == Deadline.id else None
    if moved is None or case.deadline_hours is None or move.change.enough is None:
        return move
    alone = BestAlone(Engine(moved[0], offer_bits=moved[1], admitted_only=True))
    early, late = case.deadline_hours, move.change.enough
    hours = late - max(_SHOWN, late * _CLOSE)
    while hours > early:
        able = bool((alone.at_hours(hours, below).bits == 0).any())
        early, late = (early, hours) if able else (hours, late)
        hours = (early + late) / 2 if late - early > max(_SHOWN, late * _CLOSE) else early
    needed = round_up(late)
    return move if needed >= move.change.enough else replace(move, change=later(case.deadline_hours, needed))


def _cheapest(
    search: CandidateSearch, moves: list[_Move], known: Candidates, dearest: int
) -> tuple[Candidates, int] | None:
    """The cheapest plan with the limits moved that owes no more than a candidate; None where none is found."""
    most = float(known.cash_usd[dearest])
    moved = _moved(search, moves, _dollars(most))
    if moved is None:
        return None
    context, offer_bits = moved
    engine = Engine(context, offer_bits=offer_bits, admitted_only=True)
    wanted = Wanted(Scope.BEST, below=max(most, float(known.cost_usd[dearest])), counted=False)
    candidates = engine.at(context.dates.deadline, wanted).candidates
    at = best_where(candidates, candidates.bits == 0, "cost")
    return None if at is None else (candidates, at)


def _dollars(value: float) -> Decimal:
    return Decimal(repr(round_up(value, 0.01)))


def _moved(
    search: CandidateSearch,
    moves: list[_Move],
    budget: Decimal | None,
    objective: str = "cost",
    *,
    alike: bool = True,
) -> tuple[Context, Ints] | None:
    """The run within a budget, with limits moved, and filter bits per offer.

    None where only the user can say what a limit is. `alike`: only offers that need the same changes are let in.
    """
    context, case = search.candidates.context, case_of(search.candidates.context)
    asked = context.asked
    limits, admitted = asked.workload.constraints, []
    for move in moves:
        loosened = move.item.loosened(limits, case, move.candidates, move.at)
        limits = limits if loosened is None else loosened
        if move.item.id == Deadline.id and move.change.enough is not None:
            context = context.with_deadline(deadline_after(context.dates.start, move.change.enough))
        elif loosened is None:
            admitted.append(move)
    wishes = asked.workload.preferences.model_copy(update={"objective": objective})
    limits = limits.model_copy(update={"budget_usd": budget})
    workload = asked.workload.model_copy(update={"preferences": wishes, "constraints": limits})
    context = context.with_asked(replace(asked, workload=workload))
    offer_bits = bits_of(context.asked, context.market)
    before = offer_bits.copy()
    _admit(search, offer_bits, admitted, alike=alike)
    return None if admitted and np.array_equal(offer_bits, before) else (context, offer_bits)


def _admit(search: CandidateSearch, offer_bits: Ints, moves: list[_Move], *, alike: bool) -> None:
    """Let in the offers that nothing keeps out but limits that move, and, if `alike`, that need the same changes."""
    word = sum(BIT[move.item.id] for move in moves)
    candidates, case = search.candidates, case_of(search.candidates.context)
    for at in distinct(candidates.offer)[1]:
        offer = int(candidates.offer[at])
        bits = int(offer_bits[offer])
        if bits and not bits & ~word and (not alike or all(
            move.item.change(case, candidates, int(at)).needed == move.change.needed
            for move in moves
            if bits & BIT[move.item.id]
        )):  # fmt: skip
            offer_bits[offer] = 0
