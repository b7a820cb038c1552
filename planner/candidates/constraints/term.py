"""How long a run may be, and how long an offer may be used: capacity blocks, flex-start, commitments that end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.candidates.constraints.base import Constraint
from planner.candidates.model import MIXED
from planner.inputs.bounds import MOST_HOURS
from planner.market.ends import owned_hours

if TYPE_CHECKING:
    from catalogs.tables.table import Bools, Floats, Ints
    from catalogs.tariffs import OptionRule
    from planner.candidates.constraints.base import Case
    from planner.candidates.model import Candidates
    from planner.market.offers import OfferSet


class Longest(Constraint):
    """A run that outlasts every deadline that may be asked: no price, machine or calendar is known so far ahead."""

    id = "longest"
    words = "takes longer than a century, the longest run that is planned"
    short = "longer than a century"
    unit = "hours"
    is_fact = True

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Candidates expected to take longer, or to be paid for longer."""
        return (candidates.hours > MOST_HOURS) | (candidates.paid_hours > MOST_HOURS)


class Term(Constraint):
    """Longer than the purchase option allows, or without a price for the length."""

    id = "term"
    words = "longer than the purchase option lasts"
    unit = "hours"
    is_fact = True

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Candidates that outlast their offer."""
        outlasting = candidates.paid_hours > longest_hours(case.offer_set, candidates.offer)
        return outlasting | ~np.isfinite(candidates.cost_usd)


class Ended(Constraint):
    """A run that is expected to outlast a commitment of the user that it is on."""

    id = "ended"
    words = "longer than the owned commitment lasts"
    unit = "hours"
    is_fact = True

    def mask(self, case: Case, candidates: Candidates) -> Bools | None:
        """Candidates on a commitment, as a whole or in a part, that end after it."""
        return _outlasts_owned(case.offer_set, candidates) if case.offer_set.own_ends else None


def longest_hours(offer_set: OfferSet, rows: Ints) -> Floats:
    """Longest use of offers in hours, infinity where nothing ends it."""
    longest = np.asarray([_longest(rule) for rule in offer_set.rules])
    return np.asarray(longest[offer_set.rule_of_offer[rows]], dtype=np.float64)


def _outlasts_owned(offer_set: OfferSet, candidates: Candidates) -> Bools:
    """Candidates that run on an owned commitment, as a whole or in a part, beyond its end."""
    start = candidates.context.dates.start
    left = owned_hours(offer_set, candidates.offer, start)
    if candidates.mixes is not None:
        mixed = np.flatnonzero(candidates.kind == MIXED)
        parts = candidates.mixes.offer[candidates.detail[mixed]]
        left[mixed] = np.minimum(left[mixed], owned_hours(offer_set, parts, start).min(axis=1))
    return np.asarray(candidates.hours > left, dtype=np.bool_)


def _longest(rule: OptionRule) -> float:
    """Longest use in hours: the run limit of an option that ends, infinity for terms that renew."""
    return np.inf if rule.whole_term or rule.max_term_hours is None else rule.max_term_hours
