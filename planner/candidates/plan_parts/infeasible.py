"""What limits keep away: the answer when nothing fits, and what would be better than a plan."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from catalogs.tables.table import distinct_values
from planner.candidates.choose import best_of
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
from planner.plan.model import Plan, Proof
from planner.plan.relaxation import Relaxation, relaxation_of
from planner.records import record

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Ints
    from planner.candidates.constraints.base import Case, Constraint
    from planner.candidates.engine import CandidateSearch
    from planner.candidates.model import Candidates


MOST_RELAXATIONS = 5
_KNEE = {"deadline", "budget"}
_MOST_TOGETHER = 3  # limits that give way together
_ALL_ASKED, _MOST_ASKED = 2, 2_048  # candidates of so many limits are all asked whether they are sure enough
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


@record(frozen=True, eq=False)
class Remedy:
    """The candidate at `at` becomes a plan where all limits in `group` give way as `relaxation` says."""

    group: tuple[Constraint, ...]
    at: int
    relaxation: Relaxation


def find_relaxations(search: CandidateSearch) -> tuple[Relaxation, ...]:
    """Return the smallest changes that make a plan possible, as `find_remedies` finds them."""
    return tuple(remedy.relaxation for remedy in find_remedies(search))


def find_remedies(search: CandidateSearch) -> list[Remedy]:
    """Return the smallest changes of one limit (else of two or three together) that make a plan possible.

    Candidates removed by exactly one limit tell how far that limit must move; facts of the hardware and refused
    prices are no limits and are never relaxed. When no single limit is enough, pairs are tried, then threes.
    """
    case = case_of(search.candidates.context)
    facts, out = sum(BIT[item.id] for item in CONSTRAINTS if item.is_fact), []
    for together in range(1, _MOST_TOGETHER + 1):
        bits = _judged(case, search.candidates, together)
        at = np.flatnonzero((np.bitwise_count(bits) == together) & (bits & facts == 0))
        groups = _groups(bits[at], together)
        out = [_remedy(case, search, group, at[_removed_by(bits[at], group)]) for group in groups]
        if out:
            break
    return sorted(out, key=lambda remedy: order(remedy.relaxation))[:MOST_RELAXATIONS]


def order(relaxation: Relaxation) -> tuple[bool, Decimal, str]:
    """By what changes are sorted: those of one number first, then by the cost of their plans."""
    named, best = relaxation.constraint, relaxation.best
    measured = {item.id for item in CONSTRAINTS if item.is_measured}
    return named not in measured, best.cost_usd if best else Decimal(0), named


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
            change, brief = item.change(case, candidates, best), summarize(candidates, best, winner)
            out.append(relaxation_of((change,), brief, item.words))
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
    brief = summarize(candidates, best, winner)
    return (relaxation_of((item.change(case, candidates, best),), brief, item.words),)


def _judged(case: Case, candidates: Candidates, together: int = 1) -> Ints:
    """Filter bits, with what is asked only of passing candidates also asked of those that few other limits remove.

    Args:
        case: the limits.
        candidates: all of them.
        together: most limits that remove a candidate which is asked; of three, the best `_MOST_ASKED` are, and the
            others count as removed.
    """
    bits = candidates.bits.copy()
    single = sum(BIT[item.id] for item in CONSTRAINTS if not item.is_fact and not item.needs_deadline)
    few = (bits & ~single == 0) & (bits != 0) & (np.bitwise_count(bits) <= together)
    # what runs in turn was judged when it was made
    at, left = np.flatnonzero(few & (candidates.kind != IN_TURN)), np.empty(0, dtype=np.int64)
    if together > _ALL_ASKED:
        at, left = np.split(at[np.argsort(value_of(candidates)[at], kind="stable")], [_MOST_ASKED])
    for item in CONSTRAINTS:
        unsure = item.unsure(case, candidates, at) if len(at) else None
        if unsure is not None:
            bits[np.concatenate([at[unsure], left])] |= BIT[item.id]
    return bits


def _groups(bits: Ints, together: int) -> list[tuple[Constraint, ...]]:
    """Sets of so many limits that remove a candidate, and the same with what gives way with one in its place."""
    words = dict.fromkeys(distinct_values(bits).tolist())
    for word in tuple(words):
        for item in CONSTRAINTS:
            words |= {word ^ BIT[other] | BIT[item.id]: None for other in item.moves_too if word & BIT[other]}
    groups = (tuple(item for item in CONSTRAINTS if word & BIT[item.id]) for word in words)
    return [group for group in groups if len(group) == together]


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


def _remedy(case: Case, search: CandidateSearch, group: tuple[Constraint, ...], positions: Ints) -> Remedy:
    candidates = search.candidates
    measured = group[0].distance(case, candidates, positions) if len(group) == 1 else None
    if measured is not None:
        positions, values = measured
        positions = positions[values <= values.min() + 1e-9 * abs(values.min())]
    at = best_of(candidates, positions, candidates.context.asked.workload.preferences.objective)
    if {item.id for item in group} >= _KNEE:
        at = _knee(candidates, positions)
    changes = [item.change(case, candidates, at) for item in group]
    words = "; ".join(item.words for item in group)
    return Remedy(group, at, relaxation_of(changes, summarize(candidates, at, None), words))
