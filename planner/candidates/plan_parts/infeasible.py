"""What limits keep away: the answer when nothing fits, and what would be better than a plan."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.choose import best_of, best_where
from planner.candidates.constraints.deadline import leaves_out_fallbacks
from planner.candidates.constraints.registry import BIT, CONSTRAINTS, constraint
from planner.candidates.filters import count_filters
from planner.candidates.limits import case_of
from planner.candidates.model import IN_TURN, concat_candidates
from planner.candidates.plan_parts.frame import plan_frame
from planner.candidates.plan_parts.summary import summarize
from planner.candidates.plan_parts.warnings import plan_warnings
from planner.candidates.wanted import value_of
from planner.candidates.ways.kept_out import kept_out
from planner.plan.model import Plan, Proof, Relaxation

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Ints
    from planner.candidates.constraints.base import Case, Constraint
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates


MOST_RELAXATIONS = 5
_KNEE = {"deadline", "budget"}
_TIE_RATIO = 1e-12  # of a value: what is no difference
# of what is nearly sure enough: how far below the probability asked, and its cost as a share of the plan's
_JUST_MISSED, _FAR_LESS = 0.1, 0.7


def infeasible_plan(search: CandidateSearch, relaxations: tuple[Relaxation, ...], seconds: float) -> Plan:
    """Build the answer when nothing fits: counts per filter and the smallest relaxations.

    What one limit is said to remove alone was judged by all others too: without that limit it would be a plan.
    """
    context = search.candidates.context
    candidates = search.candidates
    bits = _judged(case_of(context), candidates)
    report = count_filters(np.concatenate([bits, candidates.grid_bits]))
    proof = Proof(
        method="exact enumeration", status="infeasible", solver="numpy", objective_usd=Decimal(0), bound_usd=Decimal(0),
        gap_ratio=0.0, candidates=report.total, offers=context.market.offer_set.offers.n_rows,
        shapes=candidates.shapes.n_rows, seconds=seconds,
        fallback_left_out=leaves_out_fallbacks(context.asked.workload, context.dates.deadline_hours),
    )  # fmt: skip
    return Plan(
        **plan_frame(context), status="infeasible", finish_expected=None, lines=(), total_usd=Decimal(0), hours=0.0,
        timeline=(), performance=None, risk=None, savings=None, cash=(), alternatives=(), filters=report.counts,
        filter_pairs=report.pairs, relaxations=relaxations, unknown_options=(), proof=proof,
        warnings=plan_warnings(context, [], None),
    )  # fmt: skip


def find_relaxations(search: CandidateSearch) -> tuple[Relaxation, ...]:
    """Return the smallest changes of one limit (else of two together) that make a plan possible.

    Candidates removed by exactly one limit tell how far that limit must move; facts of the hardware and refused
    prices are no limits and are never relaxed. When no single limit is enough, pairs are tried.
    """
    context = search.candidates.context
    case = case_of(context)
    soft = [item for item in CONSTRAINTS if not item.is_fact]
    out: list[Relaxation] = []
    for together in (1, 2):
        bits = _judged(case, search.candidates, together)
        out = _relaxed(case, search, bits, list(combinations(soft, together)))
        if out:
            break
    measured = {item.id for item in CONSTRAINTS if item.is_measured}
    out.sort(
        key=lambda item: (
            item.constraint not in measured,
            item.best.cost_usd if item.best else 0,
            item.constraint,
        )
    )
    return tuple(out[:MOST_RELAXATIONS])


def find_better(search: CandidateSearch, winner: int) -> tuple[Relaxation, ...]:
    """Return what is better than the plan and removed by one limit alone, for limits that offer it.

    Of candidates of one offer in the sizes looked at for all hardware, spot with its fall-back.

    Args:
        search: all candidates.
        winner: the plan's.
    """
    offered = [item for item in CONSTRAINTS if item.is_offered]
    words, value = np.asarray([BIT[item.id] for item in offered]), value_of(search.candidates)
    at_winner, most = winner, value[winner]
    better = np.flatnonzero(np.isin(search.candidates.bits, words) & (value < most))
    candidates = concat_candidates(
        [
            search.candidates.take(np.append(winner, better)),
            *kept_out(search.candidates, search.offer_bits, words, float(most)),
        ]
    )
    value, case, winner = value_of(candidates), case_of(candidates.context), 0
    out = []
    for item in offered:
        at = np.flatnonzero((candidates.bits == BIT[item.id]) & (value < value[winner]))
        for other in CONSTRAINTS:
            unsure = other.unsure(case, candidates, at) if len(at) else None
            # what runs in turn was judged when it was made
            at = at if unsure is None else at[~unsure | (candidates.kind[at] == IN_TURN)]
        if len(at):
            best = best_of(candidates, at[value[at] <= value[at].min() * (1 + _TIE_RATIO)], "cost")
            current, needed = item.change(case, candidates, best)
            brief = summarize(candidates, best, winner)
            out.append(Relaxation(item.id, current, needed, brief, item.words))
    return (*out, *_nearly_sure(search.candidates, int(at_winner)))


def _nearly_sure(candidates: Candidates, winner: int) -> tuple[Relaxation, ...]:
    """What just misses the probability asked and costs far less than the plan, where there is such a candidate."""
    case, item = case_of(candidates.context), constraint("confidence")
    if case.limits.deadline is None or candidates.context.asked.workload.preferences.objective != "cost":
        return ()
    value, least = value_of(candidates), case.limits.deadline_confidence - _JUST_MISSED
    near = (candidates.bits == BIT[item.id]) & (candidates.p_meet >= least)
    at = np.flatnonzero(near & (value <= _FAR_LESS * value[winner]))
    if not len(at):
        return ()
    best = best_of(candidates, at[value[at] <= value[at].min() * (1 + _TIE_RATIO)], "cost")
    current, needed = item.change(case, candidates, best)
    return (Relaxation(item.id, current, needed, summarize(candidates, best, winner), item.words),)


def _judged(case: Case, candidates: Candidates, together: int = 1) -> Ints:
    """Filter bits, with what is asked only of passing candidates also asked of those that few other limits remove.

    Args:
        case: the limits.
        candidates: all of them.
        together: most limits that remove a candidate which is asked.
    """
    bits = candidates.bits.copy()
    lazy = [item.id for item in CONSTRAINTS if item.needs_deadline]
    single = [BIT[item.id] for item in CONSTRAINTS if not item.is_fact and item.id not in lazy]
    words = [sum(group) for count in range(1, together + 1) for group in combinations(single, count)]
    # what runs in turn was judged when it was made
    at = np.flatnonzero(np.isin(bits, words) & (candidates.kind != IN_TURN))
    for item in CONSTRAINTS:
        unsure = item.unsure(case, candidates, at) if len(at) else None
        if unsure is not None:
            bits[at[unsure]] |= BIT[item.id]
    return bits


def _relaxed(
    case: Case, search: CandidateSearch, bits: Ints, groups: list[tuple[Constraint, ...]]
) -> list[Relaxation]:
    relaxations = (_relax(case, search, group, _removed_by(bits, group)) for group in groups)
    return [item for item in relaxations if item is not None]


def _removed_by(bits: Ints, group: tuple[Constraint, ...]) -> Bools:
    """Candidates that exactly `group` removes; a later deadline also helps those that are merely not sure enough."""
    word = sum(BIT[item.id] for item in group)
    mask = bits == word
    for item in group:
        for other in item.moves_too:
            mask |= bits == (word ^ BIT[item.id] | BIT[other])
    return np.asarray(mask, dtype=np.bool_)


def _knee(candidates: Candidates, at: Ints) -> int:
    """Where hours and dollars both give way: their least product, as of the choice `sooner`.

    The least dollars alone would be weeks after a deadline of a day, the least hours cost any sum.
    """
    product = candidates.hours[at] * candidates.cash_usd[at]
    return best_of(candidates, at[product <= product.min() * (1 + _TIE_RATIO)], "cost")


def _relax(
    case: Case,
    search: CandidateSearch,
    group: tuple[Constraint, ...],
    mask: Bools,
) -> Relaxation | None:
    context = search.candidates.context
    if not mask.any():
        return None
    candidates = search.candidates
    measured = group[0].distance(case, candidates, np.flatnonzero(mask)) if len(group) == 1 else None
    if measured is not None:
        positions, values = measured
        near = positions[values <= values.min() + 1e-9 * abs(values.min())]
        mask = np.zeros(len(candidates.offer), dtype=np.bool_)
        mask[near] = True
    at = best_where(candidates, mask, context.asked.workload.preferences.objective)
    assert at is not None
    if {item.id for item in group} == _KNEE:
        at = _knee(candidates, np.flatnonzero(mask))
    changes = [item.change(case, candidates, at) for item in group]
    return Relaxation(
        constraint=" and ".join(item.id for item in group),
        current=" and ".join(current for current, _ in changes),
        needed=" and ".join(needed for _, needed in changes),
        best=summarize(candidates, at, None),
        note="; ".join(item.words for item in group),
    )
