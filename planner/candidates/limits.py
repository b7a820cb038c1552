"""Applies the constraints: to offers, to sizes, to timed and priced candidates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.base import Case
from planner.candidates.constraints.deadline import too_unsure, without_record
from planner.candidates.constraints.registry import BIT, CONSTRAINTS
from planner.candidates.filters import mark
from planner.candidates.in_time import chance_in_time, finish_quantile
from planner.candidates.starts import chance_had

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from planner.asked.job import Job
    from planner.candidates.constraints.base import Constraint
    from planner.candidates.context import Context
    from planner.candidates.model import Candidates
    from planner.inputs.schema import Constraints
    from planner.market.offers import OfferSet


_FIRST_JUDGED = 256  # candidates whose chance is worked out at first, the best ones; then twice as many
_SAME = 1e-9  # ratio within which values are the same but for rounding


def case_of(context: Context) -> Case:
    """What constraints look at in a planning run."""

    def chance(candidates: Candidates, at: Ints) -> Floats:
        chance = chance_in_time(candidates, at, candidates.deadline_hours(at))
        return np.asarray(chance * chance_had(candidates, at), dtype=np.float64)

    def finish(candidates: Candidates, at: Ints, level: float) -> Floats:
        return finish_quantile(candidates, at, level / chance_had(candidates, at))

    asked, market = context.asked, context.market
    hours = context.dates.deadline_hours
    return Case(asked.workload, asked.job, market.offer_set, market.tariffs, hours, chance, finish)


def mark_offers(offer_set: OfferSet, limits: Constraints, job: Job) -> Ints:
    """Return the filter bits that depend on the offer and its type alone, shape `(n_offers,)`.

    Args:
        offer_set: what can be bought.
        limits: the workload's limits.
        job: its model, what it does, and where its data lie.
    """
    bits = np.zeros(offer_set.offers.n_rows, dtype=np.int64)
    trains = job.training.tuning.requests is None
    for item in CONSTRAINTS:
        if trains or not item.is_of_training:
            _mark(bits, item, item.offers(offer_set, limits, job))
    return bits


def mark_cells(bits: Ints, offer_set: OfferSet, limits: Constraints, rows: Ints, nodes: Ints) -> None:
    """Set the bits of what depends on an offer and the number of its instances alone."""
    for item in CONSTRAINTS:
        _mark(bits, item, item.cells(offer_set, limits, rows, nodes))


def mark_limits(candidates: Candidates) -> None:
    """Set the bits of all limits on timed and priced candidates of one offer, those of the deadline last."""
    context = candidates.context
    case = case_of(context)
    for item in CONSTRAINTS:
        if not item.needs_deadline:
            _mark(candidates.bits, item, item.mask(case, candidates))
    mark_deadline(candidates)


def mark_parts(candidates: Candidates) -> None:
    """Set the bits of limits on candidates bought in several parts, apart from the deadline's.

    What each purchase keeps by itself (capacity, quota) was seen to when the parts were chosen.
    """
    context = candidates.context
    case, limits = case_of(context), context.asked.workload.constraints
    for item in CONSTRAINTS:
        if not item.of_each_part:
            _mark(
                candidates.bits, item, item.cells(case.offer_set, limits, candidates.offer, candidates.nodes)
            )
            if not item.needs_deadline:
                _mark(candidates.bits, item, item.mask(case, candidates))


def mark_deadline(candidates: Candidates, *, is_recorded: bool = False) -> None:
    """Set the bits of what ends too late or is too unsure to end in time; nothing where there is no deadline.

    Args:
        candidates: timed and priced.
        is_recorded: those of `recorded`, where there is a deadline.
    """
    context = candidates.context
    case = case_of(context)
    for item in CONSTRAINTS:
        if item.needs_deadline and not (is_recorded and item.is_of_any_deadline):
            _mark(candidates.bits, item, item.mask(case, candidates))


def recorded(candidates: Candidates) -> Candidates:
    """The candidates with spot alone marked that no deadline admits for lack of a record, whatever the deadline."""
    marked = replace(candidates, bits=candidates.bits.copy())
    removed = without_record(candidates.context.asked.workload, candidates)
    if removed is not None:
        mark(marked.bits, "unrecorded", removed)
    return marked


def mark_best(candidates: Candidates, value: Floats, order: Ints) -> Ints:
    """As `mark_deadline`, but what is dearer than the best in time counts as too unsure without a look.

    Args:
        candidates: those of `recorded`.
        value: what they are compared by, the least is best, shape `(n_candidates,)`.
        order: positions by rising value, which is the same at every deadline.

    Returns:
        Positions of those that were not looked at.
    """
    case = case_of(candidates.context)
    assert case.deadline_hours is not None
    mark(candidates.bits, "deadline", candidates.hours > case.deadline_hours)
    unsure = candidates.bits == 0
    waiting: Ints = order[unsure[order]]
    least, size = np.inf, _FIRST_JUDGED
    while len(waiting) and value[waiting[0]] <= least * (1 + _SAME):
        block, waiting, size = waiting[:size], waiting[size:], 2 * size
        unsure[block] = too_unsure(case, candidates, block)
        least = min(least, float(value[block[~unsure[block]]].min(initial=np.inf)))
    mark(candidates.bits, "confidence", unsure)
    return waiting


def judge_too(candidates: Candidates, at: Ints) -> None:
    """Look at some candidates that `mark_best` did not look at."""
    sure = at[~too_unsure(case_of(candidates.context), candidates, at)]
    candidates.bits[sure] &= ~BIT["confidence"]


def _mark(bits: Ints, item: Constraint, removed: Bools | None) -> None:
    if removed is not None:
        mark(bits, item.id, removed)
